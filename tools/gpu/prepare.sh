#!/usr/bin/env bash
# prepare.sh BUILD: builds programs for an H100 or H200 against the LibTorch that tools/gpu/cuda_torch.txt
# names. They also start where that LibTorch is elsewhere (tools/gpu/kit.py). Prints the wheels that a kit
# carries.
#
#   BRAID_CUDA_TORCH=DIR    use that LibTorch, with the CUDA libraries of its wheels beside it
set -euo pipefail

root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
for part in messages torch running wheels packages compile; do . "$root/tools/shell/$part.sh"; done
. "$root/tools/gpu/link.sh"

[[ $# == 1 ]] || stop 2 "usage: prepare.sh BUILD"
choose_torch
prepare use develop >&2
fetch_nvcc
fetch_cuda_torch
build_for_nvidia "$cuda_torch" "$1" 90-real \
  braid_program device_test ops_test ceilings report parts >&2
wheels=$cache/gpu-peers
[[ -d $wheels ]] || fetch_files "$wheels" -r "$root/tools/gpu/peers.txt"
printf '%s\n' "$wheels"/*.whl

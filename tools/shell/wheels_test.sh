#!/usr/bin/env bash
# Tests which nvcc is chosen, and the message if none can be. Nothing is fetched.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
for part in messages wheels packages; do . "$root/tools/shell/$part.sh"; done
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT

# made_nvcc NAME VERSION: a program that claims to be an nvcc of that version.
made_nvcc() {
  printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.0"\n' "$2" "$2" >"$cache/$1"
  chmod +x "$cache/$1"
}

# expect WORDS COMMAND...: the command's output contains them.
expect() {
  local said
  said=$("${@:2}" 2>&1 </dev/null) || true
  [[ $said == *"$1"* ]] || stop 1 "'${*:2}' should say '$1', it said '$said'"
}

take_nvcc() { CUDACXX=$1 fetch_nvcc && echo "takes $nvcc"; }
find_pip() { python=false; } # as without a network

made_nvcc new 13.0
made_nvcc old 12.4
expect "takes $cache/new" take_nvcc "$cache/new"
expect "should be an nvcc of CUDA 12.9 or later, it is 12.4" take_nvcc "$cache/old"
expect "should be an nvcc of CUDA 12.9 or later, it is none" take_nvcc "$cache/nowhere"
expect "Without a network, set the pipe." fetch_wheels "$cache/pipe" pipe "set the pipe" pipe==1
printf 'wheels_test: right\n'

#!/usr/bin/env bash
# Tests which nvcc is chosen, and the messages if something cannot be fetched. Nothing is fetched.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
for part in messages running wheels packages expect; do . "$root/tools/shell/$part.sh"; done
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT

# made_nvcc NAME VERSION: a program that claims to be an nvcc of that version.
made_nvcc() {
  printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.0"\n' "$2" "$2" >"$cache/$1"
  chmod +x "$cache/$1"
}

take_nvcc() { CUDACXX=$1 fetch_nvcc && echo "takes $nvcc"; }
find_nvcc() { true; } # the system's, which is none

made_nvcc new 13.0
made_nvcc old 12.4
expect "takes $cache/new" take_nvcc "$cache/new"
expect "should be an nvcc of CUDA 12.9 or later, it is 12.4" take_nvcc "$cache/old"
expect "should be an nvcc of CUDA 12.9 or later, it is none" take_nvcc "$cache/nowhere"
torch=$cache/torch
mkdir -p "$torch/lib"
touch "$torch/lib/libcudart-1234.so.12"
expect "is of CUDA 13.0, but the LibTorch in $torch has the runtime of CUDA 12" take_nvcc "$cache/new"
expect "an nvcc of CUDA 12 is needed" take_nvcc ""
made_nvcc newest_of_12 12.9
expect "takes $cache/newest_of_12" take_nvcc "$cache/newest_of_12"
rm "$torch/lib/libcudart-1234.so.12"
mkdir -p "$cache/nvidia/cu13/lib"
touch "$cache/nvidia/cu13/lib/libcudart.so.13"
expect "takes $cache/new" take_nvcc "$cache/new"
expect "is of CUDA 12.9, but the LibTorch in $torch has the runtime of CUDA 13" \
  take_nvcc "$cache/newest_of_12"
# Wheels of another CUDA, which something else brought.
find_compiler || stop 2 "no C++ compiler was found: install g++ 12 or later"
mkdir -p "$cache/nvidia/cu12/lib"
echo | compile_with -shared -x c++ - -o "$cache/nvidia/cu12/lib/libcudart.so.12" -Wl,-soname,libcudart.so.12
rm "$cache/nvidia/cu13/lib/libcudart.so.13"
echo | compile_with -shared -x c++ - -o "$cache/nvidia/cu13/lib/libcudart.so.13" -Wl,-soname,libcudart.so.13
for major in 12 13; do
  echo | compile_with -shared -x c++ - -x none -o "$torch/lib/libtorch_cuda.so" -Wl,--no-as-needed \
    "$cache/nvidia/cu$major/lib/libcudart.so.$major"
  expect "of $major" echo "of $(runtime_major "$torch")"
done

# made_pip SCRIPT: a Python whose pip is this script.
made_pip() {
  printf '#!/bin/bash\n%s\n' "$1" >"$cache/python"
  chmod +x "$cache/python"
}
find_pip() { python=$cache/python; }
fetch_pipe() { fetch_wheels "$cache/pipe" pipe "set the pipe" pipe==1; }
made_pip 'echo "WARNING: Retrying: NewConnectionError(...): Name or service not known" >&2; exit 1'
expect "pipe could not be fetched. Without a network, set the pipe." fetch_pipe
made_pip 'echo "ERROR: [Errno 28] No space left on device" >&2; exit 1'
expect "No space left on device" fetch_pipe
expect_not "network" fetch_pipe
[[ ! -e $cache/pipe && ! -e $cache/pipe.partial ]] || stop 1 "a failed download should leave nothing"
# A user's setting for other projects does not count, and /tmp may be too small.
made_pip 'echo "in $TMPDIR, $PIP_REQUIRE_VIRTUALENV"; [[ -d $TMPDIR ]] || echo missing; exit 1'
expect "in $cache/pipe.partial/tmp, 0" fetch_pipe
expect_not "missing" fetch_pipe

# Another user's lock, or a folder in its place.
mkdir -p "$cache/other"
lock_it() { lock "$1" && echo locked; }
expect "locked" lock_it "$cache/lock"
expect "cannot be written" lock_it "$cache/other/none/lock"
if (($(id -u) != 0)); then
  touch "$cache/foreign" && chmod a-w "$cache/foreign"
  expect "cannot be written" lock_it "$cache/foreign"
fi
printf 'wheels_test: right\n'

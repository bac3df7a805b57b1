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
compiler=${CXX:-$(command -v g++ || command -v c++)}
mkdir -p "$cache/nvidia/cu12/lib"
echo | "$compiler" -shared -x c++ - -o "$cache/nvidia/cu12/lib/libcudart.so.12" -Wl,-soname,libcudart.so.12
rm "$cache/nvidia/cu13/lib/libcudart.so.13"
echo | "$compiler" -shared -x c++ - -o "$cache/nvidia/cu13/lib/libcudart.so.13" -Wl,-soname,libcudart.so.13
for major in 12 13; do
  echo | "$compiler" -shared -x c++ - -x none -o "$torch/lib/libtorch_cuda.so" -Wl,--no-as-needed \
    "$cache/nvidia/cu$major/lib/libcudart.so.$major"
  expect "of $major" echo "of $(runtime_major "$torch")"
done
expect "Without a network, set the pipe." fetch_wheels "$cache/pipe" pipe "set the pipe" pipe==1
printf 'wheels_test: right\n'

#!/usr/bin/env bash
# Tests what ./setup says at the end, and what stops it at once. Nothing is installed or fetched.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
for part in messages torch packages jobs setup_lines expect; do . "$root/tools/shell/$part.sh"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"

expect "Braid runs on Linux (x86_64, aarch64); this is darwin23 on arm64" require_linux darwin23 arm64
expect "this is Linux with musl instead of glibc on x86_64" require_linux linux-musl x86_64
expect "this is linux-gnu on riscv64" require_linux linux-gnu riscv64
expect_nothing require_linux linux-gnu x86_64
expect_nothing require_linux linux aarch64
expect_nothing require_linux

# The words of the lines survive a shell.
mkdir -p "$work/a folder/bin" "$work/torch 2/lib"
printf '#!/bin/sh\necho "of cmake: $*, $CXX"\n' >"$work/a folder/bin/cmake"
printf '#!/bin/sh\necho "of ctest: $*"\n' >"$work/a folder/bin/ctest"
chmod +x "$work/a folder/bin/"*
PATH="$work/a folder/bin:$PATH"
torch="$work/torch 2"
compiler="ccache g++-14"
jobs() { echo 3; }
said=$(eval "$(print_lines_to_develop)")
wanted="of cmake: --preset release -DLibTorch_ROOT_DIR=$torch, ccache g++-14
of cmake: --build --preset release -j 3, 
of ctest: --preset release"
[[ $said == "$wanted" ]] || stop 1 "the lines of ./setup should run '$wanted', they ran '$said'"
said=$(cd / && eval "$(print_lines_to_use)" && pwd)
[[ $said == *"-DBRAID_DEVELOP=OFF"*"$root" ]] || stop 1 "from elsewhere the lines ran '$said'"
touch "$torch/lib/libtorch_cuda.so"
nvcc=/opt/cuda/bin/nvcc
expect "CUDACXX=/opt/cuda/bin/nvcc" print_lines_to_use
expect "-DBRAID_GPU=cuda" print_lines_to_use
compiler="ccache g++-14 -m64"
expect "CUDAHOSTCXX=g++-14 " print_lines_to_use
left_behind=(-u CPATH "PATH=$work/a folder/bin")
expect "env -u CPATH PATH=$work/a\\ folder/bin CXX=ccache" print_lines_to_use
expect "&& env -u CPATH" print_lines_to_use
left_behind=()
compiler=g++
VIRTUAL_ENV= CONDA_PREFIX= expect "python3 -m venv ~/braid-python &&" print_lines_to_python
VIRTUAL_ENV=/somewhere expect "python3 -m pip install $root/python" print_lines_to_python

# LibTorch: where it is cached, and how old it may be.
cache_with() { (XDG_CACHE_HOME=$1 && . "$root/tools/shell/torch.sh" && echo "cache is $cache"); }
expect "cache is ${HOME:-~}/.cache/braid" cache_with ""
expect "cache is ${HOME:-~}/.cache/braid" cache_with relative
expect "cache is /elsewhere/braid" cache_with /elsewhere
mkdir -p "$torch/share/cmake/Torch"
touch "$torch/lib/libtorch_cpu.so"
choose() { BRAID_TORCH=$torch choose_torch && echo "takes $torch"; }
echo 'set(PACKAGE_VERSION "2.9.1")' >"$torch/share/cmake/Torch/TorchConfigVersion.cmake"
expect "is LibTorch 2.9.1, but 2.11 or later is needed" choose
echo 'set(PACKAGE_VERSION "2.11.0")' >"$torch/share/cmake/Torch/TorchConfigVersion.cmake"
expect "takes $torch" choose

# The build folder's name does not depend on the locale.
mkdir -p "$work/földer"
cp -r "$torch/." "$work/földer/"
folder_in() { LC_ALL=$1 BRAID_TORCH=$work/földer choose_torch && echo "in $build;"; }
expect "$(folder_in C)" folder_in C.UTF-8
printf 'setup_test: right\n'

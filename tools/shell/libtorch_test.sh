#!/usr/bin/env bash
# Tests that a program takes the LibTorch that it was linked with, whatever another one's owner has set. Libraries of one
# line stand for LibTorch's.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
for part in messages packages; do . "$root/tools/shell/$part.sh"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find_compiler || stop 2 "no C++ compiler was found: install g++ 12 or later"

# made_libtorch FOLDER NUMBER: one whose function which() returns the number.
made_libtorch() {
  mkdir -p "$1"/{lib,include,share/cmake/Torch}
  echo 'set(PACKAGE_VERSION "99.0.0")' >"$1/share/cmake/Torch/TorchConfigVersion.cmake"
  echo "int which() { return $2; }" | compile_with -shared -fPIC -x c++ - -o "$1/lib/libtorch_cpu.so" -Wl,-soname,libtorch_cpu.so
  echo | compile_with -shared -fPIC -x c++ - -o "$1/lib/libc10.so" -Wl,-soname,libc10.so
}

made_libtorch "$work/own" 0
made_libtorch "$work/other" 1
mkdir "$work/source"
cat >"$work/source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(which LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH "$root/cmake")
find_package(LibTorch 2.11 REQUIRED)
file(WRITE \${CMAKE_BINARY_DIR}/main.cc "int which(); int main() { return which(); }")
add_executable(which \${CMAKE_BINARY_DIR}/main.cc)
target_link_libraries(which torch::cpu)
END
{ CXX=$compiler cmake -S "$work/source" -B "$work/build" -G Ninja "-DLibTorch_ROOT_DIR=$work/own" &&
  cmake --build "$work/build"; } >"$work/log" 2>&1 || { cat "$work/log" >&2 && stop 1 "nothing was linked"; }
"$work/build/which" || stop 1 "the program should take its own LibTorch"
LD_LIBRARY_PATH=$work/other/lib "$work/build/which" || stop 1 "the program should not take another LibTorch"
printf 'libtorch_test: right\n'

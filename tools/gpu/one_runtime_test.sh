#!/usr/bin/env bash
# one_runtime_test.sh FOLDER LIBTORCH COMPILER: programs for AMD's GPUs get LibTorch's HIP runtime and no
# other, wherever LibTorch has it, also with ROCm installed, whose runtime CMake adds. Those for NVIDIA's get
# the CUDA runtime that LibTorch names, of several. With libraries that have nothing in them but names.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
folder=$1 libtorch=$2 compiler=$3
for part in messages packages; do . "$root/tools/shell/$part.sh"; done
rm -rf "$folder"

# make_library FILE SONAME TEXT
make_library() {
  mkdir -p "$(dirname "$1")"
  printf '%s\n' "$3" | compile_with -shared -fPIC -x c++ - -o "$1" "-Wl,-soname,$2"
}

# make_libtorch PLACE GPU: `PLACE`, with a runtime of that GPU's to be put beside it.
make_libtorch() {
  mkdir -p "$1/lib"
  ln -s "$libtorch/include" "$libtorch/share" "$1"
  for library in c10 torch_cpu "c10_$2" "torch_$2"; do
    make_library "$1/lib/lib$library.so" "lib$library.so" ""
  done
}

# expect_runtime PLACE NAME PATH: a program linked with PLACE needs NAME, and finds it in PATH.
expect_runtime() {
  local build=$folder/build needed found links="torch::hip $folder/opt/rocm/lib/libamdhip64.so" call=hipInit
  [[ $2 != libcudart* ]] || links=torch::cuda call=cudaInit
  rm -rf "$build"
  mkdir -p "$folder/source"
  cat >"$folder/source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(one_runtime LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH $root/cmake)
find_package(LibTorch 2.11 REQUIRED)
file(WRITE \${CMAKE_BINARY_DIR}/main.cc "int $call(int); int main() { return $call(0); }")
add_executable(one_runtime \${CMAKE_BINARY_DIR}/main.cc)
target_link_libraries(one_runtime $links)
END
  CXX=$compiler cmake -S "$folder/source" -B "$build" -G Ninja "-DLibTorch_ROOT_DIR=$1" >"$folder/log" 2>&1 &&
    cmake --build "$build" >>"$folder/log" 2>&1 || { cat "$folder/log" >&2; stop 1 "nothing was linked with $1"; }
  needed=$(readelf -d "$build/one_runtime" | sed -n 's/.*NEEDED.*\[\(lib\(amdhip64\|cudart\)[^]]*\)\].*/\1/p')
  [[ $needed == "$2" ]] || stop 1 "a program with $1 should need $2, it needs ${needed//$'\n'/ and }"
  # A pipe into grep -q fails when grep leaves before ldd has written everything.
  found=$(ldd "$build/one_runtime")
  [[ $found == *"$2 => $3 "* ]] || stop 1 "a program with $1 does not find its runtime $3: $found"
  [[ $(readelf -d "$build/one_runtime") =~ RPATH|RUNPATH ]] || stop 1 "a program with $1 has no run path"
}

runtime='int hipInit(int) { return 0; }'
make_library "$folder/opt/rocm/lib/libamdhip64.so" libamdhip64.so.6 "$runtime"

make_libtorch "$folder/inside/torch" hip
make_library "$folder/inside/torch/lib/libamdhip64.so" libamdhip64.so "$runtime"
expect_runtime "$folder/inside/torch" libamdhip64.so "$folder/inside/torch/lib/libamdhip64.so"

# ROCm's wheels: the runtime needs libraries that only a run path of the program finds.
make_libtorch "$folder/wheels/torch" hip
core=$folder/wheels/_rocm_sdk_core/lib
make_library "$core/rocm_sysdeps/lib/librocm_sysdeps_numa.so.1" librocm_sysdeps_numa.so.1 'int numa() { return 0; }'
printf 'int numa(); int hipInit(int) { return numa(); }\n' |
  compile_with -shared -fPIC -x c++ - -o "$core/libamdhip64.so.7" -Wl,-soname,libamdhip64.so.7 \
    -x none "$core/rocm_sysdeps/lib/librocm_sysdeps_numa.so.1"
expect_runtime "$folder/wheels/torch" libamdhip64.so.7 "$core/libamdhip64.so.7"
"$folder/build/one_runtime" || stop 1 "a program with ROCm's wheels does not start"

# CUDA's wheels, of more than one version.
make_libtorch "$folder/cuda/torch" cuda
for major in 12 13; do
  make_library "$folder/cuda/nvidia/cu$major/lib/libcudart.so.$major" "libcudart.so.$major" \
    'int cudaInit(int) { return 0; }'
done
for major in 12 13; do
  runtime=$folder/cuda/torch/../nvidia/cu$major/lib/libcudart.so.$major
  echo | compile_with -shared -x c++ - -x none -o "$folder/cuda/torch/lib/libtorch_cuda.so" \
    -Wl,-soname,libtorch_cuda.so -Wl,--no-as-needed "$runtime"
  expect_runtime "$folder/cuda/torch" "libcudart.so.$major" "$runtime"
done
printf 'one_runtime_test: right\n'

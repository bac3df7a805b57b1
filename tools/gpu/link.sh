# Links programs for NVIDIA's GPUs, on machines without one. Sourced.

# Sets `cuda_torch` to a LibTorch with CUDA and the CUDA libraries that it needs, 4 GB.
fetch_cuda_torch() {
  local wish=$root/tools/gpu/cuda_torch.txt version
  cuda_torch=${BRAID_CUDA_TORCH:-}
  [[ -z $cuda_torch ]] || return 0
  version=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' "$wish")
  cuda_torch=$cache/cuda-$version/torch
  [[ -e $cuda_torch/lib/libtorch_cuda.so ]] ||
    fetch_wheels "${cuda_torch%/torch}" "LibTorch $version with CUDA, 2.5 GB" \
      "set BRAID_CUDA_TORCH=DIR to one" -r "$wish"
}

# fetch_files FOLDER PIP-ARGUMENT...: wheels, not unpacked.
fetch_files() {
  local folder=$1
  shift
  find_pip || stop 2 "pip is missing. As root, run: apt-get install python3-pip"
  rm -rf "$folder.partial"
  "$python" -m pip download -q --disable-pip-version-check --no-cache-dir --no-deps \
    --only-binary=:all: --dest "$folder.partial" "$@" >&2 </dev/null ||
    stop 1 "these wheels could not be fetched: $*"
  mv "$folder.partial" "$folder"
}

# build_for_nvidia LIBTORCH BUILD DEVICES TARGET...: with the run paths of a kit, and one CUDA runtime.
build_for_nvidia() {
  local libtorch=$1 folder=$2 devices=$3
  local own="\$ORIGIN/../torch/lib"
  shift 3
  make_folder "$folder"
  CXX=$compiler CUDAHOSTCXX=$(host_compiler) CUDACXX=$nvcc cmake -S "$root" -B "$folder" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DBRAID_GPU=cuda "-DLibTorch_ROOT_DIR=$libtorch" \
    "-DCMAKE_CUDA_ARCHITECTURES=$devices" -DBRAID_WERROR=ON -DBRAID_DEVELOP=ON \
    "-DCMAKE_BUILD_RPATH=\$ORIGIN/../lib;$own;$own/../../nvidia/cu13/lib;$own/../../nvidia/nccl/lib" \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags \
    >"$folder/braid-build.log" 2>&1 || show_failure "$folder/braid-build.log"
  ! grep -q cudart_static "$folder/build.ninja" ||
    stop 1 "programs would have two CUDA runtimes: LibTorch's and a static one"
  compile "$folder" "$@"
}

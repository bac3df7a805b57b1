# ./check --gpu: compiles the sources that only GPU builds have, for every supported device, on machines
# without one. Nothing runs here: gpu_kernels_test tests the kernels on the host, and ops_test on a
# device. No header comes from a folder where CUDA's may lie by chance, such as /usr/local/include.
# Sourced.

nvidia_devices=(80 86 89 90 100 120)
amd_devices=(gfx90a gfx1030)
# Debian's HIP has no device library for these. Another device's stands in, which a compiler accepts and
# a device would not.
amd_devices_by_proxy=(gfx1100 gfx1101)

# clang 15 now and then corrupts its own memory in the pass that inserts waits for gfx11's units.
no_delays=(-Xclang -mllvm -Xclang -amdgpu-enable-delay-alu=0)

gpu_sources=(src/ops/gpu/gpu.cu src/base/gpu_runtime.cu)
# What else GPU builds have, in C++; a line is compiled as one.
host_sources=("src/comm/device/{device_link,device_reads,nccl,nccl_communicator,nccl_communicators,nccl_link,side_stream}.cc"
  "src/comm/linked_transport.cc" "src/pipeline/graphs/{cuda_graph,graph_pool,step_graph}.cc"
  "src/ops/gpu/{blocks,float8,gelu_product,gpu,int8,launch_shape,stream}.cc")

# compile_for DEVICE COMMAND...: prints one line if all sources compile, else the compiler's output.
compile_for() {
  local device=$1 log=$gpu_folder/compile.log start=$SECONDS source
  shift
  for source in "${gpu_sources[@]}"; do
    "$@" -c "$source" -o "$gpu_folder/compiled.o" >"$log" 2>&1 || {
      cat "$log" >&2
      stop 1 "$source does not compile for $device"
    }
  done
  printf 'compiled for %s, not run (%d s)\n' "$device" "$((SECONDS - start))"
}

# Sets `own_headers`: options for no header folders but the compiler's and the C library's.
find_own_headers() {
  local folder
  own_headers=()
  while read -r folder; do
    [[ $folder == /usr/local/include ]] || own_headers+=(-isystem "$folder")
  done < <(compile_with -E -x c++ -v /dev/null 2>&1 | sed -n '/^#include </,/^End/s/^ //p')
}

# What a compiler noted as read, but that a machine with a GPU need not have.
chance_headers() {
  tr -s ' \\' '\n\n' <"$1" | grep -v '^src/' |
    grep -E '/r?nccl[^/]*\.h$|^/usr/(local/)?include/(.*/)?(cuda|crt/|nv/|cub/|thrust/|hip/)' || true
}

# The C++ sources of builds for NVIDIA, with LibTorch's headers and those of nvcc's folder.
compile_host_sources() {
  local line file start=$SECONDS one=$gpu_folder/one.cc noted=$gpu_folder/one.d toolkit found
  toolkit=$(dirname "$(readlink -f "$nvcc")")/../include
  [[ -e $toolkit/cuda_runtime.h ]] || toolkit=$(dirname "$nvcc")/../include
  for line in "${host_sources[@]}"; do
    for file in $(eval "echo $line"); do echo "#include \"$root/$file\""; done >"$one"
    compile_with -std=c++20 -fopenmp -fPIC -fsyntax-only -Wall -Wextra -Wno-restrict -Wno-stringop-overflow \
      -Wno-array-bounds -Werror -nostdinc -nostdinc++ -Isrc -Iinclude -isystem "$torch/include" \
      -isystem "$toolkit" "${own_headers[@]}" -MD -MF "$noted" "$one" >"$gpu_folder/compile.log" 2>&1 || {
      cat "$gpu_folder/compile.log" >&2
      stop 1 "$line does not compile with the headers of $torch and $toolkit alone"
    }
    found=$(chance_headers "$noted")
    [[ -z $found ]] || stop 1 "$line reads $found, which machines with a GPU need not have"
  done
  printf 'compiled with the headers of LibTorch and nvcc alone (%d s)\n' "$((SECONDS - start))"
}

# make_archive FOLDER MAJOR: laid out as the archive of a LibTorch with CUDA is, without its code.
make_archive() {
  local folder=$1 library
  rm -rf "$folder"
  mkdir -p "$folder/lib"
  ln -s "$torch/include" "$torch/share" "$folder"
  for library in "$torch"/lib/lib{c10,torch_cpu}.so "$torch"/lib/libgomp*; do
    ln -s "$library" "$folder/lib"
  done
  touch "$folder"/lib/lib{c10,torch}_cuda.so "$folder/lib/libcudart-2c33f8d0.so.$2"
}

configure_with() {
  CXX=$compiler CUDAHOSTCXX=$(host_compiler) CUDACXX=$nvcc cmake -S "$root" -B "$1/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DBRAID_GPU=cuda "-DLibTorch_ROOT_DIR=$1" -DBRAID_DEVELOP=OFF \
    >"$1/configure.log" 2>&1
}

# An unpacked LibTorch has libraries of NCCL's, at most, and no headers.
configure_archives() {
  local start=$SECONDS folder=$gpu_folder/archive major
  major=$(nvcc_version "$nvcc")
  major=${major%%.*}
  make_archive "$folder" "$major"
  configure_with "$folder" || show_failure "$folder/configure.log"
  make_archive "$folder" 11
  ! configure_with "$folder" || stop 1 "nvcc of CUDA $major was taken for a LibTorch of CUDA 11"
  [[ $(tr -s ' \n' ' ' <"$folder/configure.log") == *"LibTorch has the runtime of CUDA 11. Set CUDACXX"* ]] ||
    show_failure "$folder/configure.log"
  printf 'configured with a LibTorch as archives have it (%d s)\n' "$((SECONDS - start))"
}

compile_for_nvidia() {
  local device
  local -a codes=()
  fetch_nvcc
  find_own_headers
  compile_host_sources
  configure_archives
  for device in "${nvidia_devices[@]}"; do
    codes+=(-gencode "arch=compute_$device,code=sm_$device")
  done
  compile_for "NVIDIA ${nvidia_devices[*]/#/sm_}" "$nvcc" -ccbin "$(host_compiler)" -std=c++17 -O3 -fmad=false \
    --threads "$(jobs)" -Werror all-warnings -Isrc -Xcompiler -nostdinc,-nostdinc++ "${own_headers[@]}" \
    "${codes[@]}"
}

# The device library with an entry for each proxied device.
make_proxy_library() {
  local real=$1 proxy=$2 device
  rm -rf "$proxy"
  mkdir -p "$proxy"
  ln -s "$real"/*.bc "$proxy"
  for device in "${amd_devices_by_proxy[@]}"; do
    ln -s "$real/oclc_isa_version_1030.bc" "$proxy/oclc_isa_version_${device#gfx}.bc"
  done
}

compile_for_amd() {
  local library
  local -a hip=(hipcc -std=c++17 -O3 -ffp-contract=off -Wall -Werror -x hip -Isrc)
  command -v hipcc >/dev/null || {
    printf 'not compiled for AMD: there is no hipcc\n'
    return 0
  }
  compile_for "AMD ${amd_devices[*]}" "${hip[@]}" "${amd_devices[@]/#/--offload-arch=}"
  library=$(find /usr/lib -name oclc_isa_version_1030.bc -printf '%h\n' -quit)
  [[ -n $library ]] || return 0
  make_proxy_library "$library" "$gpu_folder/bitcode"
  compile_for "AMD ${amd_devices_by_proxy[*]} (gfx1030's device library in the place of theirs)" \
    "${hip[@]}" --hip-device-lib-path="$gpu_folder/bitcode" "${no_delays[@]}" \
    "${amd_devices_by_proxy[@]/#/--offload-arch=}"
}

# The whole program, if a LibTorch with CUDA is available, such as the active Python's torch.
link_for_nvidia() {
  [[ -n ${BRAID_CUDA_TORCH:-} ]] || {
    printf 'not linked: BRAID_CUDA_TORCH names no LibTorch with CUDA\n'
    return 0
  }
  fetch_cuda_torch
  build_for_nvidia "$cuda_torch" "$root/build/cuda" 90-real braid_program braid device_test ops_test
  printf 'linked with %s, not run on a GPU\n' "$cuda_torch"
}

run_gpu() {
  stage "gpu, compiled only"
  gpu_folder=$root/build/gpu
  make_folder "$gpu_folder"
  "$root/tools/gpu/one_runtime_test.sh" "$gpu_folder/one_runtime" "$torch" "$compiler" ||
    stop 1 "programs for AMD's GPUs would have two HIP runtimes"
  compile_for_nvidia
  compile_for_amd
  link_for_nvidia
}

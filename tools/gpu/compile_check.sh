# ./check --gpu: compiles the sources that only GPU builds have, for every supported device, on machines
# without one. Nothing runs here: gpu_kernels_test tests the kernels on the host, and ops_test on a
# device. Sourced.

nvidia_devices=(80 86 89 90 100 120)
amd_devices=(gfx90a gfx1030)
# Debian's HIP has no device library for these. Another device's stands in, which a compiler accepts and
# a device would not.
amd_devices_by_proxy=(gfx1100 gfx1101)

gpu_sources=(src/ops/gpu/gpu.cu src/base/gpu_runtime.cu)

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

compile_for_nvidia() {
  local device
  local -a codes=()
  fetch_nvcc
  for device in "${nvidia_devices[@]}"; do
    codes+=(-gencode "arch=compute_$device,code=sm_$device")
  done
  compile_for "NVIDIA ${nvidia_devices[*]/#/sm_}" "$nvcc" -ccbin "$compiler" -std=c++17 -O3 -fmad=false \
    --threads "$(jobs)" -Werror all-warnings -Isrc "${codes[@]}"
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
    "${hip[@]}" --hip-device-lib-path="$gpu_folder/bitcode" "${amd_devices_by_proxy[@]/#/--offload-arch=}"
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
  compile_for_nvidia
  compile_for_amd
  link_for_nvidia
}

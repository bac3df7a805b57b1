# ./check --oldest: every source that sees tensors compiles with the headers of the oldest LibTorch that
# CMakeLists.txt declares. Nothing is linked or run. Sourced.

# Sets `headers` to the folder with cmake/libtorch_oldest.txt's headers, fetched once.
fetch_oldest_headers() {
  local wish=$root/cmake/libtorch_oldest.txt declared version folder
  declared=$(sed -n 's/^find_package(LibTorch \([0-9.]*\) .*/\1/p' "$root/CMakeLists.txt")
  version=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' "$wish")
  [[ $version == "$declared".* ]] ||
    stop 1 "CMakeLists.txt requires LibTorch $declared, but the headers are those of $version"
  folder=$cache/headers-$version
  headers=$folder/torch/include
  [[ -d $headers ]] || fetch_wheels "$folder" "the headers of LibTorch $version, 80 MB" \
    "copy $folder here" --platform macosx_11_0_arm64 -r "$wish"
}

# Sources that name something of LibTorch's, and with them our headers. Excluded are loops that see no
# tensors.
sources_with_tensors() {
  grep -lrE --include='*.cc' '\<(at|c10)::' src |
    grep -vE 'src/ops/kernels/' | sort
}

# ATen's header is precompiled once; then each source takes a core 2 to 4 s.
run_oldest() {
  stage "headers of the oldest LibTorch"
  local folder=$root/build/oldest headers start=$SECONDS
  fetch_oldest_headers
  fetch_nvcc # for the headers of its runtime
  make_folder "$folder/c10/cuda/impl"
  # Needed by cuda_graph.cc, and missing on a system without CUDA.
  echo '#define C10_CUDA_BUILD_SHARED_LIBS' >"$folder/c10/cuda/impl/cuda_cmake_macros.h"
  local -a flags=(-std=c++20 -fopenmp -fPIC -fvisibility=hidden -Wall -Wextra -Wno-restrict
    -Wno-stringop-overflow -Wno-array-bounds -Werror "-DBRAID_VERSION=\"oldest\""
    -Isrc -Iinclude -isystem "$folder" -isystem "$headers" -isystem "$(dirname "$nvcc")/../include")
  local -a command
  read -ra command <<<"$compiler" # CXX may be "ccache g++"
  echo '#include <ATen/ATen.h>' >"$folder/aten.h"
  "${command[@]}" "${flags[@]}" -x c++-header "$folder/aten.h" -o "$folder/aten.h.gch" ||
    stop 1 "ATen's header does not compile"
  sources_with_tensors | xargs -P "$(jobs)" -n 1 \
    "${command[@]}" "${flags[@]}" -include "$folder/aten.h" -fsyntax-only ||
    stop 1 "these sources do not compile against $headers"
  printf '%d sources compile against LibTorch %s (%d s)\n' "$(sources_with_tensors | wc -l)" \
    "$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' cmake/libtorch_oldest.txt)" "$((SECONDS - start))"
}

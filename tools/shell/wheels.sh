# Fetches from PyPI into the cache, completely or not at all. Sourced.

# fetch_wheels FOLDER NAME HINT PIP-ARGUMENT...: unpacks the wheels into FOLDER, which appears once it is
# complete. Wheels are only unpacked, never installed, so any Python will do, including one protected by
# PEP 668. HINT: what to do without a network.
fetch_wheels() {
  local folder=$1 name=$2 hint=$3 arch tag quiet=-q failed=
  partial=$1.partial # not local: the trap runs when the function has ended
  shift 3
  arch=$(uname -m)
  local -a platforms=()
  for tag in manylinux_2_28 manylinux_2_27 manylinux_2_25 manylinux_2_18 manylinux_2_17 manylinux2014 \
    manylinux_2_12 manylinux2010; do
    platforms+=(--platform "${tag}_$arch")
  done
  trap 'rm -rf "$partial"' EXIT
  rm -rf "$partial"
  mkdir -p "$partial/tmp" # pip unpacks there: /tmp may be small
  say "fetching $name into $folder (once)"
  [[ -t 2 ]] && quiet=--progress-bar=on
  find_pip || stop 2 "pip is missing. As root, run: apt-get install python3-pip"
  start_filter tee "$partial/errors" # only errors go through it: pip draws its progress on a terminal
  TMPDIR=$partial/tmp run "$python" -m pip download $quiet --disable-pip-version-check --no-cache-dir --no-deps \
    --require-hashes --only-binary=:all: --implementation cp --python-version 3.12 "${platforms[@]}" \
    --dest "$partial/wheels" "$@" 2>&"$output" >&2 </dev/null || failed=yes
  end_filter
  [[ -z $failed ]] || stop 1 "$name could not be fetched.$(without_network "$partial/errors" "$hint")"
  "$python" "$root/tools/shell/unpack_wheels.py" "$partial/wheels" "$partial" ||
    stop 1 "$name could not be unpacked into $folder"
  rm -rf "$partial/"{wheels,tmp,errors} "$folder"
  mv "$partial" "$folder"
  trap - EXIT
}

# without_network ERRORS HINT: the hint, if pip's errors are of a connection.
without_network() {
  ! grep -qiE 'connection|name resolution|timed out|unreachable|proxy|certificate' "$1" || echo " Without a network, $2."
}

fetch_torch() {
  [[ -n ${BRAID_TORCH:-} || -e $torch/lib/libtorch_cpu.so ]] ||
    fetch_wheels "${torch%/torch}" "LibTorch, 570 MB" "set BRAID_TORCH=DIR to a LibTorch" \
      -r "$root/cmake/libtorch.txt"
}

# nvcc_version NVCC: "13.0"; empty if there is no such program.
nvcc_version() { [[ -z $1 ]] || LC_ALL=C "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p' || true; }

# runtime_major LIBTORCH: "13", of the CUDA runtime that it loads; empty if there is none. Its kernels say
# which that is; where they do not, it is the one beside them.
runtime_major() {
  local file major
  major=$(LC_ALL=C readelf -d "$1/lib/libtorch_cuda.so" 2>/dev/null |
    sed -n 's/.*NEEDED.*\[libcudart[^]]*\.so\.\([0-9]*\).*/\1/p' || true)
  [[ -z $major ]] || {
    echo "$major"
    return 0
  }
  for file in "$1"/../nvidia/cu*/lib/libcudart.so.* "$1"/lib/libcudart*.so.*; do
    [[ -e $file && $file =~ \.so\.([0-9]+) ]] || continue
    echo "${BASH_REMATCH[1]}"
    return 0
  done
}

find_nvcc() { command -v nvcc || true; }

# Sets `nvcc`: $CUDACXX, else the system's, else PyPI's. CUDA 12.9 and later support all devices. What it
# compiles runs on LibTorch's CUDA runtime, so it has to be of the same major version.
fetch_nvcc() {
  local folder=$cache/nvcc-13.0.88 version major
  nvcc=${CUDACXX:-$(find_nvcc)}
  version=$(nvcc_version "$nvcc")
  major=$(runtime_major "${torch:-}")
  [[ -n $version ]] && at_least 12.9 "$version" && [[ -z $major || ${version%%.*} == "$major" ]] &&
    return 0
  [[ -z ${CUDACXX:-} || -z $version || -z $major || ${version%%.*} == "$major" ]] ||
    stop 2 "CUDACXX=$CUDACXX is of CUDA $version, but the LibTorch in $torch has the runtime of CUDA" \
      "$major: it should be an nvcc of CUDA $major"
  [[ -z ${CUDACXX:-} ]] ||
    stop 2 "CUDACXX=$CUDACXX should be an nvcc of CUDA 12.9 or later, it is ${version:-none}"
  [[ -z $major || $major == 13 ]] ||
    stop 2 "the LibTorch in $torch has the runtime of CUDA $major, so an nvcc of CUDA $major is needed," \
      "12.9 or later: set CUDACXX to it"
  nvcc=$folder/nvidia/cu13/bin/nvcc
  [[ -x $nvcc ]] || fetch_wheels "$folder" "nvcc, 100 MB" \
    "install CUDA 12.9 or later, or set CUDACXX to its nvcc" -r "$root/tools/shell/nvcc.txt"
}

# Sets `clang_format`: one version, so that every machine formats alike.
fetch_clang_format() {
  clang_format=$cache/clang-format-14.0.6/clang_format/data/bin/clang-format
  [[ -x $clang_format ]] ||
    fetch_wheels "$cache/clang-format-14.0.6" "clang-format" "copy $cache/clang-format-14.0.6 here" \
      -r "$root/tools/shell/clang_format.txt"
}

# Sets `clang_tidy`, also one version.
fetch_clang_tidy() {
  clang_tidy=$cache/clang-tidy-18.1.8/clang_tidy/data/bin/clang-tidy
  [[ -x $clang_tidy ]] ||
    fetch_wheels "$cache/clang-tidy-18.1.8" "clang-tidy" "copy $cache/clang-tidy-18.1.8 here" \
      -r "$root/tools/shell/clang_tidy.txt"
}

# Puts a new enough cmake first on the PATH if the system's is too old (Ubuntu 22.04).
fetch_cmake() {
  local folder=$cache/cmake-3.31.6
  have_cmake && return 0
  [[ -x $folder/cmake/data/bin/cmake ]] || fetch_wheels "$folder" "CMake" \
    "install CMake 3.25 or later" -r "$root/tools/shell/cmake.txt"
  PATH=$folder/cmake/data/bin:$PATH
}

# prepare PART...: everything needed before CMake runs. Parts are those of packages.sh.
prepare() {
  mkdir -p "$cache" 2>/dev/null && [[ -w $cache ]] ||
    stop 2 "$cache cannot be written. Set XDG_CACHE_HOME to a folder that can."
  lock "$cache/lock"
  install_packages "$@"
  find_compiler || stop 2 "no C++ compiler was found: install g++ 12 or later"
  fetch_cmake
  fetch_torch
  [[ $(torch_gpu) != cuda ]] || fetch_nvcc
  unlock
}

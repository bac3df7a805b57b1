# Configures and builds with one line of progress, the rest in a log. Sourced.

# One job per core, limited by 1.5 GB of memory each: what a file with ATen.h takes.
jobs() {
  local cores available limit
  cores=$(nproc)
  available=$(awk '/^MemAvailable/ {print int($2 / 1536 / 1024)}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  [[ $limit == max ]] || ((available < limit / 1610612736)) || available=$((limit / 1610612736))
  ((available >= 1)) || available=1
  echo $((cores < available ? cores : available))
}

# Copies ninja's output to the log; on a terminal, its counter to stderr.
show_progress() {
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line" >&3
    if [[ -t 2 && $line == \[* ]]; then
      printf '\r\033[K%s: building %s]' "${0##*/}" "${line%%]*}" >&2
    fi
  done 3>>"$1"
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

# Shows the log from the first failure on, or its end.
show_failure() {
  { grep -A 25 -m 1 -E '^(FAILED:|CMake Error)' "$1" || tail -n 25 "$1"; } >&2
  stop 1 "the build failed; all of its output is in $1"
}

make_folder() { mkdir -p "$1" 2>/dev/null && [[ -w $1 ]] || stop 2 "$1 cannot be written"; }

# configure FOLDER CMAKE-ARGUMENT...: does nothing if the folder is configured for this LibTorch with
# (at least) these arguments, so that ./braid, which passes none, shares a folder with ./check.
configure() {
  local folder=$1 log=$1/braid-build.log gpu wanted
  shift
  wanted=$torch${*:+ $*}
  if [[ ! -e $folder/build.ninja ]]; then
    set -- -DBRAID_DEVELOP=OFF "$@" # a later argument wins
  elif [[ "$(cat "$folder/braid-configured" 2>/dev/null) " == "$wanted "* ]]; then
    return 0
  fi
  gpu=$(torch_gpu)
  [[ $gpu != cuda ]] || export CUDACXX=$nvcc
  CXX=$compiler CUDAHOSTCXX=$compiler cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    "-DLibTorch_ROOT_DIR=$torch" "-DBRAID_GPU=$gpu" "$@" >"$log" 2>&1 || show_failure "$log"
  printf '%s\n' "$wanted" >"$folder/braid-configured"
}

# compile FOLDER TARGET...
compile() {
  local folder=$1 log=$1/braid-build.log
  shift
  [[ -t 2 ]] || say "building in $folder"
  : >"$log"
  NINJA_STATUS='[%f/%t] ' cmake --build "$folder" -j "$(jobs)" --target "$@" 2>&1 |
    show_progress "$log" || show_failure "$log"
}

# Configures and builds with one line of progress, the rest in a log. Sourced.

for part in jobs sources; do . "$root/tools/shell/$part.sh"; done

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

# Shows the log from just before the first failure on, or its end. pkg-config's messages, which name what is
# missing, come before CMake's.
show_failure() {
  { LC_ALL=C grep -a -B 4 -A 25 -m 1 -E '^(FAILED:|CMake Error)' "$1" || tail -n 25 "$1"; } >&2
  stop 1 "the build failed; all of its output is in $1"
}

make_folder() { mkdir -p "$1" 2>/dev/null && [[ -w $1 ]] || stop 2 "$1 cannot be written"; }

# cached FOLDER NAME: what CMake's cache in the folder says.
cached() { sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt" 2>/dev/null || true; }

# Whether the folder was configured for this checkout and in this place, rather than for one that was copied or
# moved, by this system, and with the compiler that CXX asks for.
is_ours() {
  local made_by
  [[ $(cached "$1" CMAKE_HOME_DIRECTORY) -ef $2 && $(cached "$1" CMAKE_CACHEFILE_DIR) -ef $1 ]] || return 1
  [[ -e $1/build.ninja ]] || return 1 # a configuration that failed keeps its compiler
  [[ -e $1/braid-made-by ]] || return 0
  made_by=$(<"$1/braid-made-by")
  [[ $made_by == "$(system_name)"$'\n'* && (-z ${CXX:-} || $made_by == *$'\n'"$CXX") ]]
}

# forget_others FOLDER SOURCE: lets CMake and ninja start afresh unless the folder is ours.
forget_others() {
  ! is_ours "$1" "$2" || return 0
  rm -rf "$1"/{CMakeCache.txt,CMakeFiles,build.ninja,.ninja_log,.ninja_deps,braid-configured,braid-made-by,braid-compiled}
}

# Folders of earlier releases do not say it.
say_made_by() {
  [[ -e $1/braid-made-by ]] || printf '%s\n%s\n' "$(system_name)" "$compiler" >"$1/braid-made-by"
}

# configure FOLDER CMAKE-ARGUMENT...: does nothing if the folder is configured for this LibTorch with
# (at least) these arguments, so that ./braid, which passes none, shares a folder with ./check.
configure() {
  local folder=$1 log=$1/braid-build.log gpu wanted
  shift
  wanted=$torch${*:+ $*}
  forget_others "$folder" "$root"
  if [[ ! -e $folder/build.ninja ]]; then
    set -- -DBRAID_DEVELOP=OFF "$@" # a later argument wins
  elif [[ "$(cat "$folder/braid-configured" 2>/dev/null) " == "$wanted "* ]]; then
    say_made_by "$folder"
    return 0
  fi
  gpu=$(torch_gpu)
  [[ $gpu != cuda ]] || export CUDACXX=$nvcc
  CXX=$compiler CUDAHOSTCXX=$(host_compiler) run cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    "-DLibTorch_ROOT_DIR=$torch" "-DBRAID_GPU=$gpu" "$@" >"$log" 2>&1 || show_failure "$log"
  printf '%s\n' "$wanted" >"$folder/braid-configured"
  say_made_by "$folder"
}

# renew_changed FOLDER: ninja compares times by order. Sources that differ from those that the last build began with get
# the present time, unless they are newer than all that it made.
renew_changed() {
  local path
  [[ -e $1/.ninja_log ]] || return 0
  source_list tests bench fuzz | LC_ALL=C comm -13 <(cat "$1/braid-compiled" 2>/dev/null) - | sed 's/^[^ ]*  //' |
    while IFS= read -r path; do
      [[ $root/$path -nt $1/.ninja_log ]] || touch -c "$root/$path" || return 1
    done
}

# compile FOLDER TARGET... leaves a file braid-compiled, the list of the sources that it began with.
compile() {
  local folder=$1 log=$1/braid-build.log failed=
  shift
  [[ -t 2 ]] || say "building in $folder"
  renew_changed "$folder" ||
    stop 2 "the times of the sources in $root cannot be set: ninja would not see which of them changed"
  : >"$log"
  source_list tests bench fuzz >"$folder/braid-compiled"
  start_filter show_progress "$log"
  # The program that CMake found, without CMake before it, which would end at a signal before it does.
  NINJA_STATUS='[%f/%t] ' run "$(cached "$folder" CMAKE_MAKE_PROGRAM)" -C "$folder" -j "$(jobs)" "$@" \
    >&"$output" 2>&1 || failed=yes
  end_filter
  [[ -z $failed ]] || show_failure "$log"
}

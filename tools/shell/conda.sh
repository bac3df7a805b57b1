# Keeps conda's compilers and libraries out of a build with the system's packages. First in a search path, they would be
# mixed with the system's, and gone with the environment. Sourced.

left_behind=() came_with=()

# is_conda PATH: whether it lies in an environment, be it active or not.
is_conda() {
  local folder=$1
  while [[ $folder == /?* ]]; do
    [[ ! -d $folder/conda-meta ]] || return 0
    folder=${folder%/*}
  done
  return 1
}

# names_conda WORDS: whether a program or an option among them (-I/x, -Wl,-rpath,/x) is of an environment.
names_conda() {
  local word
  local -a words
  read -ra words <<<"${1//[,=]/ }"
  for word in "${words[@]}"; do
    [[ $word == */* ]] || word=$(command -v -- "$word") || continue
    ! is_conda "/${word#*/}" || return 0
  done
  return 1
}

# without_conda PATHS: sets `rest` to those of no environment; fails if that is all of them.
without_conda() {
  local folder left=
  local -a folders
  IFS=: read -ra folders <<<"$1"
  rest=
  for folder in "${folders[@]}"; do
    if is_conda "$folder"; then left=yes; else rest+=:$folder; fi
  done
  rest=${rest#:}
  [[ -n $left ]]
}

# Changes the environment. Sets `left_behind` to what `env` takes to do the same, `came_with` to what `export` takes to
# undo it, and `python_before` to the Python, which may be the only one that has pip.
leave_conda() {
  local name rest
  python_before=$(command -v python3 || true)
  for name in CC CXX CPP CFLAGS CXXFLAGS CPPFLAGS LDFLAGS NVCC_PREPEND_FLAGS NVCC_APPEND_FLAGS PKG_CONFIG; do
    [[ -n ${!name:-} ]] && names_conda "${!name}" || continue
    came_with+=("$name=${!name}") left_behind+=(-u "$name")
    unset "$name"
  done
  for name in PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH PKG_CONFIG_PATH \
    PKG_CONFIG_LIBDIR CMAKE_PREFIX_PATH CMAKE_INCLUDE_PATH CMAKE_LIBRARY_PATH CMAKE_PROGRAM_PATH; do
    [[ -n ${!name:-} ]] && without_conda "${!name}" || continue
    came_with+=("$name=${!name}")
    if [[ -n $rest ]]; then
      export "$name=$rest"
      left_behind+=("$name=$rest")
    else
      unset "$name"
      left_behind=(-u "$name" "${left_behind[@]}")
    fi
  done
  ((${#came_with[@]} == 0)) || say "the build is with the system's compilers and libraries, not with conda's"
}

# The last words of ./setup: what to run now. Sourced.

# Words as a shell takes them back.
quoted() {
  local words
  printf -v words ' %q' "$@"
  echo "${words# }"
}

# beside PROGRAM: of CMake's programs the one in the same folder as the cmake that is used, as the name alone may be of an older CMake.
beside() { echo "$(dirname -- "$(command -v cmake)")/$1"; }

# configure_line OPTION...: the preset with the compiler and the LibTorch that were found here.
configure_line() {
  local -a line=()
  local gpu at=
  gpu=$(torch_gpu)
  [[ $compiler == g++ ]] || line+=("CXX=$compiler" "CUDAHOSTCXX=$(host_compiler)")
  [[ $gpu != cuda ]] || line+=("CUDACXX=$nvcc")
  line=("${left_behind[@]}" "${line[@]}")
  ((${#line[@]} == 0)) || line=(env "${line[@]}")
  line+=("$(command -v cmake)" --preset release "-DLibTorch_ROOT_DIR=$torch")
  [[ -z $gpu ]] || line+=("-DBRAID_GPU=$gpu")
  [[ $root -ef . ]] || at="cd $(quoted "$root") && "
  echo "$at$(quoted "${line[@]}" "$@")"
}

build_line() {
  local -a line=()
  ((${#left_behind[@]} == 0)) || line=(env "${left_behind[@]}")
  quoted "${line[@]}" "$(command -v cmake)" --build --preset release -j "$(jobs)"
}

print_lines_to_use() { echo "$(configure_line -DBRAID_DEVELOP=OFF) && $(build_line)"; }
print_lines_to_develop() {
  echo "$(configure_line) && $(build_line) && $(quoted "$(beside ctest)" --preset release)"
}

# The package requires it (python/pyproject.toml).
require_python() {
  local version
  version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || return 0 # installed next
  at_least 3.11 "$version" || stop 2 "the Python package needs Python 3.11 or later; python3 is $version"
}

# Outside a virtual environment many systems refuse pip (PEP 668).
print_lines_to_python() {
  local pip="python3 -m pip install"
  [[ -n ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} ]] ||
    pip="python3 -m venv ~/braid-python && ~/braid-python/bin/python -m pip install"
  [[ $compiler == g++ ]] || pip="export $(quoted "CXX=$compiler") && $pip"
  echo "$pip $(quoted "$root/python")"
}

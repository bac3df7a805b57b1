# ./check --python: the Python package as a wheel, in a fresh environment. Sourced.

# made_environment FOLDER PACKAGE...: a virtual environment with these packages from PyPI.
made_environment() {
  local folder=$1
  shift
  rm -rf "$folder"
  python3 -m venv "$folder" || stop 1 "python3 cannot make a virtual environment"
  (($# == 0)) || "$folder/bin/python" -m pip install -q --disable-pip-version-check "$@" ||
    stop 1 "$* could not be installed"
}

# Sets `wheel` to the package's, linked to what was built for the tests. `pip install ./python` compiles that again.
build_wheel() {
  local folder=$root/build/python
  rm -rf "$folder/installed" "$folder/wheels"
  cmake --install "$build" --prefix "$folder/installed" >"$folder/install.log" ||
    stop 1 "Braid could not be installed into $folder/installed"
  "$folder/tools/bin/python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
    -w "$folder/wheels" -C "cmake.define.BRAID_PREFIX=$folder/installed" "$root/python" ||
    stop 1 "the wheel could not be built"
  wheel=$(echo "$folder"/wheels/*.whl)
}

# The same sources configure with all of Braid below them, and the committed stub is that of the module.
check_python_sources() {
  local folder=$root/build/python
  forget_others "$folder/compiled" "$root/python"
  cmake -S "$root/python" -B "$folder/compiled" -G Ninja -DPython_EXECUTABLE="$folder/tools/bin/python" \
    -Dnanobind_DIR="$("$folder/tools/bin/python" -m nanobind --cmake_dir)" "-DBRAID_TORCH=$torch" \
    >"$folder/compiled.log" 2>&1 || stop 1 "the package cannot be configured: see $folder/compiled.log"
  grep -q '^ *SONAME = libbraid.so$' "$folder/compiled/build.ninja" ||
    stop 1 "the package's library has no SONAME, so its module would look for a path of the build folder"
  "$folder/fresh/bin/python" -m pip install -q --disable-pip-version-check -r "$root/python/requirements.txt"
  "$folder/fresh/bin/python" -c "import braid_engine, sys
from nanobind.stubgen import main
main(['-q', '-m', 'braid_engine._core', '-o', sys.argv[1]])" "$folder/_core.pyi" ||
    stop 1 "there is no stub of the module"
  diff "$root/python/braid_engine/_core.pyi" "$folder/_core.pyi" ||
    stop 1 "python/braid_engine/_core.pyi should be $folder/_core.pyi"
  (cd "$root/python" && "$folder/fresh/bin/python" -m mypy --cache-dir "$folder/mypy" -p braid_engine \
    --exclude diffusers) || stop 1 "the package's types are wrong"
}

# A torch that is too old is no obstacle to building, and is named.
check_old_torch() {
  local folder=$root/build/python stub
  rm -rf "$folder/old_torch"
  made_environment "$folder/old_torch"
  stub=$(echo "$folder"/old_torch/lib/python3*/site-packages)/torch
  mkdir -p "$stub/share/cmake/Torch"
  touch "$stub/__init__.py"
  echo 'set(PACKAGE_VERSION "2.9.1")' >"$stub/share/cmake/Torch/TorchConfigVersion.cmake"
  cmake -S "$root/python" -B "$folder/old_torch/build" -G Ninja -DPython_EXECUTABLE="$folder/old_torch/bin/python" \
    -Dnanobind_DIR="$("$folder/tools/bin/python" -m nanobind --cmake_dir)" >"$folder/old_torch/log" 2>&1 ||
    stop 1 "the package cannot be configured beside an old torch: see $folder/old_torch/log"
  tr -s ' \n' ' ' <"$folder/old_torch/log" | grep -q "is 2.9.1, but Braid needs" ||
    stop 1 "an old torch should be named: see $folder/old_torch/log"
}

run_python() {
  stage "python"
  local folder=$root/build/python wheel
  make_folder "$folder/empty"
  made_environment "$folder/tools" -r "$root/python/requirements.txt"
  build_wheel
  made_environment "$folder/fresh" "$wheel"
  check_run_paths "$folder"/fresh/lib/python3*/site-packages/braid_engine/{*.so,bin/*,lib/*.so*}
  (cd "$folder/empty" && "$folder/fresh/bin/python" -B -m unittest discover -s "$root/python/tests") ||
    stop 1 "the tests of the Python package failed"
  check_python_sources
  check_old_torch
}

# run_accelerated VENV: diffusers' pipelines with Braid's transformer, in an environment that sees VENV's packages.
run_accelerated() {
  local folder=$root/build/python wheel
  make_folder "$folder"
  made_environment "$folder/tools" -r "$root/python/requirements.txt"
  build_wheel
  made_environment "$folder/live"
  echo "$1"/lib/python3*/site-packages >"$(echo "$folder"/live/lib/python3*/site-packages)/parity.pth"
  "$folder/live/bin/python" -m pip install -q --disable-pip-version-check --no-deps "$wheel" ||
    stop 1 "the wheel could not be installed"
  "$folder/live/bin/python" -B "$root/python/tests/accelerated.py" ||
    stop 1 "diffusers' pipelines differ with Braid's transformer"
}

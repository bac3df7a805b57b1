#!/usr/bin/env bash
# Tests when ./braid builds, in a checkout with the scripts and a program of one line. Nothing is installed or fetched.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
for part in messages expect; do . "$root/tools/shell/$part.sh"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset OMPI_COMM_WORLD_SIZE PMI_SIZE

# A LibTorch that nothing is linked with, and a checkout that installs nothing.
export BRAID_TORCH=$work/libtorch XDG_CACHE_HOME=$work/cache
mkdir -p "$BRAID_TORCH"/{lib,share/cmake/Torch} "$work/one/tools"
touch "$BRAID_TORCH/lib/libtorch_cpu.so"
echo 'set(PACKAGE_VERSION "99.0.0")' >"$BRAID_TORCH/share/cmake/Torch/TorchConfigVersion.cmake"
cp "$root/braid" "$work/one/"
cp -r "$root/tools/shell" "$work/one/tools/"
echo 'install_packages() { true; }' >>"$work/one/tools/shell/packages.sh"
mkdir -p "$work/one"/{src,include,cmake,tests,bench,fuzz}
cat >"$work/one/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(braid CXX)
if(FALSE) # but the scripts read it
  find_package(LibTorch 2.11 REQUIRED)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
add_executable(braid_engine src/says.cc)
set_target_properties(braid_engine PROPERTIES OUTPUT_NAME braid-engine)
add_executable(braid_program src/says.cc)
set_target_properties(braid_program PROPERTIES OUTPUT_NAME braid)
add_dependencies(braid_program braid_engine)
END
says() { printf '#include <cstdio>\nint main() { std::puts("%s"); }\n' "$2" >"$1/src/says.cc"; }
# expect_build WORDS CHECKOUT, expect_no_build WORDS CHECKOUT: what the program says, after a build or without one.
expect_build() {
  expect "building in" "$2/braid"
  expect_no_build "$1" "$2"
}
expect_no_build() {
  local said
  said=$("$2/braid" 2>&1) && [[ $said == "$1" ]] || stop 1 "$2/braid should say '$1' at once, it said '$said'"
}

says "$work/one" first
expect_build "first" "$work/one"

# An archive that is unpacked over the checkout sets times before the build's.
says "$work/one" second
touch -d 2020-01-01 "$work/one/src/says.cc"
expect_build "second" "$work/one"

# A container's image cuts times to seconds.
find "$work/one" -type f -exec sh -c 'for f; do touch -d "@$(stat -c %Y "$f")" "$f"; done' sh {} +
expect_no_build "second" "$work/one"

# A program whose other half is gone, a copied checkout, a moved one.
rm "$work"/one/build/*/bin/braid-engine
expect_build "second" "$work/one"
cp -a "$work/one" "$work/two"
says "$work/two" copied
expect_build "copied" "$work/two"
expect_no_build "second" "$work/one"
mv "$work/two" "$work/three"
expect_build "copied" "$work/three"

# An upgrade of the system.
sed -i 's/^system_name() {/&\n  echo "another system"\n  return/' "$work/three/tools/shell/messages.sh"
expect_build "copied" "$work/three"

# Ctrl-C ends a build at once, also where only the script hears of it, and the next run goes on.
cat >>"$work/three/CMakeLists.txt" <<END
add_custom_target(slow COMMAND touch "$work/begun" && test -e "$work/go" || sleep 60)
add_dependencies(braid_engine slow)
END
env --default-signal=INT "$work/three/braid" >"$work/said" 2>&1 &
until [[ -e $work/begun ]]; do sleep 0.1; done
kill -s INT $!
status=0
{ wait $! || status=$?; } 2>/dev/null
((status == 130)) && [[ $(<"$work/said") == *"braid: ended by SIGINT" ]] || stop 1 "$status after Ctrl-C, and '$(<"$work/said")'"
touch "$work/go"
expect_build "copied" "$work/three"

# What cannot be written is said before anything is fetched.
rm -r "$work/three/build"
touch "$work/three/build"
XDG_CACHE_HOME=$work/untouched expect "cannot be written" "$work/three/braid"
[[ ! -e $work/untouched ]] || stop 1 "the cache should be left alone"
printf 'braid_test: right\n'

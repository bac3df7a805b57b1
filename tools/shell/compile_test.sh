#!/usr/bin/env bash
# Tests how many compilers run, when a build folder is another's, and what a changed source sets off. A program of one
# line stands for Braid.
set -euo pipefail

real_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
root=$real_root
for part in messages torch running packages compile stages expect; do . "$root/tools/shell/$part.sh"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# jobs: control groups of both versions, and those above.
machine=$work/machine
fresh_machine() {
  rm -rf "$machine"
  mkdir -p "$machine/proc/self" "$machine/sys/fs/cgroup"
  echo "MemAvailable: $((64 * 1024 * 1024)) kB" >"$machine/proc/meminfo"
  printf '%s\n' "$@" >"$machine/proc/self/cgroup"
}
# group FOLDER FILE TEXT
group() {
  mkdir -p "$machine/sys/fs/cgroup/$1"
  printf '%s\n' "$3" >"$machine/sys/fs/cgroup/$1/$2"
}
# expect_jobs NUMBER WHY
expect_jobs() { [[ $(jobs "$machine") == "$1" ]] || stop 1 "$2: there should be $1 jobs, not $(jobs "$machine")"; }
nproc() { echo 16; }
gib=$((1024 * 1024 * 1024))
fresh_machine "0::/a/b"
expect_jobs 16 "no limits"
group a cpu.max "250000 100000"
expect_jobs 3 "a quota above"
group a/b cpu.max "max 100000"
group . memory.max $((3 * gib))
expect_jobs 2 "memory of the topmost"
group . memory.current $((5 * gib / 2))
group . memory.stat "inactive_file $((2 * gib))"
expect_jobs 1 "used memory"
fresh_machine "4:memory:/x" "2:cpu,cpuacct:/y" "0::/"
group memory/x memory.limit_in_bytes $((9 * gib))
expect_jobs 6 "memory of version 1"
group memory/x memory.limit_in_bytes 9223372036854771712
group cpu cpu.cfs_quota_us 400000
group cpu cpu.cfs_period_us 100000
expect_jobs 4 "a quota of version 1"
group cpu cpu.cfs_quota_us -1
expect_jobs 16 "no limits of version 1"
fresh_machine
echo "MemAvailable: 1000 kB" >"$machine/proc/meminfo"
expect_jobs 1 "hardly any memory"
echo "MemTotal: $((4 * 1024 * 1024)) kB" >>"$machine/proc/meminfo"
[[ $(jobs "$machine" MemTotal) == 2 ]] || stop 1 "of 4 GB there should be 2 jobs"
unset -f nproc
jobs() { echo 2; }

# made_checkout FOLDER TEXT: a project whose program prints the text.
made_checkout() {
  mkdir -p "$1"/{src,include,cmake,tests,bench,fuzz,build/release}
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(p CXX)\nadd_executable(says src/says.cc)\n' >"$1/CMakeLists.txt"
  says "$1" "$2"
}
says() { printf '#include <cstdio>\nint main() { std::puts("%s"); }\n' "$2" >"$1/src/says.cc"; }
# build_in FOLDER: as ./braid does, and prints what the program says.
build_in() {
  root=$1
  (configure "$1/build/release" && compile "$1/build/release" says) && "$1/build/release/says"
}
torch=$work/torch
mkdir -p "$torch/lib"
find_compiler
made_checkout "$work/one" first
expect "first" build_in "$work/one"
expect "first" build_in "$work/one"

# An archive's files are older than the build they are to change.
says "$work/one" second
touch -d 2020-01-01 "$work/one/src/says.cc"
expect "second" build_in "$work/one"

# What a build that failed made of other sources is made anew when they are back.
made_checkout "$work/failed" right
printf 'add_library(other OBJECT src/other.cc)\nadd_dependencies(says other)\n' >>"$work/failed/CMakeLists.txt"
: >"$work/failed/src/other.cc"
expect "right" build_in "$work/failed"
cp -a "$work/failed/src" "$work/before"
says "$work/failed" wrong
expect "wrong" build_in "$work/failed"
echo 'broken' >"$work/failed/src/other.cc"
says "$work/failed" "wrong, too"
(build_in "$work/failed") >/dev/null 2>&1 && stop 1 "the build should fail"
cp -a "$work/before/." "$work/failed/src/"
expect "right" build_in "$work/failed"

# A copy compiles its own sources, and so does a folder that was moved.
cp -a "$work/one" "$work/two"
says "$work/two" copied
expect "copied" build_in "$work/two"
expect "second" build_in "$work/one"
mv "$work/two" "$work/three"
says "$work/three" moved
expect "moved" build_in "$work/three"
objects() { stat -c %y "$work"/three/build/release/CMakeFiles/says.dir/src/says.cc.o; }
before=$(objects)
expect "moved" build_in "$work/three"
[[ $(objects) == "$before" ]] || stop 1 "a build that is ours should stay"

# A compiler that does not work leaves no trace, and an upgrade of the system starts afresh.
made_checkout "$work/four" fourth
(compiler=nonsense build_in "$work/four") >/dev/null 2>&1 && stop 1 "there is no such compiler"
expect "fourth" build_in "$work/four"
before=$(objects)
system_name() { echo "another system"; }
expect "moved" build_in "$work/three"
[[ $(objects) != "$before" ]] || stop 1 "another system should start afresh"

# CXX may be two words.
printf '#!/bin/sh\necho "$1" >>"%s"\nexec "$@"\n' "$work/wrapped" >"$work/wrapper"
chmod +x "$work/wrapper"
read -ra words <<<"$compiler"
made_checkout "$work/five" fifth
compiler="$work/wrapper ${words[*]: -1}" expect "fifth" build_in "$work/five"
grep -qx -e "${words[*]: -1}" "$work/wrapped" || stop 1 "the compiler's wrapper was not used"

# The message shows what pkg-config said before.
printf '%s\n' one two three four "Package 'libwebp', required by 'virtual:world', not found" "CMake Error at x" >"$work/log"
expect "Package 'libwebp'" show_failure "$work/log"

# Run paths with an empty element.
link() { echo 'int main() {}' | $compiler -x c++ - -o "$work/$1" "-Wl,-rpath,$2"; }
link right /somewhere:/elsewhere
link trailing /somewhere:
link leading :/somewhere
link between /somewhere::/elsewhere
expect_nothing check_run_paths "$work/right" "$work/log"
for name in trailing leading between; do
  expect "libraries from the current folder:"$'\n'"$work/$name: " check_run_paths "$work/right" "$work/$name"
done
printf 'compile_test: right\n'

#!/usr/bin/env bash
# Tests that an environment of conda's changes no build, with one that has programs of one line.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
for part in messages conda expect; do . "$root/tools/shell/$part.sh"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CC CXX CPP CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LD_LIBRARY_PATH CPATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH

conda="$work/mini conda/envs/one"
mkdir -p "$conda"/{bin,conda-meta,lib,include} "$work/own/bin"
for name in x86_64-conda-linux-gnu-c++ g++ pkg-config; do
  printf '#!/bin/sh\nexit 1\n' >"$conda/bin/$name"
  chmod +x "$conda/bin/$name"
done

# leave NAME...: what these variables are afterwards.
leave() {
  local name
  leave_conda
  for name in "$@"; do echo "$name is ${!name-unset};"; done
}
expect_not "conda" leave PATH CXX
export PATH=$work/own/bin:$PATH:
CXX="g++ -O2" CXXFLAGS="-isystem $work/own" expect_not "unset" leave CXX CXXFLAGS
expect "PATH is $PATH;" leave PATH
system=$PATH

export PATH=$conda/bin:$work/own/bin:/usr/bin:/bin
expect "PATH is $work/own/bin:/usr/bin:/bin;" leave PATH
expect "not with conda's" leave PATH
LD_LIBRARY_PATH=/here:$conda/lib expect "LD_LIBRARY_PATH is /here;" leave LD_LIBRARY_PATH
CPATH=$conda/include expect "CPATH is unset;" leave CPATH
CMAKE_PREFIX_PATH=$conda:$conda/sysroot/usr expect "CMAKE_PREFIX_PATH is unset;" leave CMAKE_PREFIX_PATH
mkdir -p "$work/plain/"{conda-meta,bin}
printf '#!/bin/sh\n' >"$work/plain/bin/c++"
chmod +x "$work/plain/bin/c++"
CXX=x86_64-conda-linux-gnu-c++ expect "CXX is unset;" leave CXX
CXX="ccache $work/plain/bin/c++" expect "CXX is unset;" leave CXX
CXX=/usr/bin/g++ expect "CXX is /usr/bin/g++;" leave CXX
CXXFLAGS="-O2 -isystem $work/plain/include" expect "CXXFLAGS is unset;" leave CXXFLAGS
LDFLAGS="-Wl,-O2 -Wl,-rpath,$work/plain/lib" expect "LDFLAGS is unset;" leave LDFLAGS
LDFLAGS="-Wl,-O2 -L/opt/lib" expect "LDFLAGS is -Wl,-O2 -L/opt/lib;" leave LDFLAGS

# What ./setup prints does the same, and what ./braid draws with is as it was.
export CXX=$work/plain/bin/c++ CPATH=$conda/include
leave_conda 2>/dev/null
said=$(CXX=other CPATH=other env "${left_behind[@]}" env)
[[ $said != *CXX=* && $said != *CPATH=* && $said == *"PATH=$work/own/bin:/usr/bin:/bin"* ]] || stop 1 "env gives '$said'"
export "${came_with[@]}"
[[ $CXX == "$work/plain/bin/c++" && $CPATH == "$conda/include" && $PATH == "$conda/bin:"* ]] || stop 1 "not as it was"
PATH=$system
printf 'conda_test: right\n'

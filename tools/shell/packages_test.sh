#!/usr/bin/env bash
# Tests what is missing on a system and how it is installed, with programs that stand for apt and dpkg. Nothing is installed.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
for part in messages running packages expect; do . "$root/tools/shell/$part.sh"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$work
torch=$work/torch
mkdir -p "$torch/lib" "$work/bin"
touch "$torch/lib/libtorch_cpu.so"
PATH=$work/bin:$PATH

# made NAME SCRIPT: a program.
made() {
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

all="nlohmann-json3-dev libcli11-dev libutf8proc-dev libonig-dev libpng-dev libjpeg-dev libwebp-dev libboost-dev
  libcurl4-openssl-dev libyaml-cpp-dev ca-certificates"
# with_packages LINE...: a system with all packages, of which some are described by these lines instead.
with_packages() {
  local package line
  for package in $all; do
    [[ " ${without:-} " == *" $package "* ]] || echo "installed amd64 $package, "
  done >"$work/installed"
  for line in "$@"; do echo "$line" >>"$work/installed"; done
}
made dpkg 'echo amd64'
made dpkg-query "cat '$work/installed'"
made apt-cache 'echo "  Installed: (none)"; [[ $LC_ALL == C ]] && echo "  Candidate: 4:12.2.0-3" || echo "  Installationskandidat: 4:12.2.0-3"'
for name in g++ ninja pkg-config; do made "$name" 'echo 12.2.0'; done
made cmake 'echo "cmake version 3.25.1"'
missing_packages() { find_missing "$@" && echo "missing: ${missing[*]};"; }

with_packages
expect "missing: ;" missing_packages use
expect "12.2.0" candidate g++
without=libcurl4-openssl-dev with_packages
expect "missing: libcurl4-openssl-dev;" missing_packages use
without=libcurl4-openssl-dev with_packages \
  "installed amd64 libcurl4-gnutls-dev, libcurl-dev, libcurl3-gnutls-dev, libcurl4-dev (= 7.88)"
expect "missing: ;" missing_packages use
without=libboost-dev with_packages "installed amd64 libboost1.81-dev, "
expect "missing: ;" missing_packages use
# A foreign architecture's package is of no use here, and does not hide this one's.
without=libpng-dev with_packages "installed i386 libpng-dev, "
expect "missing: libpng-dev;" missing_packages use
with_packages "installed i386 libpng-dev, " "installed all something, "
expect "missing: ;" missing_packages use
without=libpng-dev with_packages "config-files amd64 libpng-dev, "
expect "missing: libpng-dev;" missing_packages use

# apt-get: other packages stay, and the lists may be locked for a while.
find_root() { as_root=(env); }
sleep() { echo "$*" >>"$work/slept"; }
made apt-get "echo \"\$*\" >>'$work/calls'
[[ \$* != *update* || -e '$work/slept' ]] || { echo 'E: Could not get lock /var/lib/apt/lists/lock.'; exit 100; }
[[ \$* != *install* ]] || exit \$(cat '$work/result')"
echo 0 >"$work/result"
expect "waiting for another program to finish: it holds the lock of apt's lists" install_packages use
[[ $(wc -l <"$work/slept") == 1 ]] || stop 1 "there should be one pause"
grep -q -e "install.*--no-remove.* libpng-dev" "$work/calls" || stop 1 "apt-get should remove nothing: $(cat "$work/calls")"
echo 100 >"$work/result"
expect "Run: sudo apt-get update && sudo apt-get install --no-install-recommends libpng-dev" install_packages use

# Ctrl-C that reaches apt-get alone, under sudo, does not go on to the next step.
rm "$work/calls"
made apt-get "echo \"\$*\" >>'$work/calls'; kill -INT \$\$"
status=0
(exec {spoken}>"$work/said" && install_packages use) 2>/dev/null &
wait $! || status=$?
((status == 130)) && [[ $(<"$work/said") == *"ended by SIGINT" ]] || stop 1 "after SIGINT: $status, '$(<"$work/said")'"
[[ $(wc -l <"$work/calls") == 1 ]] || stop 1 "apt-get should not be called again: $(cat "$work/calls")"

# A compiler of conda's is none, but its Python may be the only one with pip.
mkdir -p "$work/conda"/{bin,conda-meta}
printf '#!/bin/sh\n[ "$1 $2" = "-m pip" ]\n' >"$work/conda/bin/python3"
cp "$work/bin/g++" "$work/conda/bin/c++"
chmod +x "$work/conda/bin/python3"
made python3 'exit 1'
with_pip() { leave_conda && find_pip && echo "pip of $python, compiler ${CXX:-none};"; }
[[ -e /usr/bin/python3 ]] && /usr/bin/python3 -m pip --version >/dev/null 2>&1 ||
  PATH=$work/conda/bin:$PATH CXX=c++ expect "pip of $work/conda/bin/python3, compiler none;" with_pip
PATH=$work/conda/bin:$PATH CXX=c++ expect "compiler none;" with_pip
printf 'packages_test: right\n'

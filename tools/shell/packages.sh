# What a build needs from the system: reports what is missing, installs it if permitted. Sourced.

. "$root/tools/shell/conda.sh"

export PIP_REQUIRE_VIRTUALENV=0 # a user's setting for other projects

# Sets `compiler` to a g++ of version 12 or later, or whatever $CXX names.
find_compiler() {
  local candidate
  compiler=${CXX:-}
  [[ -z $compiler ]] || return 0
  for candidate in g++ g++-15 g++-14 g++-13 g++-12; do
    if command -v "$candidate" >/dev/null && (($("$candidate" -dumpversion | cut -d. -f1) >= 12)); then
      compiler=$candidate
      return 0
    fi
  done
  return 1
}

# Prints the compiler alone: CXX may be "ccache g++ -m64".
host_compiler() {
  local word last=
  local -a words
  read -ra words <<<"$compiler"
  for word in "${words[@]}"; do [[ $word == -* ]] || last=$word; done
  echo "$last"
}

# compile_with ARGUMENT...: calls it with all of its words.
compile_with() {
  local -a words
  read -ra words <<<"$compiler"
  "${words[@]}" "$@"
}

# at_least WANTED VERSION: dotted numbers.
at_least() { [[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

have_cmake() {
  command -v cmake >/dev/null && at_least 3.25 "$(LC_ALL=C cmake --version | sed -n '1s/[^0-9]*//p')"
}

# Sets `python` to one that has pip: the active virtual environment may lack it.
find_pip() {
  for python in python3 /usr/bin/python3 ${python_before:+"$python_before"}; do
    "$python" -m pip --version >/dev/null 2>&1 && return 0
  done
  return 1
}

# candidate PACKAGE: the version apt would install; empty if there is none.
candidate() {
  LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9.]*\).*/\2/p'
}

# Whether cmake, installed or to be installed, is too old: then one comes from PyPI.
cmake_is_old() {
  if command -v cmake >/dev/null; then
    ! have_cmake
  else
    local version
    version=$(candidate cmake)
    [[ -n $version ]] && ! at_least 3.25 "$version"
  fi
}

# The package of a new enough compiler: Ubuntu 22.04 has both g++ 11 and g++-12.
compiler_package() {
  local version
  version=$(candidate g++)
  if [[ -z $version ]] || at_least 12 "$version"; then echo g++; else echo g++-12; fi
}

# Prints the names of installed packages and of what these provide, one a line, of this architecture only. One of several
# that exclude each other is as good as another: libcurl4-gnutls-dev as libcurl4-openssl-dev, any Boost as the default one.
installed_packages() {
  local native
  native=$(dpkg --print-architecture) || return 0
  LC_ALL=C dpkg-query -W -f '${db:Status-Status} ${Architecture} ${Package}, ${Provides}\n' 2>/dev/null |
    awk -v native="$native" '$1 == "installed" && ($2 == native || $2 == "all") {
      sub(/^[^ ]* [^ ]* /, "")
      gsub(/ *\([^)]*\)/, "")
      count = split($0, names, / *, */)
      for (i = 1; i <= count; ++i) print names[i] ~ /^libboost[0-9.]+-dev$/ ? "libboost-dev" : names[i]
    }'
}

# have_package NAME: whether `installed` has it, or what serves as well.
have_package() {
  [[ $installed == *$'\n'"$1"$'\n'* || ($1 == libcurl4-openssl-dev && $installed == *$'\n'libcurl4-dev$'\n'*) ]]
}

# Sets `missing` to the packages that the wanted parts still need.
#   use: to build and run    mpi: also under mpirun    develop: also to test    fuzz: also to fuzz    bench: also to count instructions
#   serve: also to test the server    browsers: also to test its page    live: also to run diffusers    python: also to build its package    gpu: also to compile for GPUs
find_missing() {
  local -a wanted=(nlohmann-json3-dev libcli11-dev libutf8proc-dev libonig-dev libpng-dev libjpeg-dev
                   libwebp-dev libboost-dev libcurl4-openssl-dev libyaml-cpp-dev ca-certificates)
  local part package needs_pip= installed
  [[ -e $torch/lib/libtorch_cpu.so ]] && ! cmake_is_old || needs_pip=yes
  missing=()
  for part in "$@"; do
    case $part in
      develop)
        wanted+=(libgtest-dev libgmock-dev libbenchmark-dev libsentencepiece-dev libopenmpi-dev
                 openmpi-bin)
        needs_pip=yes # clang-format and clang-tidy
        ;;
      mpi) wanted+=(libopenmpi-dev openmpi-bin) ;;
      bench) wanted+=(valgrind) ;;
      fuzz)
        wanted+=(clang)
        # In older releases clang depends on it.
        [[ -z $(candidate libclang-rt-dev) ]] || wanted+=(libclang-rt-dev)
        ;;
      live | python) wanted+=(python3-venv python3-dev) ;;
      serve) wanted+=(python3-venv nginx-light caddy haproxy) ;;
      # WebKitGTK's MiniBrowser needs a display.
      browsers) wanted+=(chromium chromium-driver firefox-esr webkit2gtk-driver xvfb) ;;
      gpu)
        # AMD's compiler, if the system has it.
        [[ -z $(candidate hipcc) ]] || wanted+=(hipcc libamdhip64-dev rocm-device-libs)
        ;;
    esac
  done
  find_compiler || missing+=("$(compiler_package)")
  command -v cmake >/dev/null || missing+=(cmake)
  command -v ninja >/dev/null || missing+=(ninja-build)
  command -v pkg-config >/dev/null || missing+=(pkg-config)
  command -v python3 >/dev/null || missing+=(python3)
  [[ -z $needs_pip ]] || find_pip || missing+=(python3-pip)
  installed=$'\n'$(installed_packages)$'\n'
  for package in "${wanted[@]}"; do have_package "$package" || missing+=("$package"); done
}

# Sets `as_root` to the command that runs apt-get as root; fails if that needs a person and there is none.
find_root() {
  as_root=()
  (($(id -u) != 0)) || return 0
  command -v sudo >/dev/null || return 1
  as_root=(sudo)
  sudo -n apt-get --version >/dev/null 2>&1 && return 0
  [[ -t 2 ]] # sudo asks for the password there
}

# stop_with_line MESSAGE: stops with the command that installs what is missing.
stop_with_line() {
  local run="As root, run:" sudo=
  ((${#as_root[@]} == 0)) || run=Run: sudo="sudo "
  stop 2 "$1. $run ${sudo}apt-get update && ${sudo}apt-get install --no-install-recommends ${missing[*]}"
}

# apt_get ARGUMENT...: waits for other programs' locks, and gives daemons that packages start none of the script's. Between sudo and
# apt-get the terminal may be one of its own, whose Ctrl-C only their status tells.
apt_get() {
  local status=0
  (
    [[ -z ${locked:-} ]] || exec {locked}>&-
    exec "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null
  ) || status=$?
  ((status != 130)) || end_by INT
  return "$status"
}

# update_lists LOG: tells apt what there is. In its first minutes a machine in the cloud does so itself, and
# DPkg::Lock::Timeout is not for that lock. A dead third-party source must not block the packages: only the
# installation counts.
update_lists() {
  local end=$((SECONDS + 300)) waits=
  while ! apt_get update >"$1" 2>&1 &&
    grep -q 'lists/lock' "$1" && ((SECONDS < end)); do
    [[ -n $waits ]] || say "waiting for another program to finish: it holds the lock of apt's lists"
    waits=yes
    sleep 5
  done
}

# install_packages PART...: returns once everything is installed, else exits 2 with the command to run.
install_packages() {
  local log=$cache/packages.log
  local -a missing as_root
  command -v apt-get >/dev/null || return 0 # CMake will say what is missing, and conda may have it
  leave_conda
  find_missing "$@"
  ((${#missing[@]})) || return 0
  find_root || stop_with_line "some packages are missing"
  say "installing packages: ${missing[*]}"
  update_lists "$log"
  find_missing "$@" # the names depend on what apt now knows
  if ! apt_get -y -o Dpkg::Use-Pty=0 install --no-install-recommends --no-remove "${missing[@]}" >>"$log" 2>&1; then
    tail -n 5 "$log" >&2
    stop_with_line "these packages could not be installed (log: $log)"
  fi
}

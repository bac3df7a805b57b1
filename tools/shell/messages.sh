# How the scripts speak: to stderr, under their own name. Sourced.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# stop CODE MESSAGE...
stop() {
  say "${@:2}"
  exit "$1"
}

# Stops at once where nothing could be built: no LibTorch is published for other systems and processors. The arguments are
# bash's own words for these.
require_linux() {
  local system=${1:-$OSTYPE} processor=${2:-$HOSTTYPE}
  case $system-$processor in
    linux-musl*) system="Linux with musl instead of glibc" ;;
    linux-x86_64 | linux-gnu-x86_64 | linux-aarch64 | linux-gnu-aarch64) return 0 ;;
  esac
  stop 2 "Braid runs on Linux (x86_64, aarch64); this is $system on $processor"
}

# Prints the system's name and version, in which an upgrade of the system shows.
system_name() {
  local line name= version=
  [[ -r /etc/os-release ]] && while IFS= read -r line; do
    case $line in
      ID=*) name=${line#*=} ;;
      VERSION_ID=*) version=${line#*=} ;;
    esac
  done </etc/os-release
  echo "$name $version"
}

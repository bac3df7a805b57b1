# How the scripts speak: to stderr, under their own name. Sourced.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# stop CODE MESSAGE...
stop() {
  say "${@:2}"
  exit "$1"
}

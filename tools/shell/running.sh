# Runs what takes long: one at a time by a lock, and ended by a signal. Sourced.

# lock FILE: waits until no other process holds it. One lock at a time.
lock() {
  { exec {locked}>>"$1"; } 2>/dev/null || stop 2 "$1 cannot be written: does it belong to another user?"
  command -v flock >/dev/null || return 0
  flock -n "$locked" || {
    say "waiting for another run to finish (it holds $1)"
    run flock "$locked"
  }
}

unlock() {
  exec {locked}>&-
  locked=
}

# start_filter COMMAND...: sets `output` to a descriptor whose text the command reads; what that writes goes to stderr.
# It holds the script's lock, too: until the program has ended, even if the script was killed.
start_filter() {
  exec {output}> >(trap '' INT && "$@" >&2)
  filter=$!
}

# end_filter: returns when it has read everything.
end_filter() {
  [[ -n ${output:-} ]] || return 0
  exec {output}>&-
  output=
  wait "$filter" || true
}

# run COMMAND...: a program that a signal to this script ends, too. It gets none of what the script has open, but for
# flock: a daemon that a compiler starts (sccache's server) would hold the lock for ever.
run() {
  local status=0 running
  {
    exec {spoken}>&-
    [[ -z ${output:-} ]] || exec {output}>&-
    [[ -z ${locked:-} || $1 == flock ]] || exec {locked}>&-
    exec "$@"
  } &
  running=$!
  trap 'end_by HUP' HUP
  trap 'end_by TERM' TERM
  wait "$running" || status=$?
  trap - HUP TERM
  return "$status"
}

# end_by SIGNAL: ends what runs, then says so, then ends the script by the signal, as loops around it expect.
end_by() {
  trap '' HUP INT TERM
  exec >&"$spoken" 2>&1 # rather than where the command's words go
  [[ -z ${running:-} ]] || { kill "$running" && wait "$running"; } 2>/dev/null || true
  end_filter
  say "ended by SIG$1" || true
  trap - "$1"
  kill -s "$1" "$BASHPID"
  exit $((128 + $(kill -l "$1"))) # where the signal is ignored
}

exec {spoken}>&2
# Ctrl-C ends some programs with a status of their own, upon which a script would go on.
trap 'end_by INT' INT

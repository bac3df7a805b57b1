#!/usr/bin/env bash
# Tests what a signal to a script does, and who holds its lock.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
for part in messages running expect; do . "$root/tools/shell/$part.sh"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A script that reads what a program writes, under a lock. The program's daemon outlives it, and keeps what it inherits.
cat >"$work/daemon" <<'END'
#!/bin/bash
sleep 60 >/dev/null 2>&1 </dev/null &
echo $! >"$1"
END
cat >"$work/program" <<'END'
#!/bin/bash
"${0%/*}/daemon" "${0%/*}/daemon.pid"
echo begun
echo $$ >"${0%/*}/program.pid"
exec sleep "$1"
END
cat >"$work/script" <<END
#!/bin/bash
set -euo pipefail
root=$root
for part in messages running; do . "$root/tools/shell/\$part.sh"; done
lock "$work/lock"
start_filter cat
run "$work/program" "\$1" >&"\$output" 2>&1
end_filter
unlock
echo finished
END
chmod +x "$work"/{daemon,program,script}

# started SECONDS: the script with a program that sleeps so long; returns when that runs. `script` is its process.
started() {
  rm -f "$work"/*.pid
  env --default-signal=INT,HUP,TERM "$work/script" "$1" >"$work/said" 2>&1 &
  script=$!
  until [[ -s $work/program.pid ]]; do sleep 0.05; done
}
end_daemon() { kill "$(<"$work/daemon.pid")"; }

for signal in INT TERM HUP; do
  started 60
  kill -s "$signal" "$script"
  status=0
  { wait "$script" || status=$?; } 2>/dev/null
  ((status == 128 + $(kill -l "$signal"))) || stop 1 "after SIG$signal the status is $status"
  [[ $(<"$work/said") == begun$'\n'"script: ended by SIG$signal" ]] || stop 1 "after SIG$signal it said '$(<"$work/said")'"
  ! kill -0 "$(<"$work/program.pid")" 2>/dev/null || stop 1 "SIG$signal should end the program, too"
  end_daemon
done

# The lock is held while the program runs, and not by its daemon.
started 1
! flock -n "$work/lock" true || stop 1 "the lock should be held"
wait "$script" || stop 1 "the script failed: $(<"$work/said")"
kill -0 "$(<"$work/daemon.pid")" || stop 1 "the daemon should still run"
flock -n "$work/lock" true || stop 1 "the daemon holds the lock"
end_daemon
[[ $(<"$work/said") == begun$'\n'finished ]] || stop 1 "the script said '$(<"$work/said")'"

# It is held as well while the program of a script that was killed runs.
started 2
{ kill -KILL "$script" && wait "$script" || true; } 2>/dev/null
! flock -n "$work/lock" true || stop 1 "the lock should be held until the program ends"
flock "$work/lock" true
end_daemon

run false && stop 1 "the status of a program should be that of 'run'"
printf 'running_test: right\n'

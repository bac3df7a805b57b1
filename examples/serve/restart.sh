#!/usr/bin/env bash
# Restarts the replicas one after another, each once the previous one accepts requests again.
#
#   restart.sh [PORT...]    without ports those of nginx.conf
set -euo pipefail
(($# > 0)) || set -- 8188 8189

for port; do
  systemctl restart "braid@$port"
  until curl -sf "http://127.0.0.1:$port/readyz" >/dev/null; do sleep 1; done
done

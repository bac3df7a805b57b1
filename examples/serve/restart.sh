#!/usr/bin/env bash
# Restarts the replicas one after the other, each when the one before takes requests again.
set -euo pipefail

for port in "${@:-8188}"; do
  systemctl restart "braid@$port"
  until curl -sf "http://127.0.0.1:$port/readyz" >/dev/null; do sleep 1; done
done

#!/usr/bin/env bash
# Restarts the replicas one after another, each once the previous one accepts requests again.
set -euo pipefail

for port in "${@:-8188}"; do
  systemctl restart "braid@$port"
  until curl -sf "http://127.0.0.1:$port/readyz" >/dev/null; do sleep 1; done
done

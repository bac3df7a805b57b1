#!/usr/bin/env bash
# Two hosts with four GPUs each. Start it on both:   torchrun_two_hosts.sh FIRST_HOST 0|1 "a fox"
# Tensor parallelism stays inside a host, where links are fast; Ulysses runs between hosts.
set -euo pipefail
if (($# < 2)); then
  echo "usage: $0 FIRST_HOST HOST_NUMBER [PROMPT]" >&2
  exit 2
fi
braid=$(cd -- "$(dirname -- "$0")/../.." && pwd)/braid
first=$1 number=$2
shift 2
exec torchrun --no-python --nnodes 2 --nproc-per-node 4 --node-rank "$number" \
  --master-addr "$first" --master-port "${PORT:-29600}" \
  "$braid" generate "${@:-a red circle on a blue background}" ${MODEL:+-m "$MODEL"} \
  --device cuda --tp 4 --ulysses 2

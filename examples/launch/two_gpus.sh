#!/usr/bin/env bash
# Two GPUs of one host, as threads of one process.   MODEL=~/models/FLUX.1-dev two_gpus.sh "a fox"
set -euo pipefail
braid=$(cd -- "$(dirname -- "$0")/../.." && pwd)/braid
exec "$braid" generate "${@:-a red circle on a blue background}" ${MODEL:+-m "$MODEL"} \
  --devices "${DEVICES:-cuda:0-1}" --ulysses 2

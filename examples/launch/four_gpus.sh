#!/usr/bin/env bash
# Four GPUs of one host, each with a quarter of the weights.   MODEL=~/models/FLUX.1-dev four_gpus.sh "a fox"
set -euo pipefail
braid=$(cd -- "$(dirname -- "$0")/../.." && pwd)/braid
exec "$braid" generate "${@:-a red circle on a blue background}" ${MODEL:+-m "$MODEL"} \
  --devices "${DEVICES:-cuda:0-3}" --tp 4

#!/usr/bin/env bash
# Five GPUs of one host: no number of heads divides by five, and a ring does not need it to.
set -euo pipefail
braid=$(cd -- "$(dirname -- "$0")/../.." && pwd)/braid
exec "$braid" generate "${@:-a red circle on a blue background}" ${MODEL:+-m "$MODEL"} \
  --devices "${DEVICES:-cuda:0-4}" --ring 5

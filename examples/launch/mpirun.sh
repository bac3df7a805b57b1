#!/usr/bin/env bash
# Four processes on CPUs, over MPI. On several hosts: MPIRUN="mpirun --host a:2,b:2", with the same
# path to Braid and the model on each. Containers: OMPI_ALLOW_RUN_AS_ROOT=1, ..._CONFIRM=1.
set -euo pipefail
braid=$(cd -- "$(dirname -- "$0")/../.." && pwd)/braid
${MPIRUN:-mpirun} -n 4 "$braid" generate "${@:-a red circle on a blue background}" \
  ${MODEL:+-m "$MODEL"} --tp 2 --ring 2

"""Whether a launcher started this process as one of several, as src/comm/launch.cc finds it."""

import os

# Each launcher by the variables that it sets, the last of which is the number of processes.
LAUNCHERS = (
    ("RANK", "MASTER_ADDR", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_SIZE",),
    ("SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"),
    ("PMI_SIZE",),
)


def is_launched() -> bool:
    if os.environ.get("BRAID_LAUNCHER") == "none":
        return False
    for names in LAUNCHERS:
        if all(name in os.environ for name in names):
            size = os.environ[names[-1]]
            return size.isdigit() and int(size) > 1
    return False

"""Whether a launcher started this process as one of several."""

import os

SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def is_launched() -> bool:
    if os.environ.get("BRAID_LAUNCHER") == "none":
        return False
    sizes = [os.environ[name] for name in SIZES if name in os.environ]
    if "SLURM_STEP_ID" in os.environ:
        sizes.append(os.environ.get("SLURM_STEP_NUM_TASKS", "1"))
    return any(size.isdigit() and int(size) > 1 for size in sizes)

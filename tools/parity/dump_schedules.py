"""Dump FlowMatchEulerDiscrete schedules, as FluxPipeline asks for them, into one JSON file.

usage: python dump_schedules.py [--out tests/data/parity/schedules.json]

Floats are eight hexadecimal digits each (the bits of a float32), concatenated: bits are compared.
Every entry holds whole schedules for the step counts of FULL, and for every count of 1 to 50 the
FNV-1a-64 checksum of the bytes of sigmas, then timesteps (float32, little endian).
"""
import argparse
import json
from pathlib import Path

import diffusers
import numpy as np
from diffusers import FlowMatchEulerDiscreteScheduler
from diffusers.pipelines.flux.pipeline_flux import calculate_shift, retrieve_timesteps

FULL = (1, 2, 3, 4, 7, 20, 28, 50)
COUNTS = range(1, 51)

DYNAMIC = {"use_dynamic_shifting": True, "shift": 3.0}
LINEAR = DYNAMIC | {"time_shift_type": "linear"}
STATIC = {"shift": 3.0}
FLOW = {"use_flow_sigmas": True}
SPACINGS = [{f"use_{kind}_sigmas": True} for kind in ("karras", "exponential", "beta")]
BOUNDS = {"sigma_min": 0.02, "sigma_max": 0.93}
OTHER_LINE = {"base_shift": 0.31, "max_shift": 1.7,
              "base_image_seq_len": 64, "max_image_seq_len": 1000}


def option_table():
    """The option sets: each base with each spacing, terminal shift and inversion; then the rest."""
    rows = []
    for base in (STATIC, DYNAMIC, LINEAR):
        rows += [base, base | {"shift_terminal": 0.1}, base | {"invert_sigmas": True}, base | FLOW]
        rows += [base | spacing for spacing in SPACINGS]
    rows += [{}, {"shift": 1.73}, {"shift": 0.4}, DYNAMIC | OTHER_LINE, LINEAR | OTHER_LINE]
    rows += [STATIC | {"num_train_timesteps": 777}, STATIC | FLOW | {"num_train_timesteps": 777}]
    for spacing in SPACINGS:
        rows += [DYNAMIC | FLOW | spacing, STATIC | BOUNDS | spacing]
        rows += [DYNAMIC | spacing | {"shift_terminal": 0.037, "invert_sigmas": True}]
    return rows


def schedule(config, steps, tokens):
    """Sigmas and timesteps of `steps` steps on `tokens` image tokens, float32."""
    scheduler = FlowMatchEulerDiscreteScheduler.from_config(dict(config))
    sigmas = None if config.get("use_flow_sigmas") else np.linspace(1.0, 1 / steps, steps)
    get = scheduler.config.get
    mu = calculate_shift(tokens, get("base_image_seq_len", 256), get("max_image_seq_len", 4096),
                         get("base_shift", 0.5), get("max_shift", 1.15))
    retrieve_timesteps(scheduler, steps, "cpu", sigmas=sigmas, mu=mu)
    return scheduler.sigmas.numpy(), scheduler.timesteps.numpy()


def hexadecimal(values):
    return values.astype(">f4").tobytes().hex()


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def entry(config, tokens):
    # A terminal shift divides by zero if there is only one step.
    counts = [n for n in COUNTS if n > 1 or not config.get("shift_terminal")]
    schedules = {n: schedule(config, n, tokens) for n in counts}
    assert all(np.isfinite(part).all() for parts in schedules.values() for part in parts)
    full = {str(n): {"sigmas": hexadecimal(schedules[n][0]),
                     "timesteps": hexadecimal(schedules[n][1])}
            for n in FULL if n in schedules}
    sums = {str(n): fnv1a(s.astype("<f4").tobytes() + t.astype("<f4").tobytes())
            for n, (s, t) in schedules.items()}
    return {"config": config, "tokens": tokens, "schedules": full, "checksums": sums}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--out", type=Path, default=root / "tests/data/parity/schedules.json")
    out = parser.parse_args().out
    diffusers.utils.logging.set_verbosity_error()  # it would print a line per unknown option
    entries = []
    for config in option_table():
        # The number of tokens matters only to dynamic shifts.
        for tokens in (16, 35, 1024, 16384) if config in (DYNAMIC, LINEAR) else (1008,):
            entries.append(entry(config, tokens))
    lines = ",\n".join(json.dumps(e, separators=(",", ":")) for e in entries)
    out.write_text(f"[\n{lines}\n]\n")
    print(f"{out}: {len(entries)} entries, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""Dump noise levels and whole runs of samplers into one JSON file, from their definitions in float64.

usage: python dump_samplers.py [--out tests/data/parity/samplers.json]

grids:      ComfyUI's schedules under a static shift or a mu, by NumPy and SciPy
base:       lists of levels as diffusers' scheduler takes them, in float32
runs:       x after each step, for a velocity field and noise that are formulas; of every sampler in
            float64. `heun` and `lcm` are taken by diffusers' own schedulers as well, in float32
"""
import argparse
import itertools
import json
import math
from pathlib import Path
from unittest import mock

import diffusers
import numpy as np
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, FlowMatchHeunDiscreteScheduler
from diffusers.schedulers import scheduling_flow_match_euler_discrete
from scipy import stats

STEPS = (1, 2, 4, 8, 20, 28, 50, 400)
SHIFTS = ({"shift": 1.0}, {"shift": 3.0}, {"mu": 0.5}, {"mu": 1.15})
# FLUX.2-dev-Turbo's, Qwen-Image-2.1-Turbo's, and two of our own.
LISTS = ([1.0, .6509, .4374, .2932, .1893, .1108, .0495, .00031],
         [1.0, .978453, .95418, .926626, .89508, .845148, .704534, .414568],
         [1.0, .98, .5, .01], [.9, .3])
CONFIGS = ({"use_dynamic_shifting": True}, {"shift": 3.0},
           {"use_dynamic_shifting": True, "shift_terminal": .02},
           {"use_dynamic_shifting": True, "time_shift_type": "linear"})


# ---- noise levels

def shifted(shift, t):
    if "shift" in shift:
        k = shift["shift"]
        return k * t / (1 + (k - 1) * t)
    e = math.exp(shift["mu"])
    return e / (e + 1 / t - 1)


def grid(name, shift, steps):
    size = 1000 if "shift" in shift else 10000
    table = [shifted(shift, (j + 1) / size) for j in range(size)]
    if name == "simple":
        # ComfyUI divides first: half of 38 steps over 1000 levels lies just below the 500th.
        return [table[-(1 + int(x * (size / steps)))] for x in range(steps)] + [0.0]
    if name == "beta":
        at = np.rint(stats.beta.ppf(1 - np.linspace(0, 1, steps, endpoint=False), .6, .6) * (size - 1))
        return [table[int(j)] for k, j in enumerate(at) if k == 0 or j != at[k - 1]] + [0.0]
    low, high = table[0], table[-1]
    ramp = np.linspace(0, 1, steps)
    if name == "karras":
        return ((high ** (1 / 7) + ramp * (low ** (1 / 7) - high ** (1 / 7))) ** 7).tolist() + [0.0]
    return np.exp(np.linspace(math.log(high), math.log(low), steps)).tolist() + [0.0]


def grids():
    return [{"schedule": name, **shift, "steps": n, "sigmas": grid(name, shift, n)}
            for name in ("simple", "beta", "karras", "exponential")
            for shift in SHIFTS for n in STEPS if n < 400 or name == "beta"] + \
           [{"schedule": "simple", "shift": 1.0, "steps": n, "sigmas": grid("simple", {"shift": 1.0}, n)}
            for n in (38, 76)]


def base():
    rows = []
    for config in CONFIGS:
        for levels in LISTS:
            scheduler = FlowMatchEulerDiscreteScheduler.from_config(dict(config))
            scheduler.set_timesteps(sigmas=levels, mu=.8)
            rows.append({"config": config, "mu": .8, "levels": levels,
                         "sigmas": scheduler.sigmas.double().tolist(),
                         "timesteps": scheduler.timesteps.double().tolist()})
    return rows


# ---- samplers, on vectors

START = np.array([-1.7, -.3, .2, .9, 2.1])
FALLING = [1.0, .93, .81, .6, .35, .12, 0.0]
PART = [.7, .5, .2, .04]  # begins and ends on the way


def velocity(x, sigma):
    return np.tanh(1.3 * x) + .5 * sigma * x - .2


def noise(k):
    return np.sin(1 + 3 * k + np.arange(5))


def picture(x, sigma):
    return x - sigma * velocity(x, sigma)


def euler(sigmas):
    x = START
    for s, t in zip(sigmas, sigmas[1:]):
        x = x + (t - s) * velocity(x, s)
        yield x


def euler_ancestral(sigmas):
    x = START
    for k, (s, t) in enumerate(zip(sigmas, sigmas[1:])):
        x0 = picture(x, s)
        down = t * (1 + (t / s - 1))
        x = down / s * x + (1 - down / s) * x0
        if t > 0:
            back = (1 - t) / (1 - down)
            x = back * x + math.sqrt(t ** 2 - (down * back) ** 2) * noise(k)
        yield x


def heun(sigmas):
    x = START
    for s, t in zip(sigmas, sigmas[1:]):
        first = velocity(x, s)
        mean = first if t == 0 else (first + velocity(x + (t - s) * first, t)) / 2
        x = x + (t - s) * mean
        yield x


def dpm_2(sigmas):
    x = START
    for s, t in zip(sigmas, sigmas[1:]):
        slope = velocity(x, s)
        if t > 0:
            slope = velocity(x + (math.sqrt(s * t) - s) * slope, math.sqrt(s * t))
        x = x + (t - s) * slope
        yield x


def dpmpp_2m(sigmas):
    x, before, s_before = START, None, None
    for s, t in zip(sigmas, sigmas[1:]):
        x0 = target = picture(x, s)
        if t > 0 and before is not None:
            ratio = (math.log(s) - math.log(s_before)) / (math.log(t) - math.log(s))
            target = x0 + (x0 - before) / (2 * ratio)
        x = t / s * x + (1 - t / s) * target
        before, s_before = x0, s
        yield x


def res_multistep(sigmas):
    x, before, s_before = START, None, None
    for s, t in zip(sigmas, sigmas[1:]):
        x0 = picture(x, s)
        if before is None or t == 0:
            x = x + (t - s) * (x - x0) / s
        else:
            lam, lam_next, lam_before = -math.log(s), -math.log(t), -math.log(s_before)
            h = lam_next - lam
            c2 = (lam_before - lam) / h
            phi_1 = (1 - math.exp(-h)) / h
            phi_2 = (1 - phi_1) / h
            x = math.exp(-h) * x + h * ((phi_1 - phi_2 / c2) * x0 + phi_2 / c2 * before)
        before, s_before = x0, s
        yield x


def er_sde(sigmas):
    def n(ratio):
        return ratio * (np.exp(ratio ** .3) + 10)

    x, seen, slopes, ratios = START, [], [], []
    for k, (s, t) in enumerate(zip(sigmas, sigmas[1:])):
        x0 = picture(x, s)
        if t == 0:
            yield x0
            return
        a, b = s / (1 - s), t / (1 - t)
        r = n(b) / n(a)
        new = (1 - t) / (1 - s) * r * x + (1 - t) * (1 - r) * x0
        points = b - np.arange(200) * (b - a) / 200
        width = -(b - a) / 200
        if k > 0:
            slopes.append((x0 - seen[-1]) / (a - ratios[-1]))
            new = new + (1 - t) * ((b - a) + width * (1 / n(points)).sum() * n(b)) * slopes[-1]
        if k > 1:
            bend = (slopes[-1] - slopes[-2]) / ((a - ratios[-2]) / 2)
            area = width * ((points - a) / n(points)).sum()
            new = new + (1 - t) * ((b - a) ** 2 / 2 + area * n(b)) * bend
        x = new + (1 - t) * math.sqrt(max(0, b ** 2 - (a * r) ** 2)) * noise(k)
        seen.append(x0)
        ratios.append(a)
        yield x


def lcm(sigmas):
    x = START
    for k, (s, t) in enumerate(zip(sigmas, sigmas[1:])):
        x = (1 - t) * picture(x, s) + t * noise(k)
        yield x


SAMPLERS = (euler, euler_ancestral, heun, dpm_2, dpmpp_2m, res_multistep, er_sde, lcm)


def by_diffusers(name, sigmas):
    """The steps of diffusers' own scheduler in float32, with these levels put into it."""
    x, made = torch.tensor(START, dtype=torch.float32), []
    levels = torch.tensor(sigmas, dtype=torch.float32)
    if name == "heun":
        scheduler = FlowMatchHeunDiscreteScheduler()
        scheduler.set_timesteps(len(sigmas) - 1)
        scheduler.sigmas = torch.cat([levels[:1], levels[1:-1].repeat_interleave(2), levels[-1:]])
    else:
        scheduler = FlowMatchEulerDiscreteScheduler(stochastic_sampling=True)
        scheduler.set_timesteps(sigmas=sigmas[:-1])
        scheduler.sigmas = levels
    scheduler.set_begin_index(0)
    drawn = (torch.tensor(noise(k), dtype=torch.float32) for k in itertools.count())
    with mock.patch.object(scheduling_flow_match_euler_discrete, "randn_tensor",
                           lambda *args, **options: next(drawn)):
        for i, timestep in enumerate(scheduler.timesteps):
            v = velocity(x.double().numpy(), float(scheduler.sigmas[i]))
            v = torch.tensor(v, dtype=torch.float32)
            x = scheduler.step(v, timestep, x, return_dict=False)[0]
            if name == "lcm" or scheduler.state_in_first_order or i + 1 == len(scheduler.timesteps):
                made.append(x.double().tolist())
    return made


def runs():
    rows = []
    for sampler in SAMPLERS:
        for sigmas in (FALLING, PART):
            levels = list(sigmas)
            if sampler is er_sde and levels[0] == 1:
                levels[0] = shifted({"shift": 3.0}, 1 - 1e-4)
            rows.append({"sampler": sampler.__name__, "sigmas": levels,
                         "x": [x.tolist() for x in sampler(levels)]})
    for name in ("heun", "lcm"):
        rows.append({"sampler": name, "sigmas": FALLING, "by": "diffusers",
                     "x": by_diffusers(name, FALLING)})
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--out", type=Path, default=root / "tests/data/parity/samplers.json")
    out = parser.parse_args().out
    diffusers.utils.logging.set_verbosity_error()
    parts = {"start": START.tolist(), "grids": grids(), "base": base(), "runs": runs()}
    lines = [f'"{name}":' + (json.dumps(rows) if name == "start" else
                             "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "]")
             for name, rows in parts.items()]
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()

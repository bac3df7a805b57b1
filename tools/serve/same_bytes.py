#!/usr/bin/env python3
"""20 requests through each API have the bytes of `braid generate`, with previews, and under
`mpirun -n 2 braid serve --tp 2`: same_bytes.py BRAID"""

import base64
import itertools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from ranks import LAUNCHER, LAYOUT
from running import Server

PROMPTS = ["a red circle", "a star \u2605", "", "two squares, \"quoted\"\nand a line", "x" * 400]
SIZES = [(64, 64), (48, 96), (128, 128), (16, 32)]


def wishes():
    """20 that differ in prompt, size, steps, seed, guidance, number and what is not wanted."""
    for number, (prompt, (width, height)) in enumerate(itertools.product(PROMPTS, SIZES)):
        wish = {"prompt": prompt, "width": width, "height": height, "steps": 1 + number % 4, "seed": number * 10**17}
        if number % 3 == 0:
            wish["guidance"] = 1.5 + number / 7
        if number % 4 == 1:
            wish |= {"negative_prompt": "blue", "true_cfg": 2.5}
        if number % 5 == 2:
            wish["n"] = 2
        yield wish


def drawn(braid, wish, layout, folder):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in wish.items() if name not in ("prompt", "width", "height", "n")]
    command = [braid, "generate", "-q", wish["prompt"], *flags, "--size", f"{wish['width']}x{wish['height']}",
               "-n", str(wish.get("n", 1)), "-o", "x.png", *layout]
    for old in folder.glob("*.png"):
        old.unlink()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return [file.read_bytes() for file in sorted(folder.glob("*.png"))]


def by_openais(server, wish):
    return [base64.b64decode(one["b64_json"]) for one in server.json("POST", "/v1/images/generations", wish)["data"]]


def by_stream(server, wish):
    status, _, body = server.ask("POST", "/v1/images/generations", {**wish, "stream": True, "partial_images": 3})
    assert status == 200, body
    data = [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: ")]
    return [base64.b64decode(one["b64_json"]) for one in data if one["type"] == "image_generation.completed"]


def by_job(server, wish):
    job = server.json("POST", "/v1/jobs", {**wish, "previews": True})
    server.ask("GET", f"/v1/jobs/{job['id']}/events")
    pictures = server.json("GET", f"/v1/jobs/{job['id']}")["pictures"]
    return [server.ask("GET", one["url"])[2] for one in pictures]


def by_web_ui(server, wish):
    if "true_cfg" in wish:  # it has no such scale
        return by_openais(server, wish)
    fields = {**wish, "batch_size": wish.get("n", 1)}
    if "guidance" in wish:
        fields["distilled_cfg_scale"] = fields.pop("guidance")
    return [base64.b64decode(one) for one in server.json("POST", "/sdapi/v1/txt2img", fields)["images"]]


def compare(braid, layout, launcher, folder):
    """Each request through two of the APIs."""
    ways = [by_openais, by_stream, by_job, by_web_ui]
    pictures = 0
    with Server(braid, *layout, launcher=launcher).wait_until_ready() as server:
        for number, wish in enumerate(wishes()):
            wanted = drawn(braid, wish, layout, folder)
            for way in (ways[number % 4], ways[(number + 2) % 4]):
                assert way(server, wish) == wanted, (way.__name__, wish)
            pictures += 2 * len(wanted)
    return pictures


def main(braid):
    with tempfile.TemporaryDirectory() as name:
        pictures = compare(braid, [], [], pathlib.Path(name))
        print(f"same bytes: {pictures} pictures of 20 requests, each through two APIs")
        if not shutil.which("mpirun"):
            return print("same bytes under mpirun: there is no mpirun")
        pictures = compare(braid, LAYOUT, LAUNCHER, pathlib.Path(name))
        print(f"same bytes under mpirun -n 2 --tp 2: {pictures} pictures")


if __name__ == "__main__":
    main(sys.argv[1])

#!/usr/bin/env python3
"""Input pictures over HTTP with the tests' small models: ControlNets, Redux, models that fill in,
follow edges or edit. Each result has the bytes of `braid generate`: pictures_in.py BRAID"""

import base64
import pathlib
import subprocess
import sys
import tempfile

from running import Server

DATA = pathlib.Path(__file__).parents[2] / "tests" / "data" / "parity"
WISH = {"prompt": "a red circle", "seed": 3, "steps": 3, "width": 64, "height": 64}
FLAGS = ["a red circle", "--seed", "3", "--steps", "3", "--size", "64x64"]


def nets(*folders):
    return [part for folder in folders for part in ("--controlnet", DATA / "controlnets/model" / folder)]


# A model, its flags, and requests: the job's fields, where a folder's name stands for its picture, and
# the equivalent flags of generate.
CASES = (
    ("controlnets", nets("controlnet_1", "controlnet_2"), (
        ({"control": ["a", "b"], "control_mode": [2, 0], "control_scale": [0.7, 1.2], "control_to": [0.7, 1]},
         ["--control", "a/control", "--control", "b/control", "--control-mode", "2", "--control-mode", "0",
          "--control-scale", "0.7", "--control-scale", "1.2", "--control-to", "0.7", "--control-to", "1"]),
    )),
    ("controlnets", nets("controlnet_2"), (
        ({"control": "a"}, ["--control", "a/control"]),
        ({"control": ["a", "b"], "control_scale": 0.5, "control_from": 0.3},
         ["--control", "a/control", "--control", "b/control", "--control-scale", "0.5", "--control-from", "0.3"]),
        ({"control": "a", "init": "b", "strength": 0.7, "mask": "a"},
         ["--control", "a/control", "--init", "b/init", "--strength", "0.7", "--mask", "a/mask"]),
        ({}, []),
    )),
    ("redux", ["--redux", DATA / "redux/model/redux"], (
        ({"reference": "a"}, ["--reference", "a/reference"]),
        ({"reference": ["a", "b"], "reference_scale": [1, 0.4]},
         ["--reference", "a/reference", "--reference", "b/reference=0.4"]),
        ({}, []),
    )),
    ("fill", [], (
        ({"init": "a", "mask": "b"}, ["--init", "a/init", "--mask", "b/mask"]),
        ({"init": "a", "mask": "b", "strength": 1, "mask_blur": 2, "padding_crop": 8},
         ["--init", "a/init", "--mask", "b/mask", "--strength", "1", "--mask-blur", "2", "--padding-crop", "8"]),
    )),
    ("basic", [], (
        ({"init": "a", "mask": "b", "strength": 0.8}, ["--init", "a/init", "--mask", "b/mask", "--strength", "0.8"]),
    )),
    ("control", [], (({"control": "a"}, ["--control", "a/control"]),)),
    ("zimage-turbo", [], (({"init": "a", "mask": "b"}, ["--init", "a/init", "--mask", "b/mask"]),)),
    ("joy", [], (({"reference": "a"}, ["--reference", "a/reference"]),)),
    ("klein", [], (({"reference": ["a", "b"]}, ["--reference", "a/reference", "--reference", "b/reference"]),)),
)


def draw(braid, folder, *flags):
    subprocess.run([braid, "generate", "-q", "--overwrite", "always", *flags], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return (folder / "braid.png").read_bytes()


def encoded(folder, value):
    """Replaces folder names by their pictures in base64."""
    if isinstance(value, list):
        return [encoded(folder, one) for one in value]
    return base64.b64encode((folder / value / "init").read_bytes()).decode()


def make_pictures(braid, folder):
    """Under the names that pictures in JSON get, because the results' texts contain them."""
    for name, prompt in (("a", "a star"), ("b", "white")):
        (folder / name).mkdir()
        picture = draw(braid, folder, prompt, "--size", "64x64", "--steps", "2")
        for role in ("init", "mask", "control", "reference"):
            (folder / name / role).write_bytes(picture)


def compare(braid, folder, model, own, requests):
    with Server(braid, "-m", DATA / model / "model", *own).wait_until_ready() as server:
        for fields, flags in requests:
            pictures = {name: encoded(folder, value) if name in ("init", "mask", "control", "reference") else value
                        for name, value in fields.items()}
            job = server.json("POST", "/v1/jobs", {**WISH, **pictures})
            server.ask("GET", f"/v1/jobs/{job['id']}/events")
            made = server.ask("GET", f"/v1/jobs/{job['id']}/pictures/0")[2]
            layout = own if flags else []
            wanted = draw(braid, folder, *FLAGS, "-m", DATA / model / "model", *layout, *flags)
            assert made == wanted, (model, fields, made[:300])


def main(braid):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_pictures(braid, folder)
        for case in CASES:
            compare(braid, folder, *case)
    print(f"pictures in: {sum(len(case[2]) for case in CASES)} requests to {len(CASES)} servers, the CLI's bytes")


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()))

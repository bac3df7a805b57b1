#!/usr/bin/env python3
"""Input pictures under `mpirun -n 2 braid serve --tp 2`: the CLI's bytes through each API, and a rank
killed while drawing from one: ranks.py BRAID"""

import base64
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from faults import pid_of_rank
from running import Server

LAUNCHER = ["mpirun", "-n", "2", "--allow-run-as-root", "--oversubscribe", "-x", "OMP_NUM_THREADS=1"]
LAYOUT = ["--tp", "2", "--dtype", "float32"]
WISH = {"prompt": "a red circle", "seed": 3, "steps": 4}


def drawn(braid, folder, *flags):
    command = [braid, "generate", "-q", "--overwrite", "always", WISH["prompt"], "--seed", "3", "--steps", "4", *flags]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return (folder / "braid.png").read_bytes()


def gives_the_clis_bytes(braid, server, folder):
    """Pictures without a file name are called by their role."""
    init, mask = (base64.b64encode((folder / name).read_bytes()).decode() for name in ("init", "mask"))
    from_init =( *LAYOUT, "--init", "init", "--strength", "0.75")
    wanted = drawn(braid, folder, *from_init, "--mask", "mask")
    wish = {**WISH, "mask": mask}
    edited = server.json("POST", "/v1/images/edits", {**wish, "image": init, "strength": 0.75})
    assert base64.b64decode(edited["data"][0]["b64_json"]) == wanted, "edits"
    from_web_ui = server.json("POST", "/sdapi/v1/img2img", {**WISH, "init_images": [init]})  # a mask would lay init over it
    assert base64.b64decode(from_web_ui["images"][0]) == drawn(braid, folder, *from_init), "img2img"
    job = server.json("POST", "/v1/jobs", {**wish, "init": init, "strength": 0.75, "previews": True})
    server.ask("GET", f"/v1/jobs/{job['id']}/events")
    assert server.ask("GET", f"/v1/jobs/{job['id']}/pictures/0")[2] == wanted, "a job with previews"
    return init


def ends_with_a_rank(server, init):
    server.json("POST", "/v1/jobs", {**WISH, "init": init, "size": "1024x1024", "steps": 200})
    time.sleep(0.5)
    os.kill(pid_of_rank(server, 1), signal.SIGKILL)
    began = time.monotonic()
    code = server.wait(60)
    assert code != 0
    return code, time.monotonic() - began


def main(braid):
    if not shutil.which("mpirun"):
        return print("ranks: there is no mpirun")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, prompt in (("init.png", "a star"), ("mask.png", "white")):
            subprocess.run([braid, "generate", "-q", prompt, "--size", "64x48", "--steps", "2", "-o", file],
                           cwd=folder, check=True, stdout=subprocess.DEVNULL)
            (folder / file).rename(folder / pathlib.Path(file).stem)
        with Server(braid, *LAYOUT, launcher=LAUNCHER).wait_until_ready() as server:
            init = gives_the_clis_bytes(braid, server, folder)
            code, seconds = ends_with_a_rank(server, init)
    print(f"ranks: edits, img2img and jobs have the CLI's bytes; after kill -9 exit code {code} in {seconds:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1])

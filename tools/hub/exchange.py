#!/usr/bin/env python3
"""Braid and Hugging Face's library read each other's caches, from a stand-in hub.

    exchange.py BRAID

BRAID is the built program. Needs huggingface_hub.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "models" / "demo"


def fill(folder):
    for path in DEMO.rglob("*"):
        if path.is_file():
            copy = folder / "org" / "demo" / path.relative_to(DEMO)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (folder / "org" / "demo" / "README.md").write_text("not read by Braid\n")


class StandIn:
    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen([sys.executable, "-B", ROOT / "tools/hub/stand_in.py", folder],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ports = dict(part.split("=") for part in self.process.stdout.readline().split())
        self.endpoint = f"http://127.0.0.1:{ports['hub']}"

    def loads(self):
        """Paths of files whose bytes were asked for, since the last call."""
        log = self.folder / "requests.log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        asked = [json.loads(line) for line in lines]
        return [r["path"] for r in asked if r["method"] == "GET" and "/api/" not in r["path"]]

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)


def run(program, *arguments, cache, endpoint):
    environment = dict(os.environ, HF_ENDPOINT=endpoint, HF_HUB_CACHE=str(cache), HF_TOKEN="")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env=environment,
                          cwd=cache.parent, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def library(code, *arguments, cache, endpoint):
    """Runs lines of Python with the library; returns what they print."""
    script = "import sys\nfrom huggingface_hub import *\n" + code
    environment = dict(os.environ, HF_ENDPOINT=endpoint, HF_HUB_CACHE=str(cache), HF_TOKEN="",
                       HF_HUB_DISABLE_XET="1")
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True,
                          env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in Path(folder).rglob("*")
            if p.is_file()}


def check_library_reads_braids(braid, hub, cache):
    pulled = run(braid, "pull", "org/demo", "-q", cache=cache, endpoint=hub.endpoint)
    found = library("print(snapshot_download('org/demo', local_files_only=True))",
                    cache=cache, endpoint="http://127.0.0.1:1")
    assert Path(found).resolve() == Path(pulled).resolve(), (found, pulled)
    for name, data in contents(pulled).items():
        assert data == (DEMO / name).read_bytes(), name
        at = library("print(hf_hub_download('org/demo', sys.argv[1], local_files_only=True))", name,
                     cache=cache, endpoint="http://127.0.0.1:1")
        assert Path(at).read_bytes() == data, name
    listed = library("r, = scan_cache_dir().repos; print(r.repo_id, len(scan_cache_dir().warnings))",
                     cache=cache, endpoint="http://127.0.0.1:1")
    assert listed == "org/demo 0", listed
    # The rest, and nothing twice.
    here = set(contents(pulled))
    hub.loads()
    library("snapshot_download('org/demo')", cache=cache, endpoint=hub.endpoint)
    again = [path for path in hub.loads() if path.rpartition("//")[2] in here or
             path.partition("/resolve/")[2].partition("/")[2] in here]
    assert not again, again
    print(f"the library finds what pull wrote: {len(here)} files, none loaded again")


def check_braid_reads_the_librarys(braid, hub, cache):
    library("snapshot_download('org/demo')", cache=cache, endpoint=hub.endpoint)
    hub.loads()
    picture = run(braid, "generate", "a red circle", "-m", "org/demo", "--size", "32x32", "--steps", "1",
                  "-q", cache=cache, endpoint="http://127.0.0.1:1")
    assert (cache.parent / picture).exists()
    run(braid, "pull", "org/demo", "--verify", cache=cache, endpoint=hub.endpoint)
    assert not hub.loads()
    models = json.loads(run(braid, "models", "--json", cache=cache, endpoint=hub.endpoint))["models"]
    assert any(m["name"] == "org/demo" and m["fits"] for m in models), models
    print("Braid finds what the library wrote, and pull loads none of it again")


def main():
    braid = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        fill(folder / "hub")
        hub = StandIn(folder / "hub")
        try:
            for number, check in enumerate([check_library_reads_braids, check_braid_reads_the_librarys]):
                cache = folder / str(number) / "cache"
                cache.mkdir(parents=True)
                check(braid, hub, cache)
        finally:
            hub.end()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Two replicas behind nginx with the example's configuration, restarted one after the other while
clients send requests: replicas.py BRAID"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from webdriver import free_port
from running import Server

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "serve" / "nginx.conf"
TINY = {"prompt": "a", "size": "64x64", "steps": 3, "seed": 1}


class Proxy:
    """nginx with the example's file, on a free port in front of these replicas."""

    def __init__(self, folder, ports):
        self.port = free_port()
        text = EXAMPLE.read_text(encoding="utf-8").replace("listen 80;", f"listen 127.0.0.1:{self.port};")
        text = text.replace("ip_hash;", "")  # all clients here share one address
        for old, new in zip(("8188", "8189"), ports):
            text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
        scratch = "".join(f"{name}_temp_path {folder}/{name};\n"
                          for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
            f"http {{ access_log off;\n{scratch}{text}}}\n", encoding="utf-8")
        self._process = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf"],
                                         stderr=subprocess.DEVNULL)

    def post(self, body, timeout=120):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/images/generations", json.dumps(body).encode(),
            {"content-type": "application/json", "host": "pictures.example.org"})
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)["data"]

    def stop(self):
        self._process.terminate()
        self._process.wait()


def start(braid, port=0):
    flags = ["--allow-host", "pictures.example.org", *(["--port", str(port)] if port else [])]
    return Server(braid, *flags).wait_until_ready()


def ask_until(proxy, wanted, over, answers):
    while not over.is_set():
        try:
            answers.append(proxy.post(TINY) == wanted)
        except urllib.error.HTTPError as error:
            answers.append(error.code)


def main(braid):
    if not shutil.which("nginx"):
        sys.exit("nginx is missing")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        replicas = [start(braid), start(braid)]
        proxy = Proxy(pathlib.Path(name), [replica.port for replica in replicas])
        time.sleep(0.5)
        wanted = proxy.post(TINY)
        over, answers = threading.Event(), []
        clients = [threading.Thread(target=ask_until, args=(proxy, wanted, over, answers)) for _ in range(4)]
        for client in clients:
            client.start()
        for index, replica in enumerate(replicas):
            time.sleep(1)
            replica.signal(signal.SIGTERM)
            assert replica.wait() == 0
            replicas[index] = start(braid, replica.port)
        time.sleep(1)
        over.set()
        for client in clients:
            client.join()
        proxy.stop()
        made = [replica.ask("GET", "/metrics")[2].decode() for replica in replicas]
        for replica in replicas:
            replica.signal(signal.SIGTERM)
            assert replica.wait() == 0
        assert answers and all(answer is True for answer in answers), answers
        counts = [int(re.search(r'outcome="done"} (\d+)', text).group(1)) for text in made]
        print(f"replicas: both restarted while 4 clients asked {len(answers)} times; all had their picture "
              f"(new processes made {counts[0]} and {counts[1]})")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))

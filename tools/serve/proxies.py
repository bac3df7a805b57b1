#!/usr/bin/env python3
"""A server below a path and at a Unix socket, behind nginx, Caddy and HAProxy from Debian: addresses
lead back through the proxy, and health checks find the server alive. proxies.py BRAID"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from webdriver import free_port
from running import Server

TINY = {"prompt": "a", "size": "64x64", "steps": 2, "seed": 1}

NGINX = """daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    upstream tcp {{ server 127.0.0.1:{tcp}; keepalive 4; }}
    upstream local {{ server unix:{unix}; keepalive 4; }}
    server {{
        listen 127.0.0.1:{port};
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $http_host;
        location /taken-off/ {{
            proxy_pass http://tcp/;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-Prefix /taken-off;
        }}
        location /left/ {{ proxy_pass http://local; }}
        location / {{ proxy_pass http://tcp; }}
    }}
}}
"""

CADDY = """{{
    admin off
    auto_https off
    storage file_system {folder}
}}
http://127.0.0.1:{port} {{
    handle_path /braid/* {{
        reverse_proxy 127.0.0.1:{tcp} {{
            header_up X-Forwarded-Prefix /braid
        }}
    }}
}}
"""

HAPROXY = """defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend all
    bind 127.0.0.1:{port}
    use_backend options if {{ path /by-options }}
    use_backend get if {{ path /by-get }}
backend options
    option httpchk
    http-request set-path /readyz
    server one 127.0.0.1:{tcp} check inter 100ms rise 1 fall 1
backend get
    option httpchk GET /readyz
    http-request set-path /readyz
    server one {unix} check inter 100ms rise 1 fall 1
"""


@contextlib.contextmanager
def proxy(arguments, port):
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def wait_for_port(port, process):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        assert process.poll() is None, process.args
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on {port}")


def ask(url, body=None):
    """(status, headers, body)"""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"} if data else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def leads_back(site, prefix):
    """The page, a job's addresses and a picture's, as a client follows them."""
    status, _, page = ask(f"{site}{prefix}/")
    assert status == 200 and f'<base href="{prefix}/">'.encode() in page, page[:300]
    assert ask(f"{site}{prefix}/page.css")[0] == 200
    status, headers, body = ask(f"{site}{prefix}/v1/jobs", TINY)
    assert status == 202, body
    assert headers["location"].startswith(f"{prefix}/v1/jobs/"), headers["location"]
    job = urllib.parse.urljoin(site, headers["location"])
    assert b"event: done" in ask(job + "/events")[2]
    picture = json.loads(ask(job)[2])["pictures"][0]["url"]
    made = ask(urllib.parse.urljoin(site, picture))
    assert made[0] == 200 and made[2].startswith(b"\x89PNG"), (picture, made[0])
    answer = json.loads(ask(f"{site}{prefix}/v1/images/generations", {**TINY, "response_format": "url"})[2])
    url = answer["data"][0]["url"]
    assert url.startswith(f"{site}{prefix}/v1/jobs/"), url
    assert ask(url)[2] == made[2]


def is_found_alive(url):
    until = time.monotonic() + 20
    while (status := ask(url)[0]) != 200:
        assert time.monotonic() < until, (url, status)
        time.sleep(0.1)


def start_at(braid, path):
    process = subprocess.Popen([braid, "serve", "--unix-socket", path, "--base-path", "/left"],
                               stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "event=ready" in line:
            return process
    raise AssertionError("the server did not start")


def main(braid):
    for program in ("nginx", "caddy", "haproxy"):
        if not shutil.which(program):
            sys.exit(f"{program} is missing")
    with tempfile.TemporaryDirectory() as name, Server(braid) as server:
        os.chmod(name, 0o755)
        folder = pathlib.Path(name)
        server.wait_until_ready()
        local = start_at(braid, folder / "braid.sock")
        os.chmod(folder / "braid.sock", 0o666)  # nginx's workers are another user

        def run(template, file, arguments):
            port = free_port()
            text = template.format(folder=folder, port=port, tcp=server.port, unix=folder / "braid.sock")
            (folder / file).write_text(text, encoding="utf-8")
            return proxy([*arguments, folder / file], port)

        with run(NGINX, "nginx.conf", ["nginx", "-p", folder, "-c"]) as site:
            for prefix in ("", "/taken-off", "/left"):
                if prefix:
                    leads_back(site, prefix)
                else:
                    assert b"<base" not in ask(f"{site}/")[2]
        with run(CADDY, "Caddyfile", ["caddy", "run", "--adapter", "caddyfile", "--config"]) as site:
            leads_back(site, "/braid")
        with run(HAPROXY, "haproxy.cfg", ["haproxy", "-db", "-f"]) as site:
            is_found_alive(f"{site}/by-options")
            is_found_alive(f"{site}/by-get")
        local.send_signal(signal.SIGTERM)
        assert local.wait() == 0
        assert not (folder / "braid.sock").exists()
    print("proxies: nginx and Caddy lead back below a path, taken off or left, also to a Unix socket; "
          "HAProxy's checks find the server")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))

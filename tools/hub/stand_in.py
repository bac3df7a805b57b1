#!/usr/bin/env python3
"""A hub of models on loopback, with the faults that a real one may have.

    stand_in.py FOLDER [--tls CERTIFICATE_AND_KEY]

FOLDER/ORG/NAME/... are the files of repositories; FOLDER/ORG/NAME@REVISION/... those of other revisions
than main. Large files (.safetensors, .gguf) are served by a second port, to which the first redirects, as
the hub does to its content network. Prints "hub=PORT network=PORT", and ends when standard input does.
FOLDER/faults.json is read for each request:

    gated        true: only the token "good" gets files
    token        the token that is asked for; others are refused
    files        names that the list of files has instead
    commit       that files claim to be of
    page         true: the list is a web page
    status       {path: status} of requests for a file
    busy         [times, Retry-After] of the first requests for files
    limited      [times, RateLimit] of the first requests for files
    cut          {path: [bytes, times]}: the connection ends after so many bytes of an answer
    stall        {path: bytes}: nothing comes after so many
    other_bytes  [path, ...] whose bytes differ from the hash
    size         {path: bytes} that are claimed
    no_ranges    true: all bytes come, whatever is asked for
    together     files come only when so many are asked for at once
    away         where large files are, instead of the second port: "http://127.0.0.1:1"

FOLDER/requests.log has a line of JSON for each request.
"""

import argparse
import hashlib
import json
import re
import ssl
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LARGE = (".safetensors", ".gguf")


class Hub:
    def __init__(self, folder):
        self.folder = folder
        self.lock = threading.Condition()
        self.counts = {}
        self.in_progress = 0
        self.network = ""

    def faults(self):
        path = self.folder / "faults.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def log(self, **entry):
        with self.lock, open(self.folder / "requests.log", "a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")

    def times(self, key):
        """How often this was asked before."""
        with self.lock:
            self.counts[key] = self.counts.get(key, 0) + 1
            return self.counts[key] - 1

    def repository(self, name, revision):
        """(folder, commit) of a branch, tag or commit; None if there is none."""
        for folder in sorted(self.folder.glob(name + "*")):
            branch = folder.name.partition("@")[2] or "main"
            commit = hashlib.sha1(f"{name}@{branch}".encode()).hexdigest()
            if folder.name.partition("@")[0] == Path(name).name and revision in (branch, commit):
                return folder, commit
        return None

    def wait_for_company(self, count):
        """Until `count` requests are in progress; false after some seconds alone."""
        with self.lock:
            self.in_progress += 1
            self.lock.notify_all()
            done = self.lock.wait_for(lambda: self.in_progress >= count, timeout=5)
        return done


def files_in(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def hashes(data):
    git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    return git, hashlib.sha256(data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub = None
    where = "hub"

    def log_message(self, *_):
        pass

    def answer(self, status, headers=(), body=b"", length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code, message="refused"):
        self.answer(status, [("X-Error-Code", code), ("X-Error-Message", message)])

    def token(self):
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def do_HEAD(self):
        self.serve()

    def do_GET(self):
        self.serve()

    def serve(self):
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        self.hub.log(where=self.where, method=self.command, path=path, token=self.token(),
                     range=self.headers.get("Range") or "")
        if self.where == "network":
            repository, _, file = path[1:].partition("//")
            return self.send_file(Path(self.hub.folder, repository) / file, file)
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/(.+)", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if api:
            return self.list(api[1], api[2], api[3])
        if file:
            return self.resolve(*file.groups())
        return self.refuse(404, "RepoNotFound")

    def list(self, name, kind, revision):
        faults = self.hub.faults()
        if faults.get("page"):
            return self.answer(200, [("Content-Type", "text/html")], b"<html>Log in</html>")
        if faults.get("token") and self.token() != faults["token"]:
            return self.answer(401, [("X-Error-Message", "Invalid credentials in Authorization header")])
        if not list(self.hub.folder.glob(name)):
            return self.refuse(401 if not self.token() else 404, "RepoNotFound")
        found = self.hub.repository(name, revision)
        if not found:
            return self.refuse(404, "RevisionNotFound")
        folder, commit = found
        names = faults.get("files", files_in(folder))
        if kind == "revision":
            body = {"id": name, "sha": commit, "siblings": [{"rfilename": n} for n in names]}
        else:
            body = [self.tree_entry(folder, n) for n in names]
        return self.answer(200, [("Content-Type", "application/json")], json.dumps(body).encode())

    @staticmethod
    def tree_entry(folder, name):
        data = (folder / name).read_bytes()
        git, sha = hashes(data)
        entry = {"type": "file", "path": name, "size": len(data), "oid": git}
        if name.endswith(LARGE):
            entry["lfs"] = {"oid": sha, "size": len(data), "pointerSize": 130}
        return entry

    def resolve(self, name, revision, file):
        faults = self.hub.faults()
        found = self.hub.repository(name, revision)
        if not found:
            return self.refuse(404, "RevisionNotFound")
        folder, commit = found
        if faults.get("gated") and self.token() != "good":
            return self.refuse(403 if self.token() else 401, "GatedRepo", "Access is restricted")
        if file in faults.get("status", {}):
            status = faults["status"][file]
            return self.refuse(status, "EntryNotFound" if status == 404 else "")
        times, wait = faults.get("busy", [0, 0])
        if self.hub.times("busy") < times:
            return self.answer(429, [("Retry-After", str(wait))])
        times, limit = faults.get("limited", [0, ""])
        if self.hub.times("limited") < times:
            return self.answer(429, [("RateLimit", limit)])
        path = folder / file
        if not path.is_file():
            return self.refuse(404, "EntryNotFound")
        data = path.read_bytes()
        git, sha = hashes(data)
        size = faults.get("size", {}).get(file, len(data))
        headers = [("X-Repo-Commit", faults.get("commit", commit)), ("ETag", f'"{git}"')]
        if file.endswith(LARGE):
            network = faults.get("away", self.hub.network)
            where = f"{network}/{folder.relative_to(self.hub.folder)}//{file}"
            return self.answer(302, headers + [("X-Linked-Etag", f'"{sha}"'), ("X-Linked-Size", str(size)),
                                               ("Location", urllib.parse.quote(where, safe=":/@"))])
        if self.command == "HEAD":
            return self.answer(200, headers, length=size)
        return self.send_file(path, file, headers)

    def send_file(self, path, file, headers=()):
        faults = self.hub.faults()
        data = path.read_bytes()
        if file in faults.get("other_bytes", []):
            data = bytes([data[0] ^ 1]) + data[1:]
        if file.endswith(LARGE) and not self.hub.wait_for_company(faults.get("together", 0)):
            return self.answer(400)
        begin, status = 0, 200
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if asked and not faults.get("no_ranges"):
            begin, status = int(asked[1]), 206
            if begin >= len(data):
                return self.answer(416)
            headers = [*headers, ("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")]
        body = data[begin:]
        end, times = faults.get("cut", {}).get(file, [len(body), 0])
        is_cut = self.hub.times("cut " + file) < times
        stall = faults.get("stall", {}).get(file)
        sent = body[:end] if is_cut else body if stall is None else body[:stall]
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(sent)
        if stall is not None:
            self.wfile.flush()
            time.sleep(60)
        if len(sent) < len(body):
            self.close_connection = True
        return None


def listen(hub, where):
    handler = type("Own", (Handler,), {"hub": hub, "where": where})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # clients that leave
    return server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tls", help="a file with certificate and key")
    flags = parser.parse_args()
    hub = Hub(flags.folder)
    servers = [listen(hub, "hub"), listen(hub, "network")]
    if flags.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(flags.tls)
        for server in servers:
            server.socket = context.wrap_socket(server.socket, server_side=True,
                                                do_handshake_on_connect=False)
    hub.network = f"{'https' if flags.tls else 'http'}://127.0.0.1:{servers[1].server_port}"
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"hub={servers[0].server_port} network={servers[1].server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

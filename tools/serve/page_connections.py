"""A way to the server that is cut, falls silent or leads to another one, and the page at its end: for page_faults.py."""

import contextlib
import socket
import threading
import time

from page import gallery, idle, set_value
from running import Server

# The page waits 45 s for a stream that is silent: here 2 s.
IMPATIENT = """
const later = window.setTimeout;
window.setTimeout = (act, time, ...more) => later(act, time === 45e3 ? 2e3 : time, ...more);
"""
# The first picture that is asked for does not come.
KEEP_PICTURE = """
const reach = window.fetch;
window.fetch = (path, options) => {
  if (!path.includes("/pictures/")) return reach(path, options);
  window.fetch = reach;
  return new Promise((resolve, reject) => options.signal?.addEventListener("abort", () => reject(options.signal.reason)));
};
"""
# The server takes one order, and its answer does not arrive.
LOSE_ANSWER = """
const reach = window.fetch;
window.fetch = async (path, options) => {
  const answer = await reach(path, options);
  if (options?.method !== "POST" || !path.endsWith("v1/jobs")) return answer;
  window.fetch = reach;
  throw new TypeError("lost");
};
"""
# Another program answers for the server.
BAD_GATEWAY = """
const reach = window.fetch;
window.isGone = true;
window.fetch = (path, options) => window.isGone
  ? Promise.resolve(new Response("<html>502 Bad Gateway</html>", {status: 502})) : reach(path, options);
"""


class Relay:
    """A way to the server that can be cut and restored."""

    def __init__(self, port):
        self._to, self._open, self._pairs, self._hushed = port, True, [], set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            if not self._open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._to))
            self._pairs.append((client, server))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if not {one, other} & self._hushed:
                    other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def lead_to(self, port):
        self._to = port

    def cut(self):
        self._open = False
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def hush(self):
        """Connections stay open, and nothing comes through them any more: new ones are as before."""
        self._hushed.update(end for pair in self._pairs for end in pair)

    def restore(self):
        self._open = True


def opened(browser, address):
    browser.open(address)
    browser.wait_until("!document.getElementById('make').disabled")


def in_sight(browser, name):
    return browser.run("""const box = document.getElementById(arguments[0]).getBoundingClientRect();
        return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;""", name)


def comes_back(browser, server):
    """The connection is lost during a job that ends meanwhile."""
    relay = Relay(server.port)
    opened(browser, relay.address)
    set_value(browser, "prompt", "meanwhile")
    set_value(browser, "steps", "100")
    set_value(browser, "n", "2")
    browser.click("#make")
    browser.wait_until("document.getElementById('progress').value > 0.02")
    relay.cut()
    browser.wait_until("document.getElementById('server').textContent === 'the server cannot be reached'")
    browser.click("#make")
    browser.wait_until("document.getElementById('error').textContent === 'the server cannot be reached'")
    server.wait_until_idle(120)
    relay.restore()
    browser.wait_until("document.querySelectorAll('#gallery img').length === 2", 60)
    browser.wait_until("document.getElementById('error').textContent === ''")
    idle(browser)


def resumes_a_waiting_job(browser, server):
    """The connection is lost after the first event of a job, while it waits for another's."""
    first = server.json("POST", "/v1/jobs", {"prompt": "another's", "user": "another", "steps": 200, "size": "512x512"})
    relay = Relay(server.port)
    opened(browser, relay.address)
    for name, text in (("prompt", "waits"), ("steps", "2"), ("n", "1"), ("width", "64"), ("height", "64")):
        set_value(browser, name, text)
    browser.click("#make")
    browser.wait_until("document.querySelector('#jobs small')?.textContent.startsWith('waiting')")
    time.sleep(1)  # its first event comes at once, and changes nothing that is shown
    before = gallery(browser)
    relay.cut()
    browser.wait_until("document.getElementById('server').textContent === 'the server cannot be reached'")
    relay.restore()
    browser.wait_until("document.getElementById('server').textContent !== 'the server cannot be reached'")
    server.json("DELETE", f"/v1/jobs/{first['id']}")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}", 20)
    idle(browser)


def tells_of_lost_jobs(browser, braid):
    """The server is restarted while it draws: its job is lost, and what was drawn of it is no picture."""
    relay = Relay(0)
    with Server(braid, "-q").wait_until_ready() as server:
        relay.lead_to(server.port)
        opened(browser, relay.address)
        set_value(browser, "prompt", "lost")
        set_value(browser, "steps", "200")
        browser.click("#make")
        browser.wait_until("document.getElementById('picture').className === 'rough'")
        relay.cut()
    with Server(braid, "-q").wait_until_ready() as server:
        relay.lead_to(server.port)
        relay.restore()
        browser.wait_until("document.getElementById('error').textContent.includes('restarted')", 60)
        idle(browser)
        assert in_sight(browser, "error")
        assert browser.run("return document.getElementById('picture').hidden"), "half a picture is left"
        set_value(browser, "steps", "2")
        browser.click("#make")
        browser.wait_until("!document.getElementById('picture').hidden", 60)
        idle(browser)


def goes_on_after_silence(browser, server):
    """The connection is lost without a word, as where a phone leaves its network."""
    relay = Relay(server.port)
    script = browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=IMPATIENT)
    opened(browser, relay.address)
    for name, text in (("prompt", "in silence"), ("steps", "60"), ("n", "1")):
        set_value(browser, name, text)
    before = gallery(browser)
    browser.click("#make")
    browser.wait_until("document.getElementById('progress').value > 0.02")
    relay.hush()
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}", 40)
    idle(browser)
    browser.run(KEEP_PICTURE)
    set_value(browser, "steps", "2")
    browser.click("#make")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 2}", 40)
    idle(browser)
    browser.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def finds_an_order_without_an_answer(browser, server):
    opened(browser, server.address)
    for name, text in (("prompt", "taken"), ("steps", "2"), ("n", "1")):
        set_value(browser, name, text)
    before = gallery(browser)
    browser.run(LOSE_ANSWER)
    browser.click("#make")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}", 20)
    idle(browser)


def says_that_another_answers(browser, server):
    opened(browser, server.address)
    browser.run(BAD_GATEWAY)
    browser.wait_until("document.getElementById('server').textContent === 'the server cannot be reached'", 10)
    browser.run("window.isGone = false")
    browser.wait_until("document.getElementById('server').textContent === 'idle'", 10)

#!/usr/bin/env python3
"""The page's checkbox for rewritten prompts, in three engines, with a stand-in for the language model's server:
page_enhancer.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import contextlib
import http.server
import json
import os
import pathlib
import sys
import tempfile
import threading

from browser import Browser
from page import gallery, idle, set_value, value
from page_pictures import is_hidden, text, text_of_settings
from running import Server
from webdriver import ENGINES

ANSWER = "a fox of russet fur, sitting in deep snow"


class ChatServer:
    """Answers OpenAI's chat completions. `holds` keeps the answer back, `status` is sent with it."""

    def __init__(self):
        self.asked, self.holds, self.status = [], threading.Event(), 200
        self.holds.set()
        ours = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, status, content):
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):  # who asked may have given up
                    self.wfile.write(body)

            def do_GET(self):
                self.answer(200, {"object": "list", "data": [{"id": "stand-in", "object": "model"}]})

            def do_POST(self):
                ours.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                ours.holds.wait(60)
                if ours.status != 200:
                    return self.answer(ours.status, {"error": {"message": "the model is still loading"}})
                self.answer(200, {"choices": [{"index": 0, "finish_reason": "stop",
                                               "message": {"role": "assistant", "content": ANSWER}}]})

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"


def asks(browser, prompt):
    set_value(browser, "prompt", prompt)
    set_value(browser, "steps", "2")
    browser.click("#make")


def leaves_prompts_alone(browser, chat):
    """Unless it is ticked."""
    browser.wait_until("!document.getElementById('make').disabled")
    assert not is_hidden(browser, "enhance-row")
    assert browser.role("#enhance") == "checkbox"
    assert not browser.run("return document.getElementById('enhance').checked"), "it is off by default"
    asks(browser, "a fox")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    idle(browser)
    assert not chat.asked, chat.asked


def draws_what_was_written(browser, chat, prompt, folder):
    browser.click("#enhance")
    asks(browser, prompt)
    browser.wait_until("document.querySelectorAll('#gallery img').length === 2")
    idle(browser)
    assert prompt in json.dumps(chat.asked[-1]), chat.asked
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown-settings').textContent.includes('original prompt')")
    said = text_of_settings(browser)
    assert text(browser, "shown-prompt") == ANSWER and said["original prompt"] == prompt, said
    browser.screenshot(folder / f"enhanced-{browser.engine}.png")
    browser.run("document.getElementById('shown').close()")
    browser.wait_until("!history.state?.isDialog")  # to go back takes a moment, and would load the page again
    assert value(browser, "prompt") == prompt, "the user's own words stay in the form"
    browser.refresh()
    browser.wait_until("!document.getElementById('make').disabled")
    assert browser.run("return document.getElementById('enhance').checked"), "it is remembered"


def reuses_what_was_written(browser):
    """A picture's prompt is not rewritten once more."""
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown').open")
    browser.wait_until(f"document.getElementById('shown-prompt').textContent === '{ANSWER}'")
    browser.click("#reuse")
    assert value(browser, "prompt") == ANSWER
    assert not browser.run("return document.getElementById('enhance').checked")
    browser.click("#enhance")


def gives_up(browser, chat, prompt):
    """While the server still thinks."""
    chat.holds.clear()
    asks(browser, prompt)
    browser.wait_until("document.getElementById('enhancing').offsetParent !== null")
    browser.wait_until("document.getElementById('stop-enhancing').offsetParent !== null")
    browser.click("#stop-enhancing")
    browser.wait_until("document.getElementById('enhancing').offsetParent === null")
    browser.wait_until("!document.getElementById('make').disabled")
    chat.holds.set()
    assert gallery(browser) == 2, "nothing is drawn of what was given up"


def says_why_not(browser, chat, prompt):
    chat.status = 503
    asks(browser, prompt)
    browser.wait_until("document.getElementById('error').offsetParent !== null")
    assert "the model is still loading" in text(browser, "error"), text(browser, "error")
    assert gallery(browser) == 2 and value(browser, "prompt") == prompt, "nothing is lost"
    chat.status = 200


def main(braid, folder, cache):
    os.environ["XDG_CACHE_HOME"] = str(cache)  # answers are kept there
    for engine in ENGINES:
        chat = ChatServer()
        with Server(braid, "--enhancer", chat.address).wait_until_ready() as server, \
                Browser(height=1500, engine=engine) as browser:
            browser.open(server.address)
            leaves_prompts_alone(browser, chat)
            # answers are kept, so that each browser has words of its own
            draws_what_was_written(browser, chat, f"a fox for {engine}", folder)
            reuses_what_was_written(browser)
            gives_up(browser, chat, f"an owl for {engine}")
            says_why_not(browser, chat, f"a bear for {engine}")
        print(f"page: prompts are rewritten, given up and refused in {engine}")
    with Server(braid).wait_until_ready() as server, Browser() as browser:
        browser.open(server.address)
        browser.wait_until("!document.getElementById('make').disabled")
        assert is_hidden(browser, "enhance-row"), "there is no server to ask"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as kept:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own), kept)

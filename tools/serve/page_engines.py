#!/usr/bin/env python3
"""The page in three engines, with and without a key: page_engines.py BRAID [FOLDER-FOR-SCREENSHOTS]
It loads, makes a picture, cancels another, sends no half a key and keeps nothing under a name that browsers use themselves."""

import pathlib
import sys
import tempfile
import time

from browser import KEYS, Browser
from page import gallery, idle, set_value
from running import Server
from webdriver import ENGINES

KEY = "a key of this test"

STORED = """
const names = [...Object.keys(localStorage), ...Object.keys(sessionStorage)];
return [names.length, names.filter((name) => name in Storage.prototype)];
"""


def loads(browser, address):
    browser.open(address)
    browser.wait_until("!document.getElementById('make').disabled")
    assert browser.run("return document.getElementById('server').textContent") == "idle"


def makes_a_picture(browser, folder):
    set_value(browser, "prompt", "a red circle on a blue background")
    set_value(browser, "steps", "8")
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    idle(browser)
    assert browser.run("return document.getElementById('picture').naturalWidth") == 128
    browser.wait_until("document.querySelector('#gallery img').naturalWidth > 0")
    browser.screenshot(folder / f"{browser.engine}.png")


def cancels_another(browser, server):
    set_value(browser, "steps", "200")
    browser.click("#make")
    browser.wait_until("document.getElementById('progress').value > 0")
    browser.click("#cancel")
    idle(browser)
    assert gallery(browser) == 1
    server.wait_until_idle()


def keeps_it(browser):
    browser.refresh()
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    browser.wait_until("!document.getElementById('make').disabled")
    count, taken = browser.run(STORED)
    assert count > 0 and taken == [], f"names that are Storage's own: {taken}"


def sends_no_half_key(browser):
    """Escape is no answer; the page asks again when it is told to."""
    browser.type("#key", "half a ke")
    browser.press(KEYS["escape"])
    browser.wait_until("document.getElementById('server').textContent === 'a key is needed'")
    time.sleep(4)  # the page asks the server each three seconds
    assert not browser.run("return document.getElementById('ask-key').open"), "it was declined"
    assert browser.run("return sessionStorage.getItem('braid.api-key')") is None, "half a key is stored"
    browser.click("#give-key")
    browser.wait_until("document.getElementById('ask-key').open")
    browser.click("#no-key")  # as on phones, which have no Escape
    browser.wait_until("!document.getElementById('give-key').hidden && !document.getElementById('ask-key').open")
    browser.click("#give-key")
    browser.wait_until("document.getElementById('ask-key').open")
    assert browser.run("return document.getElementById('key').value + document.getElementById('key-wrong').hidden") == "true"


def asks_for_the_key(browser, server):
    """Once, before anything is said of a wrong one; and no more after a reload."""
    hidden = "document.getElementById('key-wrong').hidden"
    browser.open(server.address)
    browser.wait_until("document.getElementById('ask-key').open")
    assert browser.run(f"return {hidden}"), "no key was typed yet"
    sends_no_half_key(browser)
    browser.type("#key", "not this one")
    browser.click("#ask-key button")
    browser.wait_until(f"document.getElementById('ask-key').open && !{hidden}")
    set_value(browser, "key", KEY)
    browser.click("#ask-key button")
    browser.wait_until("!document.getElementById('make').disabled")
    left = browser.run("return [document.getElementById('key').value, document.getElementById('give-key').hidden]")
    assert left == ["", True], f"the field keeps no key: {left}"
    browser.refresh()
    browser.wait_until("!document.getElementById('make').disabled")
    assert not browser.run("return document.getElementById('ask-key').open")
    count, taken = browser.run(STORED)
    assert count > 0 and taken == [], f"names that are Storage's own: {taken}"


def main(braid, folder):
    with tempfile.TemporaryDirectory() as name, Server(braid).wait_until_ready() as server:
        key = pathlib.Path(name) / "key"
        key.write_text(KEY)
        with Server(braid, "--api-key-file", key).wait_until_ready() as locked:
            for engine in ENGINES:
                began = time.monotonic()
                with Browser(engine=engine) as browser:
                    loads(browser, server.address)
                    makes_a_picture(browser, folder)
                    cancels_another(browser, server)
                    keeps_it(browser)
                    assert not browser.complaints(), browser.complaints()
                    asks_for_the_key(browser, locked)
                    # An address with a name and a password, as bookmarks have them.
                    loads(browser, server.address.replace("127.0.0.1", "user:secret@127.0.0.1"))
                print(f"page: loads, draws, cancels and asks for a key in {engine}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

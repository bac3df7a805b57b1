#!/usr/bin/env python3
"""The page in headless Chromium, as a person uses it: page.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import pathlib
import sys
import tempfile

from browser import KEYS, Browser
from running import Server

DROP = """
const [name, base64] = arguments;
const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const data = new DataTransfer();
data.items.add(new File([bytes], name, {type: "image/png"}));
dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
"""

# The model seems to be loading until `loaded` is 1: the bundled one takes a tenth of a second.
LOADING = """
const reach = window.fetch;
window.loaded = 0.4;
window.fetch = (path, options) => {
  if (window.loaded === 1) return reach(path, options);
  const body = path === "readyz" ? {status: "loading", loaded: window.loaded, running: 0, waiting: 0}
    : {error: {message: "the model is still being loaded", code: "loading"}};
  return Promise.resolve(new Response(JSON.stringify(body), {status: 503}));
};
"""


def value(browser, name):
    return browser.run(f"return document.getElementById('{name}').value")


def set_value(browser, name, text):
    browser.clear(f"#{name}")
    browser.type(f"#{name}", text)


def idle(browser):
    browser.wait_until("document.getElementById('working').hidden", 120)


def makes_a_picture(browser, folder):
    browser.wait_until("document.getElementById('width').value === '128'")
    set_value(browser, "prompt", "a red circle on a blue background")
    set_value(browser, "steps", "60")
    browser.type("#prompt", KEYS["control"] + KEYS["enter"])
    browser.wait_until("document.getElementById('picture').className === 'rough'")
    browser.wait_until("document.getElementById('progress').value > 0.2")
    assert "step" in browser.run("return document.getElementById('phase').textContent")
    browser.screenshot(folder / "working.png")
    idle(browser)
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    assert browser.run("return document.getElementById('picture').naturalWidth") == 128
    browser.screenshot(folder / "done.png")


def waits_for_the_model(server, folder):
    with Browser() as browser:
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=LOADING)
        browser.open(server.address)
        browser.wait_until("document.getElementById('loaded').value === 0.4")
        assert browser.label("#loaded") == "Loading the model, 40 %", browser.label("#loaded")
        browser.type("#prompt", "typed meanwhile" + KEYS["control"] + KEYS["enter"])
        browser.screenshot(folder / "loading.png")
        browser.run("window.loaded = 1")
        browser.wait_until("!document.getElementById('make').disabled")
        assert (value(browser, "prompt"), value(browser, "width")) == ("typed meanwhile", "128")
        assert browser.run("return document.getElementById('loading').hidden")
        assert browser.run("return document.querySelectorAll('#jobs li').length") == 0
        assert not browser.complaints(), browser.complaints()


def cancels(browser):
    set_value(browser, "steps", "200")
    browser.click("#make")
    browser.wait_until("document.getElementById('progress').value > 0.02")
    browser.click("#cancel")
    idle(browser)
    assert browser.run("return document.getElementById('spoken').textContent") == "Cancelled."
    assert browser.run("return document.querySelectorAll('#gallery img').length") == 1


def refuses_bad_settings(browser):
    browser.run("document.getElementById('form').noValidate = true")
    set_value(browser, "width", "65")
    browser.click("#make")
    browser.wait_until("document.getElementById('error').textContent.includes('multiples of 16')")
    assert browser.run("return document.activeElement.id") == "width"
    set_value(browser, "width", "128")


def gives_settings_back(browser, server, folder):
    set_value(browser, "prompt", "something else")
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown').open")
    browser.screenshot(folder / "gallery.png")
    browser.click("#reuse")
    assert value(browser, "prompt") == "a red circle on a blue background"
    assert value(browser, "steps") == "60" and value(browser, "seed") != ""
    made = server.json("POST", "/v1/images/generations",
                       {"prompt": "a star \u2605", "seed": 77, "steps": 3, "size": "96x64"})
    browser.run(DROP, "a.png", made["data"][0]["b64_json"])
    browser.wait_until("document.getElementById('seed').value === '77'")
    assert value(browser, "prompt") == "a star \u2605"
    assert (value(browser, "width"), value(browser, "height"), value(browser, "steps")) == ("96", "64", "3")
    browser.run(DROP, "b.png", "AAAA")
    browser.wait_until("document.getElementById('error').textContent !== ''")


def survives_a_reload(browser, server):
    server.json("POST", "/v1/jobs", {"prompt": "another's", "user": "another"})
    browser.refresh()
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    browser.wait_until("!document.getElementById('make').disabled")
    assert browser.run("return document.querySelectorAll('#jobs li').length") == 0, "another's job"


def gallery(browser):
    return browser.run("return document.querySelectorAll('#gallery img').length")


def reload(browser, pictures):
    browser.refresh()
    browser.wait_until("!document.getElementById('make').disabled")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {pictures}")


def keeps_what_was_typed(browser):
    set_value(browser, "prompt", "not sent yet")
    set_value(browser, "seed", "55")
    reload(browser, 1)
    assert (value(browser, "prompt"), value(browser, "seed")) == ("not sent yet", "55")


def keeps_each_picture_once(browser, server):
    """A reload between two pictures of a job, and a job that ends while the page is away."""
    for name, text in (("n", "2"), ("steps", "60"), ("width", "128"), ("height", "128")):
        set_value(browser, name, text)
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 2")
    browser.refresh()
    browser.wait_until("document.querySelectorAll('#gallery img').length >= 3", 120)
    idle(browser)
    assert gallery(browser) == 3, gallery(browser)
    user = browser.run("return localStorage.getItem('braid.user')")
    browser.open("about:blank")
    server.json("POST", "/v1/jobs", {"prompt": "meanwhile", "user": user, "size": "64x64", "steps": 1})
    server.wait_until_idle()
    browser.open(server.address)
    browser.wait_until("document.querySelectorAll('#gallery img').length === 4")


def delete_newest(browser):
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown').open")
    browser.click("#forget")
    browser.wait_until("document.activeElement.id === 'undelete'")


def takes_deletions_back(browser):
    newest = browser.label("#gallery img")
    delete_newest(browser)
    assert gallery(browser) == 3
    browser.press(KEYS["enter"])
    browser.wait_until("document.querySelectorAll('#gallery img').length === 4")
    assert browser.label("#gallery img") == newest
    reload(browser, 4)
    delete_newest(browser)
    reload(browser, 3)


def can_be_heard(browser):
    for css, role, label in (("#prompt", "textbox", "Prompt"), ("#steps", "spinbutton", "Steps"),
                             ("#make", "button", "Make picture"), ("#dice", "button", None),
                             ("#form", "form", "New picture"), ("#gallery", "list", "Gallery"),
                             ("#gallery img", "image", "a red circle on a blue background")):
        assert browser.role(css) == role, (css, browser.role(css))
        assert label is None or browser.label(css) == label, (css, browser.label(css))


def main(braid, folder):
    with Server(braid).wait_until_ready() as server:
        waits_for_the_model(server, folder)
        with Browser() as browser:
            browser.open(server.address)
            makes_a_picture(browser, folder)
            cancels(browser)
            assert not browser.complaints(), browser.complaints()
            refuses_bad_settings(browser)
            gives_settings_back(browser, server, folder)
            can_be_heard(browser)
            survives_a_reload(browser, server)
            keeps_what_was_typed(browser)
            keeps_each_picture_once(browser, server)
            takes_deletions_back(browser)
            complaints = [text for text in browser.complaints() if "400 (Bad Request)" not in text]
            assert not complaints, complaints
        with Browser(width=500, height=900, dark=True) as phone:
            phone.open(server.address)
            phone.wait_until("document.getElementById('width').value === '128'")
            phone.screenshot(folder / "phone.png")
            assert phone.run("return document.documentElement.scrollWidth <= innerWidth"), "it is too wide"
    print("page: waiting for the model, a picture with progress and previews, cancel, settings back, reloads, deletions taken back, roles, a phone")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

#!/usr/bin/env python3
"""A picture taken apart into layers on the page, in three engines: page_layers.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import pathlib
import sys
import tempfile

from browser import KEYS, Browser
from page import idle, set_value, value
from page_pictures import is_hidden, text_of_settings
from running import Server
from webdriver import ENGINES

CASE = pathlib.Path(__file__).parents[2] / "tests/data/parity/qwen-image-layered"

# Of the pictures of a selector: their sides, and the means of their green and their alpha.
MEANS = """
return [...document.querySelectorAll(arguments[0])].map((one) => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [one.naturalWidth, one.naturalHeight];
  const drawn = canvas.getContext('2d', { willReadFrequently: true });
  drawn.drawImage(one, 0, 0);
  const { data } = drawn.getImageData(0, 0, canvas.width, canvas.height);
  const mean = (channel) => data.reduce((sum, value, i) => sum + (i % 4 === channel ? value : 0), 0) / data.length * 4;
  return [canvas.width, canvas.height, mean(1), mean(3)];
});
"""


def takes_a_picture_apart(browser, server, picture, folder):
    """Into three layers with alpha, each a picture of the gallery."""
    browser.wait_until("document.getElementById('layers-row').offsetParent !== null")
    for name, hidden in (("init-row", True), ("mask-row", True), ("references-row", False)):
        assert is_hidden(browser, name) == hidden, name
    assert value(browser, "layers") == "4"
    assert browser.role("#layers") in ("spinbutton", "textbox"), browser.role("#layers")  # WebKit's is the latter
    assert browser.label("#layers").startswith("Layers"), browser.label("#layers")
    browser.type("#references-file", str(picture))
    browser.wait_until("document.getElementById('width').value !== '640'")
    width, height = int(value(browser, "width")), int(value(browser, "height"))
    assert abs(width / height / (60 / 44) - 1) < 0.03, "layers have the shape of the picture"
    for name, number in (("width", 96), ("height", 64), ("layers", 21), ("steps", 2)):
        set_value(browser, name, str(number))
    set_value(browser, "prompt", "a poster")
    browser.click("#make")
    assert browser.run("return document.querySelector('#layers:invalid') !== null"), "there are 20 at most"
    set_value(browser, "layers", "3")
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 3")
    idle(browser)
    user = browser.run("return localStorage.getItem('braid.user')")
    job = server.json("GET", f"/v1/jobs?user={user}")["jobs"][0]
    assert job["request"]["layers"] == 3 and len(job["pictures"]) == 3, job
    browser.wait_until("[...document.querySelectorAll('#gallery img')].every((one) => one.naturalWidth > 0)")
    thumbnails = browser.run(MEANS, "#gallery img")
    assert all(green > 200 for _, _, green, _ in thumbnails), f"they are nearly empty, on white: {thumbnails}"
    browser.screenshot(folder / f"layers-{browser.engine}.png")
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown').open")
    for layer in ("2", "1", "0"):
        browser.wait_until("document.getElementById('shown-picture').naturalWidth > 0")
        said = text_of_settings(browser)
        assert (said["layers"], said["layer"]) == ("3", layer), said
        ((*sides, _, alpha),) = browser.run(MEANS, "#shown-picture")
        assert sides == [96, 64] and alpha < 40, (sides, alpha)
        if layer != "0":
            browser.run("document.getElementById('stage').focus()")
            browser.press(KEYS["right"])
            browser.wait_until(f"[...document.querySelectorAll('#shown-settings dt')].some((one) => one.textContent === 'layer'"
                               f" && one.nextElementSibling.textContent === '{int(layer) - 1}')")
    browser.run("document.getElementById('layers').value = 1")
    browser.click("#reuse")
    assert value(browser, "layers") == "3", "settings come back"
    browser.refresh()
    browser.wait_until("!document.getElementById('make').disabled")
    assert value(browser, "layers") == "3", "they are remembered"


def main(braid, folder):
    for engine in ENGINES:
        with Server(braid, "-m", CASE / "model").wait_until_ready() as server, \
                Browser(height=1500, engine=engine) as browser:
            browser.open(server.address)
            takes_a_picture_apart(browser, server, CASE / "reference0.png", folder)
            assert not browser.complaints(), browser.complaints()
        print(f"page: takes a picture apart into layers in {engine}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

#!/usr/bin/env python3
"""The page's input pictures, masks, LoRAs and models in headless Chromium, as a person uses them:
page_pictures.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from browser import KEYS, Browser
from page import DROP, idle, png_with, set_value, value
from running import Server

MASK = """
const canvas = document.getElementById('mask');
const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
let painted = 0;
for (let i = 3; i < data.length; i += 4) painted += data[i] >= 128;
return painted / (canvas.width * canvas.height);
"""


def write_lora(path):
    """For the bundled model's first layer, all zeros."""
    header = {"diffusion_model.img_in.lora_A.weight": {"dtype": "F32", "shape": [1, 64], "data_offsets": [0, 256]},
              "diffusion_model.img_in.lora_B.weight": {"dtype": "F32", "shape": [192, 1],
                                                       "data_offsets": [256, 1024]}}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(1024))


def text(browser, name):
    return browser.run(f"return document.getElementById('{name}').textContent")


def is_hidden(browser, name):
    return browser.run(f"return document.getElementById('{name}').offsetParent === null")


def offers_what_the_model_can(browser):
    browser.wait_until("document.getElementById('init-row').offsetParent !== null")
    for name, hidden in (("mask-row", False), ("references-row", True), ("control-row", True),
                         ("strength-row", True), ("loras-row", False), ("models-row", False),
                         ("layers-row", True)):
        assert is_hidden(browser, name) == hidden, name
    assert browser.run("return document.getElementById('paint-mask').disabled")


def starts_from_a_picture(browser, folder):
    browser.type("#init-file", str(folder / "in.png"))
    browser.wait_until("document.getElementById('width').value === '192'")
    assert value(browser, "height") == "128" and not is_hidden(browser, "strength-row")
    assert value(browser, "strength") == "0.6"
    assert browser.label("#init-picture") == "the picture to start from"


def paints_a_mask(browser, folder):
    browser.click("#paint-mask")
    browser.wait_until("document.getElementById('paint').open")
    assert browser.run(MASK) == 0
    browser.drag("#mask", [(-60, -40), (0, 0), (60, 40)])
    painted = browser.run(MASK)
    assert painted > 0.02, painted
    browser.click("#eraser")
    browser.drag("#mask", [(-20, -10), (20, 10)])
    erased = browser.run(MASK)
    assert 0 < erased < painted, (painted, erased)
    browser.screenshot(folder / "mask.png")
    browser.click("#undo")
    assert browser.run(MASK) == painted
    browser.click("#redo")
    assert browser.run(MASK) == erased
    browser.press([KEYS["control"], "z"], [KEYS["control"], "z"])
    assert browser.run(MASK) == 0
    before = text(browser, "zoom")
    browser.press("+", "+")
    assert text(browser, "zoom") != before
    browser.press("0")
    assert text(browser, "zoom") == before
    browser.click("#rectangle")
    browser.drag("#mask", [(-50, -50), (50, 50)])
    assert browser.run(MASK) > 0.01
    browser.click("#invert")
    assert browser.run(MASK) > 0.5
    browser.click("#clear")


def leaves_nothing_painted_behind(browser):
    """Escape and Back close the dialog, and what was painted is there again; Cancel gives it up."""
    for leave in (lambda: browser.press(KEYS["escape"]), browser.back):
        browser.click("#brush")
        browser.drag("#mask", [(-30, 0), (30, 0)])
        painted = browser.run(MASK)
        assert painted > 0
        leave()
        browser.wait_until("!document.getElementById('paint').open && history.state === null")
        assert is_hidden(browser, "mask-picture")
        assert text(browser, "restored").startswith("What was painted is not used yet"), text(browser, "restored")
        browser.run("document.getElementById('paint-mask').click()")
        browser.wait_until("document.getElementById('paint').open && history.state !== null")
        assert browser.run(MASK) == painted, "what was painted is lost"
    browser.click("#undo")
    assert browser.run(MASK) < painted
    browser.click("#cancel-mask")
    browser.wait_until("!document.getElementById('paint').open && history.state === null")
    assert text(browser, "restored") == "", text(browser, "restored")
    browser.run("document.getElementById('paint-mask').click()")
    browser.wait_until("document.getElementById('paint').open")
    assert browser.run(MASK) == 0, "Cancel gives up what was painted"


def paints_only_what_is_new(browser):
    """However many strokes there are, a move of the brush draws one."""
    browser.click("#brush")
    for _ in range(4):
        browser.drag("#mask", [(-40, 0), (0, 0), (40, 0)])
    browser.run("""window.strokes = 0;
        const stroke = CanvasRenderingContext2D.prototype.stroke;
        CanvasRenderingContext2D.prototype.stroke = function() { ++window.strokes; stroke.call(this); };""")
    browser.drag("#mask", [(-40, 20), (0, 20), (40, 20)])
    drawn = browser.run("return window.strokes")
    assert 0 < drawn < 10, drawn
    for _ in range(5):
        browser.click("#undo")
    assert browser.run(MASK) == 0
    browser.click("#clear")


def paints_on_a_mask_file(browser):
    """A mask that was given as a file is what painting begins with."""
    half = """const sheet = Object.assign(document.createElement("canvas"), {width: 192, height: 128});
        const context = sheet.getContext("2d");
        context.fillRect(0, 0, 192, 128);
        context.fillStyle = "white";
        context.fillRect(0, 0, 96, 128);
        const blob = await new Promise((resolve) => sheet.toBlob(resolve, "image/png"));
        const files = new DataTransfer();
        files.items.add(new File([blob], "half.png", {type: "image/png"}));
        document.getElementById("mask-file").files = files.files;
        document.getElementById("mask-file").dispatchEvent(new Event("change"));"""
    browser.run_async(half)
    browser.wait_until("!document.getElementById('mask-picture').hidden")
    browser.run("document.getElementById('paint-mask').click()")
    browser.wait_until("document.getElementById('paint').open")
    assert browser.run(MASK) == 0.5, browser.run(MASK)
    browser.run("document.getElementById('invert').click()")
    assert browser.run(MASK) == 0.5
    browser.run("document.getElementById('use-mask').click()")
    browser.wait_until("!document.getElementById('paint').open")
    browser.wait_until("document.getElementById('mask-picture').alt.includes('50 %')")
    browser.run("document.getElementById('mask-remove').click()")


def leaves_the_picture_beneath(browser):
    """What is dropped while a mask is painted is not for what lies behind."""
    seen = "return [document.getElementById('width').value, document.getElementById('init-picture').src]"
    before = browser.run(seen)
    browser.run(DROP, "other.png", png_with({}, 64, 160), None)
    browser.run_async("await new Promise((resolve) => setTimeout(resolve, 500))")
    assert browser.run(seen) == before, "the picture beneath the mask was replaced"


def takes_capital_letters(browser):
    """With Caps Lock, E and Ctrl+Z come as capitals without Shift."""
    key = """document.getElementById("paint").dispatchEvent(
        new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...arguments[0] }))"""
    browser.run(key, {"key": "E"})
    assert browser.run("return document.getElementById('eraser').getAttribute('aria-pressed')") == "true"
    browser.run(key, {"key": "B"})
    before = browser.run(MASK)
    browser.drag("#mask", [(-20, -20), (20, 20)])
    painted = browser.run(MASK)
    browser.run(key, {"key": "Z", "ctrlKey": True})
    assert browser.run(MASK) == before < painted
    browser.run(key, {"key": "z", "ctrlKey": True, "shiftKey": True})
    assert browser.run(MASK) == painted
    browser.click("#clear")


def paints_by_keyboard(browser):
    browser.run("document.getElementById('mask').focus()")
    browser.press("b", " ", *[KEYS["right"]] * 5, *[KEYS["down"]] * 3)
    browser.wait_until("document.getElementById('paint-said').textContent === 'brush down'")
    browser.press(" ")
    assert text(browser, "paint-said") == "brush up" and browser.run(MASK) > 0.01
    browser.click("#use-mask")
    browser.wait_until("!document.getElementById('mask-picture').hidden")
    assert " % of the picture" in browser.label("#mask-picture"), browser.label("#mask-picture")
    assert value(browser, "strength") == "0.6"


def makes_it(browser, server, folder):
    browser.run("document.querySelector('#loras input[type=checkbox]').click()")
    browser.run("const w = document.querySelector('#loras input[type=number]'); w.value = 0.5")
    set_value(browser, "prompt", "a red circle")
    set_value(browser, "steps", "8")
    browser.screenshot(folder / "pictures-in.png")
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    idle(browser)
    user = browser.run("return localStorage.getItem('braid.user')")
    job = server.json("GET", f"/v1/jobs?user={user}")["jobs"][0]
    assert [file["role"] for file in job["pictures_in"]] == ["init", "mask"], job
    assert job["request"]["lora"] == [{"name": "nothing", "scale": 0.5}], job
    assert (job["request"]["width"], job["request"]["height"]) == (192, 128)
    assert job["model"] == "demo"
    browser.screenshot(folder / "edited.png")


def starts_from_the_gallery(browser):
    browser.click("#mask-remove")
    assert is_hidden(browser, "mask-picture")
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown').open")
    browser.click("#use-init")
    assert not browser.run("return document.getElementById('shown').open")
    assert not is_hidden(browser, "init-picture")


def uses_another_model(browser, server):
    browser.run("const m = document.getElementById('models'); m.value = 'other'; m.dispatchEvent(new Event('change'))")
    browser.wait_until("document.getElementById('model').textContent.startsWith('other')")
    browser.click("#init-remove")
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 2")
    idle(browser)
    user = browser.run("return localStorage.getItem('braid.user')")
    assert server.json("GET", f"/v1/jobs?user={user}")["jobs"][-1]["model"] == "other"


def uses_one_of_several(browser):
    """A model that starts from a picture takes the first one that is dropped, and the page names the others."""
    picture = png_with({})
    browser.run(DROP, "first.png", picture, None, "second.png", picture, None, "words.txt", "YQ==", "text/plain")
    browser.wait_until("!document.getElementById('init-picture').hidden")
    browser.wait_until("document.getElementById('error').textContent !== ''")
    said = text(browser, "error")
    assert "words.txt is not a picture" in said and said.endswith("second.png"), said
    browser.run(DROP, "first.png", picture, None)
    browser.wait_until("document.getElementById('error').textContent === ''")
    browser.run("document.getElementById('init-remove').focus()")
    browser.press(KEYS["enter"])
    browser.wait_until("document.getElementById('init-picture').hidden")
    assert browser.focused() == "init-file", "the focus is not lost with the button"


def takes_several_at_once(browser, wanted, room):
    """As many as the model can take of those that are dropped or chosen; the page names the others."""
    browser.wait_until(f"document.getElementById('{wanted}').offsetParent !== null")
    picture = png_with({"prompt": "one of Braid's"})
    names = [f"{i}.png" for i in range(room + 1)]
    browser.run(DROP, *[part for name in names for part in (name, picture, None)])
    browser.wait_until(f"document.querySelectorAll('#{wanted} li').length === {room}")
    said = text(browser, "error")
    assert said.startswith("left out") and said.endswith(f": {names[-1]}"), said
    shown = browser.run(f"return [...document.querySelectorAll('#{wanted} img')].map((one) => one.alt)")
    assert all(alt.endswith(name) for alt, name in zip(shown, names)), shown
    for left in range(room - 1, -1, -1):
        browser.run(f"document.querySelector('#{wanted} button').focus()")
        browser.press(KEYS["enter"])
        browser.wait_until(f"document.querySelectorAll('#{wanted} li').length === {left}")
        assert browser.focused() == f"{wanted}-file", "the focus is not lost with the button"


def follows_pictures(browser, folder):
    """With two ControlNets, one of them a union."""
    browser.wait_until("document.getElementById('control-row').offsetParent !== null")
    for count in (1, 2):
        browser.type("#controls-file", str(folder / "in.png"))
        browser.wait_until(f"document.querySelectorAll('#controls li').length === {count}")
    for label, text in (("To of picture to follow 1", "0.7"), ("Kind of picture to follow 1", "2"),
                        ("From of picture to follow 2", "0.3")):
        browser.clear(f"#controls input[aria-label='{label}']")
        browser.type(f"#controls input[aria-label='{label}']", text)
    set_value(browser, "prompt", "a circle")
    set_value(browser, "steps", "4")
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown').open")
    said = text_of_settings(browser)
    assert said["control 1 to"] == "0.7" and said["control 1 mode"] == "2", said
    assert said["control 2 from"] == "0.3" and "control 2 mode" not in said, said


BOX = "document.getElementById('board').getBoundingClientRect()"


def draws_boxes(browser, folder):
    browser.wait_until("document.getElementById('boxes-row').offsetParent !== null")
    set_value(browser, "prompt", "a photo of <fox> and <thing1>")
    browser.drag("#board", [(-80, -60), (0, 0)])
    browser.press(*"a red fox")
    assert browser.run("return document.querySelector('#boxes .desc').value") == "a red fox"
    browser.clear("#boxes .id")
    browser.type("#boxes .id", "fox")
    browser.run("document.getElementById('add-box').scrollIntoView({ block: 'center' })")
    browser.click("#add-box")
    browser.press(*"snow")
    browser.run("document.querySelectorAll('.box')[1].focus()")
    browser.press("\ue015")  # arrow down
    browser.screenshot(folder / "boxes.png")
    width, height = browser.run(f"const one = {BOX}; return [one.width, one.height]")
    for name, number in (("steps", 2), ("width", 128), ("height", 128)):
        set_value(browser, name, str(number))
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    wish = browser.run("return JSON.parse(localStorage.getItem('braid.settings'))")
    first, second = wish["boxes"]
    assert first["id"] == "fox" and first["desc"] == "a red fox", first
    wanted = [500 - 60 * 1000 / height, 500 - 80 * 1000 / width, 500, 500]
    assert all(abs(got - want) <= 12 for got, want in zip(first["bbox"], wanted)), (first, wanted)
    assert second == {"id": "thing1", "bbox": [260, 250, 760, 750], "desc": "snow"}, second
    assert not text(browser, "error"), text(browser, "error")
    browser.refresh()
    browser.wait_until("document.querySelectorAll('#boxes li').length === 2")
    browser.run("document.getElementById('boxes').scrollIntoView({ block: 'center' })")
    browser.click("#boxes button")
    browser.wait_until("document.querySelectorAll('#boxes li').length === 1")


def text_of_settings(browser):
    terms, texts = (browser.run(f"return [...document.querySelectorAll('#shown-settings {kind}')]"
                                ".map((one) => one.textContent)") for kind in ("dt", "dd"))
    return dict(zip(terms, texts))


def can_be_heard(browser):
    for css, role, label in (("#init-file", "button", None), ("#strength", "slider", None),
                             ("#paint-mask", "button", "Paint the mask"),
                             ("#loras input[type=checkbox]", "checkbox", "nothing"),
                             ("#loras input[type=number]", "spinbutton", "Weight of nothing"),
                             ("#models", "combobox", "Model")):
        assert browser.role(css) == role, (css, browser.role(css))
        assert label is None or browser.label(css) == label, (css, browser.label(css))


def main(braid, folder):
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        subprocess.run([braid, "generate", "-q", "a star", "--size", "192x128", "--steps", "4", "-o",
                        here / "in.png"], check=True, stdout=subprocess.DEVNULL)
        (here / "loras").mkdir()
        write_lora(here / "loras" / "nothing.safetensors")
        demo = pathlib.Path(__file__).parents[2] / "models" / "demo"
        (here / "other").symlink_to(demo)
        with Server(braid, "-m", demo, "-m", here / "other", "--lora-dir",
                    here / "loras").wait_until_ready() as server, Browser(height=1500) as browser:
            browser.open(server.address)
            offers_what_the_model_can(browser)
            uses_one_of_several(browser)
            starts_from_a_picture(browser, here)
            paints_on_a_mask_file(browser)
            paints_a_mask(browser, folder)
            leaves_nothing_painted_behind(browser)
            paints_only_what_is_new(browser)
            leaves_the_picture_beneath(browser)
            takes_capital_letters(browser)
            paints_by_keyboard(browser)
            can_be_heard(browser)
            makes_it(browser, server, folder)
            starts_from_the_gallery(browser)
            uses_another_model(browser, server)
            # The script above reads the mask repeatedly, which causes this warning.
            complaints = [text for text in browser.complaints() if "willReadFrequently" not in text]
            assert not complaints, complaints
        model = pathlib.Path(__file__).parents[2] / "tests/data/parity/controlnets/model"
        with Server(braid, "-m", model, "--controlnet", model / "controlnet_1", "--controlnet",
                    model / "controlnet_2").wait_until_ready() as server, Browser() as browser:
            browser.open(server.address)
            takes_several_at_once(browser, "controls", 2)
            follows_pictures(browser, here)
            assert not browser.complaints(), browser.complaints()
        model = pathlib.Path(__file__).parents[2] / "tests/data/parity/qwen-image-edit-plus/model"
        with Server(braid, "-m", model).wait_until_ready() as server, Browser() as browser:
            browser.open(server.address)
            room = server.json("GET", "/v1/capabilities")["pictures_in"]["references"]
            takes_several_at_once(browser, "references", room)
            assert not browser.complaints(), browser.complaints()
        model = pathlib.Path(__file__).parents[2] / "tests/data/parity/flux3/model"
        with Server(braid, "-m", model).wait_until_ready() as server, Browser(height=1500) as browser:
            browser.open(server.address)
            draws_boxes(browser, folder)
            assert not browser.complaints(), browser.complaints()
    print("page: boxes, several pictures dropped at once, a picture to start from, a mask painted, erased, undone and zoomed, also by keyboard, LoRAs, models, ControlNets")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

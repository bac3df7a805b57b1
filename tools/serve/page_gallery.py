#!/usr/bin/env python3
"""Pictures that were made: enlarged, used from where they appear, searched, selected, packed, deleted, and shared
by tabs: page_gallery.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import base64
import io
import pathlib
import sys
import tempfile
import time
import zipfile

from browser import KEYS, Browser
from page import gallery, idle, set_value, value
from page_pictures import is_hidden, text
from running import Server
from webdriver import ELEMENT, ENGINES

# Files that the page saves are kept aside instead.
CATCH = """
window.saved = [];
const blobs = new Map(), made = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  const url = made.call(URL, blob);
  blobs.set(url, blob);
  return url;
};
HTMLAnchorElement.prototype.click = function() {
  const {download} = this;
  blobs.get(this.href).arrayBuffer().then((buffer) => {
    const bytes = new Uint8Array(buffer);
    let text = "";
    for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
    window.saved.push([download, btoa(text)]);
  });
};
"""

ZIP64 = """
const {zipOf, crc32} = await import("./zip.js");
const file = (name, words) => ({name, date: new Date(2026, 10, 25, 7, 30, 10), blob: async () => new Blob([words])});
const archive = await zipOf([file("a.txt", "first"), file("ü/★.txt", "second"), file("c.txt", "")], () => {}, 40);
return [crc32(new TextEncoder().encode("123456789")), [...new Uint8Array(await archive.arrayBuffer())]];
"""

# A picture of 1024x1024 that does not compress, put into the gallery so many times.
FILL = """
const [count] = arguments;
const kept = await import("./kept.js");
const canvas = Object.assign(document.createElement("canvas"), {width: 1024, height: 1024});
const context = canvas.getContext("2d");
const pixels = context.createImageData(1024, 1024);
for (let at = 0; at < pixels.data.length; at += 65536) crypto.getRandomValues(pixels.data.subarray(at, at + 65536));
for (let i = 0; i < pixels.data.length; ++i) pixels.data[i] = i % 4 === 3 ? 255 : pixels.data[i] & 63;
context.putImageData(pixels, 0, 0);
const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
const card = await kept.cardOf(blob, {prompt: "noise"}, "none");
for (let i = 0; i < count; ++i) await kept.keepPicture({...card, id: `many/${i}`, made: i}, blob);
return blob.size;
"""


def wait_for_pictures(browser, count):
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {count}", 120)
    idle(browser)


def shown_pictures(browser):
    return browser.run("return [...document.querySelectorAll('#gallery li:not([hidden]) img')].map((one) => one.alt)")


def makes(browser, prompts, steps="3"):
    set_value(browser, "steps", steps)
    for prompt in prompts:
        before = gallery(browser)
        set_value(browser, "prompt", prompt)
        browser.click("#make")
        wait_for_pictures(browser, before + 1)


def saved(browser, number):
    browser.wait_until(f"window.saved.length === {number}")
    name, data = browser.run("return window.saved[window.saved.length - 1]")
    return name, base64.b64decode(data)


def opened(browser):
    browser.wait_until("document.getElementById('shown').open")
    browser.wait_until("document.getElementById('shown-picture').naturalWidth > 0")


def enlarges(browser, folder):
    """From where the picture appears, by keys, wheel and double click; arrows lead to its neighbours."""
    browser.click("#enlarge")
    opened(browser)
    assert text(browser, "shown-title") == "Picture 1 of 3"
    fitted = text(browser, "shown-zoom")
    browser.press("+", "+")
    assert text(browser, "shown-zoom") != fitted
    browser.press("0")
    assert text(browser, "shown-zoom") == fitted
    browser.press("1")
    assert text(browser, "shown-zoom") == "100 %"
    browser.press("0", KEYS["right"])
    browser.wait_until("document.getElementById('shown-title').textContent === 'Picture 2 of 3'")
    browser.wait_until("document.getElementById('shown-prompt').textContent.includes('a blue ring')")
    browser.screenshot(folder / f"enlarged-{browser.engine}.png")
    browser.press(KEYS["left"])
    browser.wait_until("document.getElementById('shown-title').textContent === 'Picture 1 of 3'")
    browser.click("#shown-in")
    assert text(browser, "shown-zoom") != fitted
    browser.press(KEYS["escape"])
    browser.wait_until("!document.getElementById('shown').open")
    assert browser.focused() == "enlarge"


def uses_it(browser, server):
    browser.run(CATCH)
    browser.click("#picture-actions [data-act=download]")
    name, data = saved(browser, 1)
    assert name.startswith("braid-") and name.endswith("-a-green-star.png") and data.startswith(b"\x89PNG"), name
    browser.click("#picture-actions [data-act=start]")
    browser.wait_until("!document.getElementById('init-picture').hidden")
    browser.click("#init-remove")
    browser.click("#picture-actions [data-act=mask]")
    browser.wait_until("document.getElementById('paint').open")
    browser.click("#cancel-mask")
    browser.wait_until("!document.getElementById('paint').open")
    browser.click("#init-remove")
    assert is_hidden(browser, "use-reference"), "this model looks at none"
    set_value(browser, "prompt", "half a thought")
    browser.click("#picture-actions [data-act=again]")
    wait_for_pictures(browser, 4)
    assert value(browser, "prompt") == "half a thought", "the form is left alone"
    user = browser.run("return localStorage.getItem('braid.user')")
    before, again = server.json("GET", f"/v1/jobs?user={user}")["jobs"][-2:]
    seeds = {job["request"].pop("seed") for job in (before, again)}
    assert len(seeds) == 2 and before["request"] == again["request"], (before, again)
    # One of an earlier visit, from its own text.
    browser.refresh()
    browser.wait_until("!document.getElementById('make').disabled")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 4")
    browser.click("#gallery li:last-child button")
    opened(browser)
    browser.click("#again")
    wait_for_pictures(browser, 5)
    job = server.json("GET", f"/v1/jobs?user={user}")["jobs"][-1]["request"]
    assert (job["prompt"], job["steps"]) == ("a red circle", 3), job


def finds_and_packs(browser):
    browser.run(CATCH)
    browser.type("#search", "circle RED")
    assert shown_pictures(browser) == ["a red circle"] * 2, shown_pictures(browser)
    assert text(browser, "download-all") == "Download 2 found"
    browser.click("#download-all")
    name, data = saved(browser, 1)
    assert name == "braid-pictures.zip"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None and len(set(archive.namelist())) == 2, archive.namelist()
        assert all(archive.read(one).startswith(b"\x89PNG") for one in archive.namelist())
    browser.run("const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))")
    assert len(shown_pictures(browser)) == 5
    browser.click("#select")
    browser.click("#gallery li:nth-child(1) button")
    browser.click("#gallery li:nth-child(3) button")
    assert text(browser, "selected") == "2 selected"
    browser.click("#download-selected")
    with zipfile.ZipFile(io.BytesIO(saved(browser, 2)[1])) as archive:
        assert archive.testzip() is None and len(archive.namelist()) == 2
    browser.click("#delete-selected")
    browser.wait_until("document.activeElement.id === 'undelete'")
    assert gallery(browser) == 3
    before = shown_pictures(browser)
    browser.press(KEYS["enter"])
    browser.wait_until("document.querySelectorAll('#gallery img').length === 5")
    assert len(shown_pictures(browser)) == 5 and before != shown_pictures(browser)[:3], "they return to their places"


def writes_large_archives(browser):
    """Beyond 4 GiB, here beyond 40 bytes, as ZIP64. The checksum is that of ISO 3309's test."""
    checksum, data = browser.run_async(ZIP64)
    assert checksum == 0xcbf43926
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        assert archive.testzip() is None
        assert {one: archive.read(one) for one in archive.namelist()} == {"a.txt": b"first", "ü/★.txt": b"second", "c.txt": b""}
        assert archive.infolist()[1].date_time == (2026, 11, 25, 7, 30, 10)


def tabs_share(browser, server):
    """A job that is ordered in one is followed by both, and its picture is stored once."""
    first, = browser.command("tabs")
    back = browser.new_tab()
    second, = (tab for tab in browser.command("tabs") if tab != first)
    browser.open(server.address)
    browser.wait_until("!document.getElementById('make').disabled")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 5")
    set_value(browser, "prompt", "of the second tab")
    set_value(browser, "steps", "60")
    browser.click("#make")
    wait_for_pictures(browser, 6)
    back()
    browser.wait_until("document.querySelectorAll('#gallery img').length === 6")
    browser.wait_until("document.getElementById('caption').textContent.includes('of the second tab')")
    idle(browser)
    browser.click("#gallery button")
    opened(browser)
    browser.click("#forget")
    browser.wait_until("document.activeElement.id === 'undelete'")
    back(second)
    browser.wait_until("document.querySelectorAll('#gallery img').length === 5")
    browser.refresh()
    browser.wait_until("!document.getElementById('make').disabled")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 5")
    browser.close_tab()
    back()


def brings_back_only_its_own(browser, server):
    """A picture that another tab deleted while it was enlarged is not deleted again, nor brought back."""
    before = gallery(browser)
    browser.run("document.querySelector('#gallery button').click()")
    opened(browser)
    back = browser.new_tab()
    browser.open(server.address)
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before}")
    browser.run("document.querySelector('#gallery button').click()")
    opened(browser)
    browser.run("document.getElementById('forget').click()")
    browser.wait_until("document.activeElement.id === 'undelete'")
    browser.close_tab()
    back()
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before - 1}")
    browser.run("document.getElementById('forget').click()")
    browser.wait_until("document.getElementById('forgotten-count').textContent === 'Deleted in another tab.'")
    assert is_hidden(browser, "undelete") and browser.focused() == "result", browser.focused()
    browser.run("document.getElementById('undelete').click()")
    browser.refresh()
    browser.wait_until("!document.getElementById('make').disabled")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before - 1}")


def names_files_in_any_language(browser):
    names = browser.run_async("""
        const {fileName} = await import("./actions.js");
        return arguments.slice(0, -1).map((prompt) => fileName({seed: "1", prompt}));""",
        "ein Ma\u0308dchen in M\u00fcnchen", "\u0939\u093f\u0928\u094d\u0926\u0940 \u0932\u094b\u092e\u095c\u0940",
        "\u304b\u3099 \ud55c\uad6d\uc5b4", "\u202eabc ../../x <b>&.exe \u2764\ufe0f", "\u0e01\u0e48" * 30, "")
    assert names[:4] == ["braid-1-ein-M\u00e4dchen-in-M\u00fcnchen.png",
                         "braid-1-\u0939\u093f\u0928\u094d\u0926\u0940-\u0932\u094b\u092e\u0921\u093c\u0940.png",
                         "braid-1-\u304c-\ud55c\uad6d\uc5b4.png", "braid-1-abc-x-b-exe.png"], names
    assert names[4] == "braid-1-" + "\u0e01\u0e48" * 20 + ".png", names[4]
    assert names[5] == "braid-1.png", names[5]


def cuts_long_names(browser):
    before = gallery(browser)
    makes(browser, ["a fox " * 60], "2")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}")
    names = browser.run("""const button = document.querySelector("#gallery button");
        return [button.title, button.firstChild.alt, document.getElementById("picture").alt];""")
    assert all(name == "a fox " * 10 + " \u2026" for name in names), names


def tells_the_title(browser):
    set_value(browser, "prompt", "titled")
    set_value(browser, "steps", "200")
    for _ in range(2):
        browser.click("#make")
    browser.wait_until(r"/^\d+ %( · \d+ s left)? · 2 jobs · Braid$/.test(document.title)")
    browser.wait_until("document.querySelectorAll('#jobs li').length === 2")
    browser.wait_until(r"/waiting, 1 before it, begins in about \d+ s/.test(document.getElementById('jobs').textContent)")
    for left in (1, 0):
        browser.click("#jobs li:last-child button")
        browser.wait_until(f"document.querySelectorAll('#jobs li').length === {left}")
    idle(browser)
    browser.wait_until("document.title === 'Braid'")


def resident(server):
    """Bytes of all of Chromium's processes."""
    total = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/statm"):
        try:
            if b"chromium" in (status.parent / "cmdline").read_bytes():
                total += int(status.read_text().split()[1]) * 4096
        except OSError:
            pass
    return total


def takes_no_thumbnail(browser):
    """A thumbnail that is dragged over the form would be a picture of 320 pixels."""
    set_value(browser, "prompt", "dragged")
    middle = {"type": "pointerMove", "duration": 50, "x": 3, "y": 3}
    steps = [{**middle, "origin": {ELEMENT: browser.find(css)}, "x": x} for css, x in
             (("#gallery img", 0), ("#gallery img", 20), ("#prompt", 0), ("#prompt", 3))]
    browser.command("actions", actions=[{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
        steps[0], {"type": "pointerDown", "button": 0}, *steps[1:], {"type": "pointerUp", "button": 0}]}])
    time.sleep(1)
    assert browser.run("return document.getElementById('init-picture').hidden")


def survives_cleared_data(server):
    """Who clears the browser's data, or has a browser that closes its database, needs no reload."""
    with Browser(height=1300) as browser:
        browser.open(server.address)
        browser.wait_until("!document.getElementById('make').disabled")
        makes(browser, ["first", "second"])
        takes_no_thumbnail(browser)
        browser.devtools("Storage.clearDataForOrigin", origin=server.address, storageTypes="indexeddb")
        set_value(browser, "prompt", "third")
        browser.click("#make")
        browser.wait_until("document.getElementById('caption').textContent.startsWith('third')")
        idle(browser)
        browser.wait_until("[...document.querySelectorAll('#gallery img')].map((one) => one.alt).join() === 'third'")
        assert text(browser, "error") == "", text(browser, "error")
        browser.refresh()
        browser.wait_until("document.querySelectorAll('#gallery img').length === 1")


def holds_many(server):
    """Only thumbnails of 250 pictures are read, and none of the pictures."""
    with Browser() as browser:
        browser.open(server.address)
        browser.wait_until("!document.getElementById('make').disabled")
        size = browser.run_async(FILL, 250)
        assert size > 1e6, size
        browser.refresh()
        browser.wait_until("document.querySelectorAll('#gallery img').length === 250")
        browser.run("scrollTo(0, document.body.scrollHeight)")
        browser.wait_until("[...document.querySelectorAll('#gallery img')].at(-1).naturalWidth > 0")
        largest = browser.run("return Math.max(...[...document.querySelectorAll('#gallery img')].map((one) => one.naturalWidth))")
        assert 0 < largest <= 320, largest
        print(f"page: 250 pictures of {size / 1e6:.1f} MB, {resident(server) / 1e6:.0f} MB resident in all of Chromium")


def main(braid, folder):
    with Server(braid).wait_until_ready() as server:
        for engine in ENGINES:
            with Browser(engine=engine, height=1300) as browser:
                browser.open(server.address)
                browser.wait_until("!document.getElementById('make').disabled")
                makes(browser, ["a red circle", "a blue ring", "a green star"])
                enlarges(browser, folder)
                uses_it(browser, server)
                finds_and_packs(browser)
                writes_large_archives(browser)
                tabs_share(browser, server)
                names_files_in_any_language(browser)
                tells_the_title(browser)
                cuts_long_names(browser)
                brings_back_only_its_own(browser, server)
            print(f"page: enlarged, used, made again, searched, packed, deleted, shared by tabs in {engine}")
        survives_cleared_data(server)
        holds_many(server)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

#!/usr/bin/env python3
"""The page in headless Chromium, as a person uses it: page.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import base64
import pathlib
import struct
import sys
import tempfile
import zlib

from browser import KEYS, Browser
from running import Server

# For each file its name, its bytes in base64 and its type, which is PNG if it is null.
DROP = """
const data = new DataTransfer();
for (let i = 0; i < arguments.length; i += 3) {
  const [name, base64, type] = [...arguments].slice(i);
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  data.items.add(new File([bytes], name, {type: type ?? "image/png"}));
}
dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
"""

# The model seems to be loading until `loaded` is 1: the bundled one takes a tenth of a second.
LOADING = """
const reach = window.fetch;
window.loaded = 0.4;
window.fetch = (path, options) => {
  if (window.loaded === 1) return reach(path, options);
  const body = path.endsWith("/readyz") ? {status: "loading", loaded: window.loaded, running: 0, waiting: 0}
    : {error: {message: "the model is still being loaded", code: "loading"}};
  return Promise.resolve(new Response(JSON.stringify(body), {status: 503}));
};
"""


def png_with(texts, width=64, height=48):
    """A grey PNG with these texts, in base64."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    entries = b"".join(chunk(b"tEXt", f"{key}\0{text}".encode("latin-1")) for key, text in texts.items())
    pixels = zlib.compress((b"\0" + b"\x80" * width) * height)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                            entries + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")).decode()


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
    browser.wait_until("!document.getElementById('working').hidden && document.getElementById('progress').value > 0.02")
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


def restored(browser):
    return browser.run("return document.getElementById('restored').textContent")


def last_request(browser, server):
    user = browser.run("return localStorage.getItem('braid.user')")
    return server.json("GET", f"/v1/jobs?user={user}")["jobs"][-1]["request"]


def says_what_it_does_not_restore(browser, server):
    """What the form has no field for is named; how the server ran is not, and neither is what others wrote."""
    asked = {"prompt": "a fox", "prompt_2": "other words", "seed": 78, "steps": 3, "size": "96x64", "shift": 9.0,
             "cfg_until": 0.5, "negative_prompt": "no\nwords", "true_cfg": 3.5, "sampler": "heun", "guidance": 2}
    made = server.json("POST", "/v1/images/generations", asked)
    browser.run(DROP, "a.png", made["data"][0]["b64_json"])
    browser.wait_until("document.getElementById('seed').value === '78'")
    assert restored(browser) == "Not restored: prompt_2, cfg_until, shift.", restored(browser)
    assert browser.role("#restored") == "status", browser.role("#restored")
    text = {"prompt": "a wolf", "seed": "79", "steps": "2", "sampler": "none_such", "guidance": "2", "size": "64x64",
            "max_sequence_length": "64", "init": "in.png", "init_sha256": "00", "control_1_net": "edges", "strength": "0.5",
            "tp": "2", "dtype": "float32", "lora": "ink=0.8", "model": "another", "software": "braid 0.1.0", "date:create": "now"}
    browser.run(DROP, "b.png", png_with(text))
    browser.wait_until("document.getElementById('seed').value === '79'")
    assert restored(browser) == "Not restored: sampler, init, strength, lora, model.", restored(browser)
    assert value(browser, "sampler") == "euler", "a sampler that is not offered leaves it to the model"
    made = server.json("POST", "/v1/images/generations", {"prompt": "a star", "seed": 77, "steps": 3, "size": "96x64"})
    browser.run(DROP, "c.png", made["data"][0]["b64_json"])
    browser.wait_until("document.getElementById('seed').value === '77'")
    assert restored(browser) == "", restored(browser)


def keeps_empty_negative_prompts(browser, server):
    """They guide, too: when settings are restored, after a reload, and when a picture of an earlier visit is made again."""
    before = gallery(browser)
    set_value(browser, "n", "1")
    made = server.json("POST", "/v1/images/generations", {"prompt": "a fox", "prompt_2": "other words", "seed": 80, "steps": 3,
                                                           "size": "64x64", "negative_prompt": "", "true_cfg": 3})
    browser.run(DROP, "a.png", made["data"][0]["b64_json"])
    browser.wait_until("document.getElementById('seed').value === '80'")
    assert (value(browser, "negative_prompt"), value(browser, "true_cfg")) == ("", "3")
    assert restored(browser) == "Not restored: prompt_2.", restored(browser)
    reload(browser, before)
    browser.click("#make")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}")
    idle(browser)
    request = last_request(browser, server)
    assert (request.get("negative_prompt"), request.get("true_cfg")) == ("", 3), request
    browser.type("#negative_prompt", "x")  # what is typed and deleted is left out
    browser.click("#make")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 2}")
    idle(browser)
    assert "negative_prompt" not in last_request(browser, server), last_request(browser, server)
    user = browser.run("return localStorage.getItem('braid.user')")
    server.json("POST", "/v1/jobs", {"prompt": "a hare", "prompt_2": "other words", "steps": 2, "size": "64x64",
                                     "negative_prompt": "", "true_cfg": 2.5, "user": user})
    server.wait_until_idle()
    reload(browser, before + 3)
    browser.click("#picture-actions [data-act=again]")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 4}")
    idle(browser)
    request = last_request(browser, server)
    assert [request.get(name) for name in ("prompt", "prompt_2", "negative_prompt", "true_cfg")] == \
        ["a hare", "other words", "", 2.5], request


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


# WCAG 2.1, 1.4.3 and 1.4.11: ratios of text, placeholders and borders of controls that are too low.
CONTRASTS = """
const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
const luminance = (color) => {
  const [r, g, b] = numbers(color).slice(0, 3).map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (one, other) => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const {backgroundColor} = getComputedStyle(one);
    if ((numbers(backgroundColor)[3] ?? 1) === 1) return backgroundColor;
  }
};
const low = [];
for (const one of document.querySelectorAll("body *")) {
  if (!one.checkVisibility() || one.disabled) continue;
  const style = getComputedStyle(one), name = one.id || one.className || one.tagName;
  const hasText = [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  if (hasText && ratio(style.color, behind(one)) < 4.5) low.push([name, "text"]);
  if (!one.matches("input, textarea, select, button")) continue;
  const isFramed = parseFloat(style.borderTopWidth) > 0 && !one.matches("[type=file], [type=range], [type=checkbox], .box");
  if (isFramed && ratio(style.borderTopColor, behind(one.parentElement)) < 3) low.push([name, "border"]);
  if (!one.placeholder) continue;
  const hint = getComputedStyle(one, "::placeholder");
  if (ratio(hint.color, behind(one)) < 4.5 || hint.opacity !== "1") low.push([name, "placeholder"]);
}
return low;
"""


def can_be_seen(browser):
    """In the light, in the dark and with the user's own colours; and what has the focus is above the bar."""
    browser.run("document.getElementById('more').open = true")
    for scheme in ("light", "dark"):
        browser.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}])
        assert browser.run(CONTRASTS) == [], (scheme, browser.run(CONTRASTS))
    fields = browser.run("""return ["sampler", "steps"].map((id) => getComputedStyle(document.getElementById(id)))
        .map((style) => [style.borderTopColor, style.backgroundColor, style.borderTopLeftRadius, style.fontSize])""")
    assert fields[0] == fields[1], f"lists look as fields do: {fields}"
    browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
    looks = browser.run("""return ["shape-square", "swap"].map((id) => getComputedStyle(document.getElementById(id)))
        .map((style) => [style.backgroundColor, style.borderTopColor])""")
    pressed = browser.run("return document.getElementById('shape-square').getAttribute('aria-pressed')")
    assert pressed == "true" and looks[0][0] != looks[1][0] and looks[0][1] != looks[1][1], (pressed, looks)
    browser.devtools("Emulation.setEmulatedMedia", features=[])
    browser.run("document.getElementById('error').textContent = 'several lines of a complaint. '.repeat(40)")
    browser.wait_until("parseFloat(getComputedStyle(document.documentElement).scrollPaddingBottom) > "
                       "document.getElementById('send').offsetHeight")
    browser.run("document.getElementById('error').textContent = ''; document.getElementById('more').open = false")
    roles = browser.run("""const list = document.getElementById("notices");
        return [list.tagName, list.getAttribute("role"), list.parentElement.getAttribute("role")];""")
    assert roles == ["UL", None, "status"], f"items belong to a list, which is read out when it changes: {roles}"


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
            says_what_it_does_not_restore(browser, server)
            can_be_heard(browser)
            browser.click("#shape-square")
            can_be_seen(browser)
            survives_a_reload(browser, server)
            keeps_what_was_typed(browser)
            keeps_each_picture_once(browser, server)
            takes_deletions_back(browser)
            keeps_empty_negative_prompts(browser, server)
            complaints = [text for text in browser.complaints() if "400 (Bad Request)" not in text]
            assert not complaints, complaints
        with Browser(width=500, height=900, dark=True) as phone:
            phone.open(server.address)
            phone.wait_until("document.getElementById('width').value === '128'")
            phone.screenshot(folder / "phone.png")
            assert phone.run("return document.documentElement.scrollWidth <= innerWidth"), "it is too wide"
    print("page: waiting for the model, a picture with progress and previews, cancel, "
          "settings back and those that are not, empty negative prompts, "
          "reloads, deletions taken back, roles, contrasts, the user's own colours, a phone")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

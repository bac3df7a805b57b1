#!/usr/bin/env python3
"""What people bring to the page: photos of many megapixels, other formats, pasted pictures, long prompts; and
the shapes of sizes: page_files.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import base64
import json
import pathlib
import struct
import sys
import tempfile
import zlib

from browser import Browser
from page import DROP, idle, png_with, set_value, value
from page_pictures import text
from running import Server
from webdriver import ENGINES

# 64x48 pixels each, but for the BMP (6x4). Written by Pillow 12.
OTHERS = {
    "a.avif": "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADrbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAAAAAAAOcGl0bQ"
              "AAAAAAAQAAAB5pbG9jAAAAAEQAAAEAAQAAAAEAAAETAAAALgAAAChpaW5mAAAAAAABAAAAGmluZmUCAAAAAAEAAGF2MDFDb2xvcgAAAABqaXBycAAA"
              "AEtpcGNvAAAAFGlzcGUAAAAAAAAAQAAAADAAAAAQcGl4aQAAAAADCAgIAAAADGF2MUOBAAwAAAAAE2NvbHJuY2x4AAEADQAGgAAAABdpcG1hAAAAAA"
              "AAAAEAAQQBAoMEAAAANm1kYXQSAAoJGBV/vaICGg0IMh8cR4eF3dNNNMLAAADPyinHlP4mNPT9IL2NPa1FkJ+E",
    "a.gif": "R0lGODdhQAAwAIEAAMgeFAAAAAAAAAAAACwAAAAAQAAwAEAIWgABCBxIsKDBgwgTKlzIsKHDhxAjSpxIsaLFixgzatzIsaPHjyBDihxJsqTJkyhTqlz"
             "JsqXLlzBjypxJs6bNmzhz6tzJs6fPn0CDCh1KtKjRo0iTKl3KtGnRgAA7",
    "a.bmp": "Qk2GAAAAAAAAADYAAAAoAAAABgAAAAQAAAABABgAAAAAAFAAAADEDgAAxA4AAAAAAAAAAAAAFB7IFB7IFB7IFB7IFB7IFB7IAAAUHsgUHsgUHsgUHsgU"
             "HsgUHsgAABQeyBQeyBQeyBQeyBQeyBQeyAAAFB7IFB7IFB7IFB7IFB7IFB7IAAA=",
    "animated.png": "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAACGFjVEwAAAACAAAAAPONk3AAAAAaZmNUTAAAAAAAAABAAAAAMAAAAAAAAAAAAAAA"
                    "AQAAhPzgyAAAAFRJREFUeJztz0ENwCAAwEBAA2/8S0HWRPC4LOkpaOc9e/zZ0gGvGtAa0BrQGtAa0BrQGtAa0BrQGtAa0BrQGtAa0BrQGtAa0BrQ"
                    "GtAa0BrQGtAa0D5FRgFaHG8IBwAAABpmY1RMAAAAAQAAAEAAAAAwAAAAAAAAAAAAAAABAAAfjwocAAAAVmZkQVQAAAACeJztzzENACAAwDBAAzf+"
                    "ZSKCoyFZFWxznD1+tnTAqwa0BrQGtAa0BrQGtAa0BrQGtAa0BrQGtAa0BrQGtAa0BrQGtAa0BrQGtAa0BrQL/tsAkhCS3jYAAAAASUVORK5CYII=",
}

# 64x48 pixels each, without text. Written by Pillow 13.
BARE = {
    "jpeg": "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/wAALCAAw"
            "AEABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/9oACAEBAAA/AJAAAAAAAAAAAAAAAAf/2Q==",
    "webp": "UklGRiQAAABXRUJQVlA4TBcAAAAvP8ALAAdQjyKXov8BICH8Xy9G9D/1AwA=",
}

FORGES = ("a fox\nSteps: 20, Sampler: Euler, Schedule type: Simple, CFG scale: 1, Distilled CFG Scale: 3.5, Seed: 42, "
          "Size: 128x128, Model: flux1-dev, Version: f2.0.1v1.10.1")

# A photo as a camera writes it, drawn in the browser: with noise, so that its file is not tiny.
PHOTO = """
const [width, height, kind, id] = arguments;
const canvas = Object.assign(document.createElement("canvas"), {width, height});
const context = canvas.getContext("2d");
context.fillStyle = "#48a";
context.fillRect(0, 0, width, height);
context.fillStyle = "#c62";
context.fillRect(width / 4, height / 4, width / 2, height / 2);
const blob = await new Promise((resolve) => canvas.toBlob(resolve, `image/${kind}`, 0.9));
const files = new DataTransfer();
files.items.add(new File([blob], `photo.${kind}`, {type: `image/${kind}`}));
document.getElementById(id).files = files.files;
document.getElementById(id).dispatchEvent(new Event("change"));
"""

PASTE = """
const [name, type, base64, words] = arguments;
const data = new DataTransfer();
data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, {type}));
if (words) data.setData("text/plain", words);
const event = new Event("paste", {bubbles: true, cancelable: true});
Object.defineProperty(event, "clipboardData", {value: data});  // Firefox makes no such event for scripts
document.getElementById("prompt").dispatchEvent(event);
"""


# What the page sends of a file, in base64, and the size in which it shows it.
SENT = """
const [base64, type] = arguments;
const {readPictureFile} = await import("./scaling.js");
const file = new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], {type});
const {blob, width, height} = await readPictureFile(file, "a");
return [btoa(String.fromCharCode(...new Uint8Array(await blob.arrayBuffer()))), width, height];
"""


def size(browser):
    return int(value(browser, "width")), int(value(browser, "height"))


def offers_shapes(browser):
    """At the bundled model's 128x128 pixels, in multiples of 16."""
    for shape, wanted in (("landscape", (144, 96)), ("portrait", (96, 144)), ("wide", (176, 96)), ("square", (128, 128))):
        browser.click(f"#shape-{shape}")
        assert size(browser) == wanted, (shape, size(browser))
        assert browser.run(f"return document.getElementById('shape-{shape}').getAttribute('aria-pressed')") == "true"
    browser.click("#shape-wide")
    browser.click("#swap")
    assert size(browser) == (96, 176)
    published = browser.run_async("""
        const {sizeOfRatio, sizeLike, shapes} = await import("./size.js");
        const flux = {defaults: {width: 1024, height: 1024}, limits: {size_multiple: 16, largest_side: 16384, pixels: 4194304}};
        const small = {...flux, limits: {...flux.limits, pixels: 512 * 512}};
        return [...Object.values(shapes).map((ratio) => sizeOfRatio(ratio, flux)), sizeLike(4032, 3024, flux),
                sizeLike(8064, 6048, flux), sizeLike(1216, 832, flux), sizeLike(64, 64, flux), sizeLike(2000, 20, flux),
                sizeLike(3000, 3000, small)].map((one) => [one.width, one.height]);""")
    assert published[:4] == [[1024, 1024], [1248, 832], [1360, 768], [832, 1248]], published
    for width, height in published[4:6]:
        assert (width, height) == (1184, 880), "a photo's shape at the model's area"
    assert published[6:8] == [[1216, 832], [1024, 1024]], published
    assert published[8][1] >= 16 and published[8][0] * published[8][1] <= 4194304, published
    assert published[9] == [512, 512], "the server's limit"


def plans(browser):
    """Pictures of a request share the server's limit; those of one size keep one size."""
    caps, planned = browser.run_async("""
        const {capFor, plan} = await import("./scaling.js");
        const picture = (width, height, bytes = 1000) => ({width, height, blob: {size: bytes}});
        const limits = {input_pixels: 33554432, body_bytes: 1 << 25};
        const sent = (...all) => plan(all, limits).map((one) => [one.width, one.height, one.isChanged]);
        return [[capFor([1, 2, 3], 6), capFor([4, 4], 6), capFor([1, 9, 9], 11), capFor([], 5)],
                [sent(picture(6000, 4000)), sent(picture(6000, 4000), picture(6000, 4000)), sent(picture(8064, 6048)),
                 sent(picture(9000, 9000), picture(64, 64)), sent(picture(100, 100, 40e6))]];""")
    assert caps == [None, 3, 5, None], caps  # Infinity is null in JSON
    assert planned[0] == [[6000, 4000, False]], "24 megapixels are taken as they are"
    assert planned[1][0] == planned[1][1] and planned[1][0][2], "a picture and its mask"
    for request in planned[1:4]:
        assert sum(width * height for width, height, _ in request) <= 33554432, request
    assert planned[3][1] == [64, 64, False]
    assert planned[4] == [[100, 100, True]], "too many bytes"


def scales_once(browser):
    """The page keeps what it has sent, so that it can be made again: of one picture one file, and no more with each order."""
    kept, is_other = browser.run_async("""
        const {fitAll} = await import("./scaling.js");
        const canvas = Object.assign(document.createElement("canvas"), {width: 64, height: 48});
        const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
        const picture = {blob, name: "a.png", width: 64, height: 48, isLossy: false};
        const sent = async (pixels) => (await fitAll([picture], {input_pixels: pixels}))[0].blob;
        const first = await sent(768);
        return [await sent(768) === first, await sent(192) !== first];""")
    assert kept, "it was scaled again"
    assert is_other


def takes_photos(browser, server, folder):
    browser.run_async(PHOTO, 4032, 3024, "jpeg", "init-file")
    browser.wait_until("!document.getElementById('init-picture').hidden")
    assert size(browser) == (144, 112), size(browser)
    assert text(browser, "init-note") == "", "12 megapixels are sent as they are"
    browser.run_async(PHOTO, 8064, 6048, "jpeg", "init-file")
    browser.wait_until("document.getElementById('init-note').textContent.startsWith('Scaled')")
    note = text(browser, "init-note")
    assert "8064 × 6048" in note and "other bytes than generate" in note, note
    assert size(browser) == (144, 112), size(browser)
    browser.screenshot(folder / "photo.png")
    set_value(browser, "prompt", "a photo")
    set_value(browser, "steps", "2")
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1", 120)
    idle(browser)
    assert text(browser, "error") == ""
    user = browser.run("return localStorage.getItem('braid.user')")
    sent = server.json("GET", f"/v1/jobs?user={user}")["jobs"][-1]["pictures_in"]
    assert sent[0]["name"].startswith("photo-6") and sent[0]["name"].endswith(".jpg"), sent
    # A mask is painted in the size that is sent beside it.
    browser.click("#paint-mask")
    browser.wait_until("document.getElementById('paint').open")
    width, height = browser.run("const mask = document.getElementById('mask'); return [mask.width, mask.height]")
    assert 2 * width * height <= 33554432, (width, height)
    browser.drag("#mask", [(-30, -20), (30, 20)])
    browser.click("#use-mask")
    browser.wait_until("!document.getElementById('mask-picture').hidden", 120)
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 2", 120)
    idle(browser)
    assert text(browser, "error") == ""
    browser.click("#init-remove")


def takes_other_formats(browser, folder):
    for name, data in OTHERS.items():
        if name == "a.avif" and browser.engine == "webkit":
            continue  # Debian's is built without it
        (folder / name).write_bytes(base64.b64decode(data))
        browser.type("#init-file", str(folder / name))
        browser.wait_until("document.getElementById('init-note').textContent.startsWith('Converted to PNG')")
        assert text(browser, "error") == "", (name, text(browser, "error"))
        browser.click("#init-remove")
    (folder / "no.png").write_text("not a picture")
    browser.type("#init-file", str(folder / "no.png"))
    browser.wait_until("document.getElementById('error').textContent.includes('cannot read no.png as a picture')")


def takes_pasted_pictures(browser):
    browser.run(PASTE, "image.gif", "image/gif", OTHERS["a.gif"], "")
    browser.wait_until("!document.getElementById('init-picture').hidden")
    browser.click("#init-remove")
    browser.run(PASTE, "image.gif", "image/gif", OTHERS["a.gif"], "a word")
    assert browser.run("return document.getElementById('init-picture').hidden"), "an office program's text is meant"


def with_metadata(kind, data, is_xmp=False):
    """A bare picture with EXIF data, or XMP; in base64."""
    bare = base64.b64decode(BARE.get(kind) or png_with({}))
    if kind == "jpeg":
        segment = (b"http://ns.adobe.com/xap/1.0/\0" if is_xmp else b"Exif\0\0") + data
        made = bare[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(segment)) + segment + bare[2:]
    elif kind == "webp":
        flags, name = (b"\x04", b"XMP ") if is_xmp else (b"\x08", b"EXIF")
        chunks = b"WEBPVP8X" + struct.pack("<I", 10) + flags + b"\0\0\0\x3f\0\0\x2f\0\0" + bare[12:] + \
            name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
        made = b"RIFF" + struct.pack("<I", len(chunks)) + chunks
    else:
        name, whole = (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + data) if is_xmp else (b"eXIf", data)
        chunk = struct.pack(">I", len(whole)) + name + whole + struct.pack(">I", zlib.crc32(name + whole))
        made = bare[:33] + chunk + bare[33:]  # behind the PNG's head
    return base64.b64encode(made).decode()


def with_comment(kind, comment):
    """A bare picture with a user comment in its EXIF data, as AUTOMATIC1111's web UI and Forge write it; in base64."""
    text = b"UNICODE\0" + comment.encode("utf-16-be")
    entry = struct.pack(">HHHIII", 1, 0x9286, 7, len(text), 44, 0)
    tiff = b"MM\0*" + struct.pack(">I", 8) + struct.pack(">HHHIII", 1, 0x8769, 4, 1, 26, 0) + entry + text
    return with_metadata(kind, tiff)


def sends_what_it_shows(browser, server):
    """Files that say how their picture is turned, which browsers and the server follow in different formats."""
    exif = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x112, 3, 1, 6, 0, 0)
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    for kind in ("png", "jpeg", "webp"):
        for data, is_xmp in ((exif, False), (xmp, True)):
            sent, *shown = browser.run_async(SENT, with_metadata(kind, data, is_xmp), f"image/{kind}")
            made = server.json("POST", "/v1/jobs", {"prompt": "x", "steps": 1, "init": sent})["request"]
            assert [made["width"], made["height"]] == shown, (kind, is_xmp, shown, made)
            if kind == "jpeg" and not is_xmp:
                assert shown == [48, 64], "a photo is upright"


def leaves_other_programs_settings(browser, server):
    """ComfyUI's and Forge's pictures are used as any others are: their texts mean something else. Braid's own restore
    their settings in each format."""
    graph = {"3": {"class_type": "KSampler", "inputs": {"seed": 5, "steps": 20}}}
    others = [("ComfyUI_00001_.png", png_with({"prompt": json.dumps(graph), "workflow": "{}"}), "image/png"),
              *((f"forge.{kind}", with_comment(kind, FORGES), f"image/{kind}") for kind in BARE)]
    set_value(browser, "prompt", "a carefully written prompt")
    names = ("prompt", "seed", "steps", "guidance", "sampler", "schedule")
    for name, data, kind in others:
        for bring in ((DROP, name, data, kind), (PASTE, name, kind, data, "")):
            before = [value(browser, one) for one in names]
            browser.run(*bring)
            browser.wait_until("!document.getElementById('init-picture').hidden")
            assert [value(browser, one) for one in names] == before, name
            assert text(browser, "error") == text(browser, "restored") == "", name
            browser.click("#init-remove")
    for seed, kind in enumerate(("png", "jpeg", "webp"), 90):
        made = server.json("POST", "/v1/images/generations", {"prompt": f"of a {kind}", "seed": seed, "steps": 2, "guidance": 2.5,
                                                               "size": "64x64", "output_format": kind})
        browser.run(DROP, f"a.{kind}", made["data"][0]["b64_json"], f"image/{kind}")
        browser.wait_until(f"document.getElementById('seed').value === '{seed}'")
        assert [value(browser, one) for one in ("prompt", "guidance")] == [f"of a {kind}", "2.5"], kind
        assert text(browser, "restored") == "", (kind, text(browser, "restored"))
    browser.click("#dice")


def takes_files_in_turn(browser):
    """A large file does not come after a small one that was dropped later. Of JPEGs only the head is sent for their texts,
    and nothing of what the server does not read."""
    sent = browser.run_async("""
        const reach = window.fetch, sent = [];
        window.fetch = (path, options) => {
          if (path.includes("png-info")) sent.push(options.body.length);
          return reach(path, options);
        };
        const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
        const file = async (width, height, kind, padding) => {
          const canvas = Object.assign(document.createElement("canvas"), {width, height});
          canvas.getContext("2d").fillRect(0, 0, width, height);
          const blob = await new Promise((resolve) => canvas.toBlob(resolve, `image/${kind}`));
          return new File([blob, new Uint8Array(padding)], `${width}.${kind}`, {type: `image/${kind}`});
        };
        const files = [await file(128, 96, "jpeg", 40e6), await file(96, 128, "jpeg", 0), await file(64, 64, "png", 0)];
        const gif = Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0));
        files.push(new File([gif], "a.gif", {type: "image/gif"}));
        for (const one of files) {
          const data = new DataTransfer();
          data.items.add(one);
          dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
        }
        for (let i = 0; i < 100 && document.getElementById("init-picture").naturalHeight !== 48; ++i) await pause(100);
        await pause(500);
        window.fetch = reach;
        return sent;""", OTHERS["a.gif"])
    assert browser.run("return document.getElementById('init-picture').naturalHeight") == 48, "the last one that was dropped"
    assert len(sent) == 2 and max(sent) < 2e5, f"bytes for the texts of two JPEGs: {sent}"
    browser.click("#init-remove")


def counts_tokens(browser):
    """As transformers counts them for the bundled model: 142 of CLIP, and 141 of T5."""
    words = " ".join(["a red circle on a blue background"] * 20)
    browser.run("const p = document.getElementById('prompt'); p.value = arguments[0]; p.dispatchEvent(new Event('input'))", words)
    browser.wait_until("document.getElementById('tokens').textContent.includes('CLIP 142 of 77 tokens, T5 141 of 64 tokens')")
    said = text(browser, "tokens")
    assert "CLIP reads the first 77 tokens, and not: blue background" in said, said
    set_value(browser, "prompt", "a circle")
    browser.wait_until("!document.getElementById('tokens').textContent.includes('not:')")


def says_what_the_engine_warned_of(browser):
    words = " ".join(["a red circle on a blue background"] * 20)
    browser.run("document.getElementById('prompt').value = arguments[0]", words)
    set_value(browser, "steps", "2")
    browser.click("#make")
    browser.wait_until("document.getElementById('notices').textContent.includes('77 tokens that CLIP reads')")
    idle(browser)
    lines = browser.run("""return ["caption", "jobs"].map((id) => document.getElementById(id)).concat(
        [...document.querySelectorAll("#tokens q")]).map((one) => one.getBoundingClientRect().height)""")
    assert max(lines) < 100, f"long prompts are clamped: {lines}"


def takes_what_is_dropped_on_a_row(browser):
    """There, and nowhere else; a strength that was chosen stays with the picture."""
    drop = DROP.replace("dispatchEvent(new DragEvent(\"drop\", {", "document.querySelector(window.row).dispatchEvent("
                        "new DragEvent(\"drop\", {bubbles: true, ")
    shown = "!document.getElementById('{}-picture').hidden"
    browser.run("document.getElementById('init-remove').click()")
    browser.run("window.row = '#mask-row'")
    browser.run(drop, "mask.png", png_with({}))
    browser.wait_until("document.getElementById('error').textContent.includes('a picture to start from')")
    browser.run("window.row = '#init-file'")
    browser.run(drop, "start.png", png_with({}))
    browser.wait_until(shown.format("init"))
    browser.run("document.getElementById('strength').value = 0.35;"
                "document.getElementById('strength').dispatchEvent(new Event('input', {bubbles: true}))")
    browser.run("window.row = '#mask-hint'")
    browser.run(drop, "mask.png", png_with({}), None, "more.png", png_with({}))
    browser.wait_until(shown.format("mask"))
    browser.wait_until("document.getElementById('error').textContent.includes('more.png')")
    assert value(browser, "strength") == "0.35" == text(browser, "strength-shown"), value(browser, "strength")
    assert not browser.run("return document.getElementById('init-picture').hidden"), "the mask took its place"
    browser.run("document.getElementById('init-remove').click()")
    assert value(browser, "strength") == "0.6", "the next picture has the model's own"


def folds_what_is_rare(browser):
    assert not browser.run("return document.getElementById('more').open")
    assert browser.run("return document.getElementById('more').contains(document.getElementById('true_cfg'))")
    assert not browser.run("return document.getElementById('true_cfg').checkVisibility()")
    browser.click("#more summary")
    assert "1 is off" in text(browser, "true-cfg-hint")
    browser.click("#more summary")


def main(braid, folder):
    with tempfile.TemporaryDirectory() as name, Server(braid).wait_until_ready() as server:
        here = pathlib.Path(name)
        for engine in ENGINES:
            with Browser(engine=engine, height=1300) as browser:
                browser.open(server.address)
                browser.wait_until("!document.getElementById('make').disabled")
                offers_shapes(browser)
                plans(browser)
                scales_once(browser)
                takes_other_formats(browser, here)
                takes_pasted_pictures(browser)
                sends_what_it_shows(browser, server)
                leaves_other_programs_settings(browser, server)
                takes_files_in_turn(browser)
                takes_photos(browser, server, folder)
                takes_what_is_dropped_on_a_row(browser)
                folds_what_is_rare(browser)
                counts_tokens(browser)
                says_what_the_engine_warned_of(browser)
            print(f"page: shapes, photos of 12 and 48 megapixels, AVIF, GIF, BMP, pasted pictures, turned ones, rows, "
                  f"those of other programs, tokens, warnings in {engine}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

#!/usr/bin/env python3
"""What the page's fields take, refuse and order, in three engines: page_fields.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import pathlib
import sys
import tempfile

from browser import Browser
from page import gallery, idle, last_request, png_with, restored, set_value, value
from page_pictures import text, write_lora
from running import Server
from webdriver import ENGINES

ROOT = pathlib.Path(__file__).parents[2]
LORAS = ("ink", "red, blue", "a=b")

# Answers about capabilities come late, or not at all.
SLOW = """
const reach = window.fetch;
window.fetch = async (path, options) => {
  if (!path.includes("v1/capabilities")) return reach(path, options);
  await new Promise((resolve) => setTimeout(resolve, window.slowness ?? 0));
  if (window.isCut) throw new TypeError("cut");
  return reach(path, options);
};
"""
# After a break the server offers something else.
OTHERWISE = """
const reach = window.fetch;
let isCut = true;
window.fetch = async (path, options) => {
  if (isCut && path.endsWith("/readyz")) {
    isCut = false;
    throw new TypeError("cut");
  }
  if (isCut && path.endsWith("v1/tokens")) return new Response("{}", {status: 404});
  const answer = await reach(path, options);
  if (!path.includes("v1/capabilities")) return answer;
  return new Response(JSON.stringify({...await answer.json(), family: "another"}));
};
"""
CHOOSE = """
const models = document.getElementById("models");
models.value = arguments[0];
models.dispatchEvent(new Event("change", {bubbles: true}));
"""
SET = """
const [css, text] = arguments, field = document.querySelector(css);
field.value = text;
field.dispatchEvent(new Event("input", {bubbles: true}));
"""


def opened(browser, address):
    browser.open(address)
    browser.wait_until("!document.getElementById('make').disabled")


def clicks_make(browser):
    browser.run("document.getElementById('make').click()")


def draws(browser):
    before = gallery(browser)
    clicks_make(browser)
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1} || "
                       "document.getElementById('error').textContent !== ''")
    assert text(browser, "error") == "", text(browser, "error")
    idle(browser)


def model_of_last(browser, server):
    user = browser.run("return localStorage.getItem('braid.user')")
    return server.json("GET", f"/v1/jobs?user={user}")["jobs"][-1]["model"]


def is_refused(browser, name):
    """By the browser itself, which leads to the field."""
    browser.run("document.activeElement.blur()")
    clicks_make(browser)
    browser.wait_until(f"document.activeElement.id === '{name}'", 5)
    assert browser.run("return document.querySelectorAll('#jobs li').length") == 0


def shows_what_it_refuses(browser):
    """Also where "More" is closed; old messages do not stand beside it."""
    browser.run(SET, "#max_sequence_length", "-5")
    browser.run("document.getElementById('more').open = false; document.getElementById('error').textContent = 'of before'")
    is_refused(browser, "max_sequence_length")
    assert browser.run("return document.getElementById('more').open") and text(browser, "error") == ""
    browser.run(SET, "#max_sequence_length", "")
    hidden = browser.run("""return [...document.getElementById("form").elements].filter((one) =>
        one.closest("[hidden]") && one.willValidate && !one.matches("[type=file], button")).map((one) => one.id)""")
    assert hidden == [], f"fields out of sight hold orders back: {hidden}"
    browser.run(SET, "#mask_blur", "-1")  # out of sight without a mask
    browser.run(SET, "#seed", "-1")  # any, as in the API
    draws(browser)
    browser.run(SET, "#mask_blur", "0")
    browser.run(SET, "#seed", "-2")
    is_refused(browser, "seed")
    browser.run(SET, "#seed", "")
    browser.run("""const one = document.createElement("input");
        Object.assign(one, {id: "unseen", required: true});
        one.style.display = "none";
        document.getElementById("form").append(one);""")
    clicks_make(browser)
    browser.wait_until("document.getElementById('error').textContent.startsWith('unseen: ')", 5)
    browser.run("document.getElementById('unseen').remove()")


def tick(browser, name, is_on=True):
    browser.run("""const [name, isOn] = arguments;
        const row = [...document.querySelectorAll("#loras li")].find((one) => one.dataset.name === name);
        row.querySelector("[type=number]").id = "weight";
        const box = row.querySelector("[type=checkbox]");
        if (box.checked !== isOn) box.click();""", name, is_on)


def ticked(browser):
    return browser.run("""return [...document.querySelectorAll("#loras li")].filter((one) =>
        one.querySelector("[type=checkbox]").checked).map((one) => one.dataset.name)""")


def takes_any_weight(browser, server):
    """But none for a LoRA that is used."""
    tick(browser, "ink")
    browser.run(SET, "#weight", "0.33")
    draws(browser)
    assert last_request(browser, server)["lora"] == [{"name": "ink", "scale": 0.33}], last_request(browser, server)
    browser.run(SET, "#weight", "")
    is_refused(browser, "weight")
    browser.refresh()
    browser.wait_until("!document.getElementById('make').disabled")
    tick(browser, "ink")
    assert value(browser, "weight") == "", "an empty weight is not remembered as 0"
    tick(browser, "ink", False)
    draws(browser)
    assert "lora" not in last_request(browser, server)
    browser.run("document.getElementById('weight').removeAttribute('id')")


def reads_names_of_loras(browser, server):
    """Such as hold commas and equals signs."""
    for name in LORAS[1:]:
        user = browser.run("return localStorage.getItem('braid.user')")
        before = gallery(browser)
        server.json("POST", "/v1/jobs", {"prompt": "x", "steps": 2, "size": "64x64", "user": user,
                                         "lora": [{"name": name, "scale": 0.5}, {"name": "ink", "scale": -2}]})
        server.wait_until_idle()
        browser.refresh()
        browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}")
        browser.wait_until("!document.getElementById('make').disabled")
        browser.click("#gallery button")
        browser.wait_until("document.getElementById('shown').open")
        browser.click("#reuse")
        assert sorted(ticked(browser)) == sorted([name, "ink"]) and restored(browser) == "", (ticked(browser), restored(browser))
        browser.wait_until("!history.state?.isDialog")
        for one in ("ink", name):
            tick(browser, one, False)


def makes_again_only_the_same(browser, server, without):
    """Of pictures of an earlier visit: never with other LoRAs or another model."""
    user = browser.run("return localStorage.getItem('braid.user')")
    before = gallery(browser)
    server.json("POST", "/v1/jobs", {"prompt": "of ink", "steps": 2, "size": "64x64", "user": user, "model": "beta",
                                     "lora": [{"name": "ink", "scale": 0.5}]})
    server.wait_until_idle()
    browser.refresh()
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}")
    browser.wait_until("!document.getElementById('make').disabled && !document.getElementById('picture-actions').hidden")
    browser.click("#picture-actions [data-act=again]")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 2}")
    assert last_request(browser, server)["lora"] == [{"name": "ink", "scale": 0.5}], last_request(browser, server)
    assert model_of_last(browser, server) == "beta"
    idle(browser)
    made = server.json("POST", "/v1/images/generations", {"prompt": "of ink", "steps": 2, "size": "64x64", "model": "beta",
                                                          "lora": [{"name": "ink", "scale": 0.5}]})
    opened(browser, without.address)
    browser.run_async("""
        const {cardOf, keepPicture} = await import("./kept.js"), {readSettings} = await import("./settings.js");
        const blob = new Blob([Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0))], {type: "image/png"});
        const card = await cardOf(blob, await readSettings(blob), "earlier/0");
        await keepPicture({...card, model: "beta"}, blob);""", made["data"][0]["b64_json"])
    opened(browser, without.address)
    browser.wait_until("document.querySelectorAll('#gallery img').length > 0")
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown').open")
    browser.click("#again")
    browser.wait_until("document.getElementById('error').textContent !== ''")
    refused = text(browser, "error")
    assert "does not offer its lora “ink" in refused and "model “beta”" in refused, refused
    assert browser.run("return document.querySelectorAll('#jobs li').length") == 0


def leaves_the_servers_loras_to_it(browser):
    """Those of --lora stand in the same text; a request does not name them."""
    asked = browser.run_async("""
        const {settingsOfText} = await import("./orders.js"), {lostOf} = await import("./settings.js");
        const offer = {adapters: [{name: "own", scale: 0.8}], loras: ["own", "ink"], models: ["a"], model: "a", defaults: {}};
        return ["own=0.8", "own=0.8, ink=1", "own=0.7", "lost=1, own=0.8", "damaged"].map((lora) => {
          const settings = settingsOfText({lora}, offer);
          return [settings.lora?.map(({name, scale}) => `${name}=${scale}`).join() ?? "", lostOf({lora}, settings, offer).join()];
        });""")
    assert asked == [["", ""], ["ink=1", ""], ["own=0.7", ""], ["", "lora"], ["", "lora"]], asked


def orders_of_the_model_it_shows(browser, server):
    """However slowly the server tells what a model can, and if it does not."""
    opened(browser, server.address)
    browser.run(SLOW)
    browser.run("window.slowness = 600")
    browser.run(CHOOSE, "beta")
    browser.run("window.slowness = 0")
    browser.run(CHOOSE, "alpha")
    browser.run_async("await new Promise((resolve) => setTimeout(resolve, 1500))")
    shown = (value(browser, "models"), text(browser, "model").split()[0],
             browser.run("return localStorage.getItem('braid.model')"))
    assert shown == ("alpha",) * 3, f"the newest answer counts: {shown}"
    browser.run("window.slowness = 500")
    browser.run(CHOOSE, "beta")
    draws(browser)
    assert model_of_last(browser, server) == value(browser, "models") == "beta"
    browser.run("window.isCut = true")
    before = gallery(browser)
    browser.run(CHOOSE + "document.getElementById('make').click();", "alpha")
    browser.wait_until("document.getElementById('error').textContent === 'the server cannot be reached'", 10)
    assert value(browser, "models") == "beta" and gallery(browser) == before
    assert browser.run("return document.querySelectorAll('#jobs li').length") == 0, "nobody asked for beta"
    browser.run("window.isCut = false")
    draws(browser)
    assert model_of_last(browser, server) == "beta"


def counts_no_old_prompt(browser):
    browser.run(SET, "#prompt", "a circle")
    browser.wait_until("document.getElementById('tokens').textContent.includes('tokens')")
    browser.run(SET, "#prompt", "word " * 8000)
    browser.wait_until("document.getElementById('tokens').textContent.includes('at most 32000 characters')")
    browser.run(SET, "#prompt", "a circle")
    browser.wait_until("document.getElementById('tokens').textContent.includes('of 77 tokens')")


def keeps_its_own_settings(browser, server):
    """Where a server comes back and offers something else, a tab has its settings and model, not those of another tab,
    and counts tokens also if it met the server without its model."""
    opened(browser, server.address)
    browser.run(CHOOSE, "alpha")
    browser.wait_until("document.getElementById('model').textContent.startsWith('alpha')")
    set_value(browser, "steps", "7")
    first, = browser.command("tabs")
    back = browser.new_tab()
    opened(browser, server.address)
    browser.run(CHOOSE, "beta")
    browser.wait_until("document.getElementById('model').textContent.startsWith('beta')")
    set_value(browser, "steps", "9")
    back(first)
    browser.run(OTHERWISE)
    browser.run(SET, "#prompt", "counted again")
    browser.wait_until("document.getElementById('model').textContent.includes('another')", 20)
    assert text(browser, "model").startswith("alpha"), text(browser, "model")
    assert value(browser, "steps") == "7", value(browser, "steps")
    browser.wait_until("document.getElementById('tokens').textContent.includes('of 77 tokens')", 10)


def names_boxes_once(browser):
    browser.wait_until("document.getElementById('boxes-row').offsetParent !== null")
    for number in (1, 2):
        browser.run("document.getElementById('add-box').click()")
        browser.run(SET, f"#boxes li:nth-child({number}) .id", "a")
        browser.run(SET, f"#boxes li:nth-child({number}) .desc", "a fox")
    set_value(browser, "prompt", "a fox")
    browser.run("document.querySelector('#boxes li:nth-child(2) .id').id = 'second'")
    is_refused(browser, "second")
    browser.run(SET, "#second", "b")
    set_value(browser, "steps", "1")
    draws(browser)


def asks_for_each_weight(browser):
    """Of a picture that a ControlNet follows: any, but one."""
    browser.wait_until("document.getElementById('control-row').offsetParent !== null")
    browser.run_async("""const {follow} = await import("./pictures.js");
        const bytes = Uint8Array.from(atob(arguments[0]), (c) => c.charCodeAt(0));
        for (let i = 0; i < 2; ++i) await follow(new Blob([bytes], {type: "image/png"}), "a.png");""", png_with({}))
    set_value(browser, "prompt", "x")
    set_value(browser, "steps", "1")
    for name, number in (("Weight", "0.33"), ("To", "0.77")):
        field = f"#controls input[aria-label='{name} of picture to follow 1']"
        browser.run(f"document.querySelector(arguments[0]).id = '{name}'", field)
        browser.run(SET, field, number)
        draws(browser)
        browser.run(SET, field, "")
        is_refused(browser, name)
        browser.run(SET, field, number)


def main(braid, folder):
    del folder
    demo = ROOT / "models" / "demo"
    models = ("-m", demo, "-m", demo, "--served-model-name", "alpha", "--served-model-name", "beta")
    with tempfile.TemporaryDirectory() as name:
        for lora in LORAS:
            write_lora(pathlib.Path(name) / f"{lora}.safetensors")
        with Server(braid, *models, "--lora-dir", name).wait_until_ready() as server, \
                Server(braid).wait_until_ready() as without:
            for engine in ENGINES:
                with Browser(engine=engine, height=1300) as browser:
                    opened(browser, server.address)
                    set_value(browser, "prompt", "a fox")
                    set_value(browser, "steps", "2")
                    shows_what_it_refuses(browser)
                    takes_any_weight(browser, server)
                    reads_names_of_loras(browser, server)
                    orders_of_the_model_it_shows(browser, server)
                    counts_no_old_prompt(browser)
                    leaves_the_servers_loras_to_it(browser)
                    makes_again_only_the_same(browser, server, without)
                    keeps_its_own_settings(browser, server)
                print(f"page: refusals in sight, weights, names of LoRAs, the model that is shown, the same again, tabs in {engine}")
    parity = ROOT / "tests" / "data" / "parity"
    with Server(braid, "-m", parity / "flux3" / "model").wait_until_ready() as server, Browser(height=1300) as browser:
        opened(browser, server.address)
        names_boxes_once(browser)
    nets = [one for number in (1, 2) for one in ("--controlnet", parity / "controlnets" / "model" / f"controlnet_{number}")]
    with Server(braid, "-m", parity / "controlnets" / "model", *nets).wait_until_ready() as server, Browser() as browser:
        opened(browser, server.address)
        asks_for_each_weight(browser)
    print("page: names of boxes, weights of pictures that are followed")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

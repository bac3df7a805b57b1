#!/usr/bin/env python3
"""The page where little is well: by keyboard alone, on a small phone, with many jobs, a lost connection and
a full browser: page_faults.py BRAID [FOLDER-FOR-SCREENSHOTS]"""

import pathlib
import sys
import tempfile

from browser import KEYS, Browser
from page import gallery, idle, set_value
from page_connections import (comes_back, finds_an_order_without_an_answer, goes_on_after_silence, in_sight, opened,
                              resumes_a_waiting_job, says_that_another_answers, tells_of_lost_jobs)
from page_tabs import (catches_up_after_sleep, collects_while_it_is_hidden, goes_on_when_the_reader_falls_asleep,
                       goes_on_when_the_reader_is_closed, leaves_room_for_requests)
from running import Server


def tab_to(browser, wanted, most=40, back=False):
    for _ in range(most):
        browser.press([KEYS["shift"], KEYS["tab"]] if back else KEYS["tab"])
        if browser.focused() == wanted:
            return
    raise AssertionError(f"no way to {wanted} by keyboard, now at {browser.focused()}")


def works_by_keyboard(browser, server):
    opened(browser, server.address)
    tab_to(browser, "prompt")
    browser.press(*"a fox", [KEYS["control"], KEYS["enter"]])
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1", 120)
    idle(browser)
    assert browser.focused() == "prompt", "the focus stays"
    set_value(browser, "steps", "200")
    browser.press([KEYS["control"], KEYS["enter"]])
    browser.wait_until("document.querySelectorAll('#jobs li').length === 1")
    tab_to(browser, "Cancel a fox")
    browser.press(KEYS["enter"])
    idle(browser)
    browser.wait_until("document.activeElement.id === 'make'")
    browser.run("document.querySelector('#gallery button').focus()")
    browser.press(KEYS["enter"])
    browser.wait_until("document.getElementById('shown').open")
    browser.press(KEYS["escape"])
    browser.wait_until("!document.getElementById('shown').open")
    assert browser.run("return document.activeElement === document.querySelector('#gallery button')")
    tab_to(browser, "make", back=True)
    set_value(browser, "steps", "2")
    browser.run("document.getElementById('make').focus()")
    browser.press(" ")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 2", 120)
    idle(browser)
    assert browser.focused() == "make", "the focus stays where the order was given"
    set_value(browser, "steps", "60")
    browser.run("document.getElementById('make').click()")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 3", 120)
    idle(browser)
    browser.run("document.querySelector('#picture-actions [data-act=again]').focus()")
    browser.press(KEYS["enter"])
    browser.wait_until("document.getElementById('picture').className === 'rough'")
    assert browser.focused() == "result", "previews hide the button, the focus stays near"
    idle(browser)


def leafs_by_keyboard(browser):
    """At the last picture the button is disabled, and the keys go on to work."""
    browser.run("document.querySelector('#gallery button').focus()")
    browser.press(KEYS["enter"])
    browser.wait_until("document.getElementById('shown').open")
    while not browser.run("return document.getElementById('later').disabled"):
        title = browser.run("return document.getElementById('shown-title').textContent")
        browser.run("document.getElementById('later').focus()")
        browser.press(KEYS["enter"])
        browser.wait_until(f"document.getElementById('shown-title').textContent !== '{title}'")
    assert browser.focused() == "stage", browser.focused()
    browser.press(KEYS["left"])
    browser.wait_until("!document.getElementById('later').disabled")
    browser.press(KEYS["escape"])
    browser.wait_until("!document.getElementById('shown').open")


def orders_once_at_a_double_click(browser):
    before = gallery(browser)
    browser.run("document.getElementById('picture-actions').scrollIntoView({ block: 'center' })")
    browser.double_click("#picture-actions [data-act=again]")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length > {before}", 120)
    idle(browser)
    assert gallery(browser) == before + 1, "a double click orders once"


def goes_back_to_the_page(browser):
    """Back closes a picture or the mask, and leaves no entries behind."""
    closed = "!document.querySelector('dialog[open]')"
    browser.run("window.wasHere = true; window.before = history.length")

    def open_picture():
        browser.click("#gallery button")
        browser.wait_until("document.getElementById('shown').open && history.state !== null")

    for _ in range(2):
        open_picture()
        browser.back()
        browser.wait_until(closed)
    for way in (lambda: browser.press(KEYS["escape"]), lambda: browser.click("#close")):
        open_picture()
        way()
        browser.wait_until(f"{closed} && history.state === null")
    open_picture()
    browser.click("#use-mask-base")
    browser.wait_until("document.getElementById('paint').open && history.state !== null")
    browser.back()
    browser.wait_until(f"{closed} && history.state === null")
    browser.click("#init-remove")
    assert browser.run("return window.wasHere && history.length <= window.before + 1"), "entries pile up"
    open_picture()
    opened(browser, browser.run("return location.href"))
    browser.run("window.wasHere = true")
    browser.click("#gallery button")
    browser.wait_until("document.getElementById('shown').open")
    browser.back()
    browser.wait_until(closed)
    assert browser.run("return window.wasHere"), "the page was left"


def cancels_many_jobs(browser, server):
    """More than the six connections that a browser opens to a server."""
    opened(browser, server.address)
    set_value(browser, "prompt", "many")
    set_value(browser, "steps", "200")
    set_value(browser, "width", "512")
    for count in range(1, 10):
        browser.click("#make")
        browser.wait_until(f"document.querySelectorAll('#jobs li').length === {count}", 10)
    for count in range(8, -1, -1):
        browser.run("document.querySelector('#jobs li:last-child button').click()")
        browser.wait_until(f"document.querySelectorAll('#jobs li').length === {count}", 10)
    idle(browser)
    assert server.json("GET", "/v1/status")["waiting"] == 0


def survives_a_full_browser(browser, server):
    """The pictures are shown and the job goes on, but they are gone after a reload."""
    opened(browser, server.address)
    before = gallery(browser)
    browser.devtools("Storage.overrideQuotaForOrigin", origin=server.address, quotaSize=1)
    set_value(browser, "prompt", "too much")
    set_value(browser, "steps", "2")
    set_value(browser, "n", "2")
    browser.click("#make")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 2}")
    browser.wait_until("document.getElementById('error').textContent.includes('cannot keep more pictures')")
    idle(browser)
    browser.devtools("Storage.overrideQuotaForOrigin", origin=server.address)


def lives_without_storage(browser, server):
    """As where a browser blocks cookies: the names alone throw."""
    block = """for (const name of ["localStorage", "sessionStorage", "indexedDB"])
        Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError"); } });"""
    script = browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=block)
    opened(browser, server.address)
    set_value(browser, "prompt", "not kept")
    set_value(browser, "steps", "2")
    browser.click("#make")
    browser.wait_until("document.querySelectorAll('#gallery img').length === 1")
    idle(browser)
    browser.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def reads_past_damaged_settings(browser, server):
    """What another program or a fault left in the place of the remembered form."""
    opened(browser, server.address)
    for damaged in ("{broken", "null", "4", '"words"'):
        browser.run("localStorage.setItem('braid.settings', arguments[0])", damaged)
        opened(browser, server.address)
        set_value(browser, "prompt", "remembered")
        opened(browser, server.address)
        assert browser.run("return document.getElementById('prompt').value") == "remembered", damaged


def leaves_text_where_it_is_dropped(browser):
    drop = """const data = new DataTransfer();
        data.setData("text/plain", "a word");
        return document.getElementById("prompt").dispatchEvent(
            new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));"""
    assert browser.run(drop), "the page took it"


def fits(browser):
    return browser.run("return document.documentElement.scrollWidth <= innerWidth")


def shows_what_happens(browser, folder):
    """A long prompt does not widen the page; progress, its end and complaints are in sight."""
    set_value(browser, "prompt", "a long prompt, " * 20)
    set_value(browser, "steps", "200")
    browser.run("document.getElementById('make').click()")
    browser.wait_until("document.getElementById('progress').value > 0.02")
    assert fits(browser), "a long prompt widens the page"
    assert in_sight(browser, "cancel")
    browser.screenshot(folder / "small-phone-working.png")
    browser.run("document.getElementById('cancel').click()")
    idle(browser)
    browser.run("document.getElementById('form').noValidate = true")
    set_value(browser, "width", "65")
    browser.run("document.getElementById('make').click()")
    browser.wait_until("document.getElementById('error').textContent.includes('multiples of 16')")
    assert in_sight(browser, "error") and in_sight(browser, "make")
    browser.screenshot(folder / "small-phone-error.png")


def fits_a_small_phone(browser, server, folder):
    browser.devtools("Emulation.setDeviceMetricsOverride", width=320, height=640, deviceScaleFactor=2, mobile=True)
    browser.devtools("Emulation.setEmulatedMedia", features=[
        {"name": "prefers-color-scheme", "value": "dark"}, {"name": "prefers-reduced-motion", "value": "reduce"}])
    opened(browser, server.address)
    assert fits(browser), "the page is too wide"
    small = "return [...document.querySelectorAll('input:not([type=file]), select, textarea')].filter((one) => " \
            "parseFloat(getComputedStyle(one).fontSize) < 16).map(({id}) => id)"
    assert browser.run(small) == [], "iOS enlarges the page for small fields"
    assert browser.run("return getComputedStyle(document.getElementById('make')).transitionDuration") == "0s"
    browser.screenshot(folder / "small-phone.png")
    browser.wait_until("document.querySelectorAll('#gallery button').length > 0")
    browser.run("document.querySelector('#gallery button').click()")
    browser.wait_until("document.getElementById('shown').open")
    wide = "const box = document.getElementById(arguments[0]); return box.scrollWidth - box.clientWidth"
    assert browser.run(wide, "shown") <= 0, "the picture's dialog is too wide"
    browser.screenshot(folder / "small-phone-picture.png")
    browser.run("document.getElementById('use-init').click()")
    browser.wait_until("!document.getElementById('paint-mask').disabled")
    browser.run("document.getElementById('paint-mask').click()")
    browser.wait_until("document.getElementById('paint').open")
    assert browser.run(wide, "paint") <= 0, "the mask's dialog is too wide"
    assert fits(browser)
    browser.screenshot(folder / "small-phone-mask.png")
    browser.run("document.getElementById('cancel-mask').click()")
    shows_what_happens(browser, folder)


def main(braid, folder):
    with Server(braid).wait_until_ready() as server, Browser() as browser:
        works_by_keyboard(browser, server)
        leafs_by_keyboard(browser)
        orders_once_at_a_double_click(browser)
        goes_back_to_the_page(browser)
        leaves_text_where_it_is_dropped(browser)
        fits_a_small_phone(browser, server, folder)
        complaints = [text for text in browser.complaints() if "400 (Bad Request)" not in text]
        assert not complaints, complaints
    with Browser() as browser:
        tells_of_lost_jobs(browser, braid)
    with Server(braid).wait_until_ready() as server, Browser() as browser:
        cancels_many_jobs(browser, server)
        assert not browser.complaints(), browser.complaints()
        reads_past_damaged_settings(browser, server)
        survives_a_full_browser(browser, server)
        lives_without_storage(browser, server)
        comes_back(browser, server)
        resumes_a_waiting_job(browser, server)
        goes_on_after_silence(browser, server)
        finds_an_order_without_an_answer(browser, server)
        says_that_another_answers(browser, server)
    with Server(braid).wait_until_ready() as server:
        for several_tabs in (leaves_room_for_requests, goes_on_when_the_reader_is_closed, goes_on_when_the_reader_falls_asleep,
                             collects_while_it_is_hidden, catches_up_after_sleep):
            with Browser() as browser:
                several_tabs(browser, server)
                assert not browser.complaints(), browser.complaints()
    print("page: by keyboard alone, a double click, Back, at 320 pixels, many jobs, lost and silent connections, a restart, "
          "damaged settings, a full browser, no storage, many tabs, tabs that are closed, asleep or left")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        main(sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else own))

"""The page in several tabs: one of them reads a job's events for all, also where it is closed or falls asleep. For
page_faults.py."""

import time

from page import gallery, idle, set_value
from page_connections import opened

# As over plain HTTP from another machine.
NO_LOCKS = "Object.defineProperty(Navigator.prototype, 'locks', { value: undefined });"
# As long as it sleeps in the browser's memory, a page hears nothing.
MAY_SLEEP = """
const Channel = window.BroadcastChannel;
window.BroadcastChannel = class extends Channel {
  addEventListener(kind, act) { super.addEventListener(kind, (event) => window.isAsleep || act(event)); }
};
"""
# Milliseconds until the server answers, or -1.
ANSWERS = """
const began = performance.now();
const answer = fetch("livez").then(() => Math.round(performance.now() - began));
return await Promise.race([answer, new Promise((resolve) => setTimeout(() => resolve(-1), 10000))]);
"""
# A tab that has long been hidden has timers once a minute: here none.
HIDDEN = """
Object.defineProperty(document, "hidden", { value: true });
performance.now = () => 1e6;
window.setTimeout = () => 0;
"""
PROGRESS = "/^step|^decoding/.test(document.getElementById('phase').textContent)"


def open_tabs(browser, address, count, script=""):
    """Their handles; the last one is looked at."""
    tabs = []
    for i in range(count):
        if i > 0:
            browser.new_tab()
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=script)
        opened(browser, address)
        tabs += [tab for tab in browser.command("tabs") if tab not in tabs]
    return tabs


def close_tabs(browser, tabs):
    """All but the first."""
    for tab in tabs[1:]:
        browser.command("switch", handle=tab)
        browser.close_tab()
    browser.command("switch", handle=tabs[0])


def order(browser, steps, side="64"):
    for name, text in (("prompt", "in tabs"), ("steps", steps), ("n", "1"), ("width", side), ("height", side)):
        set_value(browser, name, text)
    browser.click("#make")


def leaves_room_for_requests(browser, server):
    """Eight tabs, of which each shows the progress and the picture: a browser opens six connections."""
    tabs = open_tabs(browser, server.address, 8, NO_LOCKS)
    before = gallery(browser)
    order(browser, "200", "256")
    for tab in tabs:
        browser.command("switch", handle=tab)
        browser.wait_until(PROGRESS, 20)
        waited = browser.run_async(ANSWERS)
        assert 0 <= waited < 5000, f"a tab waits for the others: {waited} ms"
    browser.click("#cancel")
    idle(browser)
    order(browser, "3")
    for tab in tabs:
        browser.command("switch", handle=tab)
        browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}", 20)
        idle(browser)
    close_tabs(browser, tabs)


def reads_in_one_tab(browser, server, script=""):
    """Orders in the second of two tabs, which then reads. The tabs, and how many pictures there were."""
    tabs = open_tabs(browser, server.address, 2, script)
    before = gallery(browser)
    order(browser, "80", "256")
    browser.wait_until(PROGRESS)
    return tabs, before


def goes_on_when_the_reader_is_closed(browser, server):
    tabs, before = reads_in_one_tab(browser, server)
    browser.close_tab()
    browser.command("switch", handle=tabs[0])
    step = browser.run("return document.getElementById('phase').textContent")
    browser.wait_until(f"document.getElementById('phase').textContent !== {step!r}", 5)
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}")
    idle(browser)


def goes_on_when_the_reader_falls_asleep(browser, server):
    """A minute passes, by the clock of the other tab."""
    later = "const now = Date.now; Date.now = () => now() + (window.passed ?? 0);"
    tabs, before = reads_in_one_tab(browser, server, later)
    browser.devtools("Page.setWebLifecycleState", state="frozen")
    browser.command("switch", handle=tabs[0])
    browser.run("window.passed = 90e3")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}", 40)
    idle(browser)
    close_tabs(browser, tabs)


def collects_while_it_is_hidden(browser, server):
    """However many jobs there are: none waits for a timer."""
    opened(browser, server.address)
    browser.run(HIDDEN)
    for name, text in (("prompt", "hidden"), ("steps", "2"), ("n", "1"), ("width", "64"), ("height", "64")):
        set_value(browser, name, text)
    for count in range(1, 4):
        browser.run("document.getElementById('make').click()")
        browser.wait_until(f"document.querySelectorAll('#gallery img').length === {count}", 10)


def catches_up_after_sleep(browser, server):
    """Back leads to a page that the browser kept while another tab ordered and deleted."""
    tabs = open_tabs(browser, server.address, 2, MAY_SLEEP)
    browser.command("switch", handle=tabs[0])
    for _ in range(2):
        before = gallery(browser)
        order(browser, "3")
        browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}")
        idle(browser)
    browser.run("window.isAsleep = true; dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    names = "return [...document.querySelectorAll('#gallery li')].map((one) => one.querySelector('img').alt)"
    browser.command("switch", handle=tabs[1])
    before = gallery(browser)
    order(browser, "3")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before + 1}")
    idle(browser)
    for _ in range(2):
        browser.run("document.querySelector('#gallery li:last-child button').click()")
        browser.wait_until("document.getElementById('shown').open && history.state !== null")
        browser.run("document.getElementById('forget').click()")
        browser.wait_until("!document.getElementById('shown').open && history.state === null")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before - 1}")
    expected = browser.run(names)
    browser.command("switch", handle=tabs[0])
    time.sleep(4)  # it asks the server each three seconds
    assert gallery(browser) == before, "it hears the other tab"
    browser.run("window.isAsleep = false; dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    browser.wait_until(f"document.querySelectorAll('#gallery img').length === {before - 1}", 10)
    assert browser.run(names) == expected
    close_tabs(browser, tabs)

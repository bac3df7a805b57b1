"""A headless browser as a person uses it: Chromium, Firefox or WebKitGTK."""

import base64
import time

from webdriver import ELEMENT, ENGINES

KEYS = {"control": "\ue009", "enter": "\ue007", "tab": "\ue004", "escape": "\ue00c", "shift": "\ue008", "left": "\ue012",
        "right": "\ue014", "down": "\ue015"}


class Browser:
    def __init__(self, width=1200, height=900, dark=False, engine="chromium"):
        self.engine = engine
        self._driver = ENGINES[engine](width, height, dark)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._driver.close()

    def command(self, name, element=None, **body):
        return self._driver.command(name, element, **body)

    def open(self, address):
        self.command("open", url=address)

    def refresh(self):
        self.command("refresh")

    def back(self):
        """As the button of the browser, or the gesture on phones."""
        self.command("back")

    def find(self, css):
        found = self.command("find", using="css selector", value=css)
        return found[ELEMENT]

    def _reach(self, css):
        """The element, where nothing lies over it: WebKit scrolls what is used below the page's sticky button."""
        if self.engine == "webkit":
            self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", css)
        return self.find(css)

    def click(self, css):
        self.command("click", self._reach(css))

    def type(self, css, text):
        self.command("type", self._reach(css), text=text)

    def clear(self, css):
        self.command("clear", self._reach(css))

    def _pointer(self, kind, element, points, name=None):
        moves = [{"type": "pointerMove", "duration": 20, "origin": {ELEMENT: element}, "x": x, "y": y} for x, y in points]
        return {"type": "pointer", "id": name or kind, "parameters": {"pointerType": kind},
                "actions": [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]}

    def drag(self, css, points, kind="mouse"):
        """Presses at the first point, releases at the last; points are relative to the element's centre."""
        self.command("actions", actions=[self._pointer(kind, self.find(css), points)])

    def double_click(self, css):
        pointer = self._pointer("mouse", self.find(css), [(0, 0)])
        pointer["actions"] += pointer["actions"][1:]
        self.command("actions", actions=[pointer])

    def pinch(self, css, before, after):
        """Two fingers, each from a point to another, relative to the element's centre."""
        element = self.find(css)
        self.command("actions", actions=[self._pointer("touch", element, points, f"finger{i}")
                                         for i, points in enumerate(zip(before, after))])

    def press(self, *keys):
        """Types into the focused element; in a list, all keys but the last are held while it is pressed."""
        events = []
        for key in keys:
            held, rest = (key[:-1], key[-1]) if isinstance(key, list) else ([], key)
            events += [{"type": "keyDown", "value": one} for one in (*held, rest)]
            events += [{"type": "keyUp", "value": one} for one in (rest, *held)]
        self.command("actions", actions=[{"type": "key", "id": "keys", "actions": events}])

    def devtools(self, command, **parameters):
        """A command of the DevTools protocol, as chromedriver passes it on."""
        return self._driver.devtools(command, parameters)

    def new_tab(self):
        """Opens a tab and looks at it; returns a function that goes back."""
        before = self.command("tabs")
        made = self.command("new_tab", type="tab")["handle"]
        self.command("switch", handle=made)
        return lambda handle=before[0]: self.command("switch", handle=handle)

    def close_tab(self):
        self.command("close_tab")

    def focused(self):
        """The focused element's id, or its text where it has none."""
        return self.run("const one = document.activeElement; return one.id || one.getAttribute('aria-label') || one.textContent")

    def role(self, css):
        return self.command("role", self.find(css))

    def label(self, css):
        return self.command("label", self.find(css))

    def run(self, script, *arguments):
        return self.command("run", script=script, args=list(arguments))

    def run_async(self, script, *arguments):
        """The value of an async function's body; modules can be imported there, relative to the page."""
        answer = self.command("run_async", args=list(arguments), script=f"""
            const done = arguments[arguments.length - 1];
            (async (...arguments) => {{ {script} }})(...arguments).then((value) => done({{ value }}),
                (error) => done({{ error: `${{error}}` }}));""")
        assert "error" not in answer, answer
        return answer.get("value")

    def wait_until(self, script, seconds=60):
        until = time.monotonic() + seconds
        while not self.run(f"return {script}"):
            assert time.monotonic() < until, f"never: {script}; {self.complaints()}"
            time.sleep(0.05)

    def complaints(self):
        """Errors and warnings in the console."""
        return self._driver.complaints()

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.command("screenshot")))

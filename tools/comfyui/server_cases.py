"""Generate (Braid server), over a server of the bundled model."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from checkout import Failure
from PIL import Image
from session import Case, here
from workflows import Workflow

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "serve"))
from running import Server  # noqa: E402

PROMPT = "a red circle on a blue background"


def pixels(file):
    with Image.open(file) as picture:
        return np.asarray(picture.convert("RGB"))


class Generates(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(here.braid, "--no-key").wait_until_ready()
        cls.addClassCleanup(cls.server.__exit__)

    def flow(self, name="server", **values):
        given = {"server": self.server.address, "prompt": PROMPT, "width": 64, "height": 64, "steps": 4, "seed": 5, "batch": 1}
        flow = Workflow()
        images = flow.add("BraidGenerate", **{**given, **values})
        flow.add("SaveImage", images=images, filename_prefix=name)
        return flow.nodes

    def pictures(self, name, **values):
        before = set((here.base / "output").glob(f"{name}_*.png"))
        here.comfy.run(self.flow(name, **values))
        return [pixels(file) for file in sorted(set((here.base / "output").glob(f"{name}_*.png")) - before)]

    def generated(self, *flags):
        file = here.base / "wanted.png"
        subprocess.run([here.braid, "generate", PROMPT, "--size", "64x64", "--steps", "4", *flags, "-o", file],
                       check=True, capture_output=True)
        return pixels(file)

    def refused(self, *words, **values):
        with self.assertRaises(Failure) as caught:
            here.comfy.run(self.flow(**values))
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_pictures_are_those_of_generate(self):
        first, second = self.pictures("several", batch=2)
        np.testing.assert_array_equal(first, self.generated("--seed", "5"))
        np.testing.assert_array_equal(second, self.generated("--seed", "6"))

    def test_a_picture_to_start_from(self):
        Image.fromarray(np.full((64, 64, 3), 90, np.uint8)).save(here.base / "input" / "grey.png")
        flow = Workflow()
        flow.nodes = self.flow("started", strength=0.5)
        flow.nodes["1"]["inputs"]["image"] = flow.add("LoadImage", image="grey.png")
        here.comfy.run(flow.nodes)
        made = pixels(max((here.base / "output").glob("started_*.png")))
        wanted = self.generated("--seed", "5", "--init", str(here.base / "input" / "grey.png"), "--strength", "0.5")
        np.testing.assert_array_equal(made, wanted)

    def test_a_mask_of_what_is_redrawn(self):
        grey, mask = (here.base / "input" / name for name in ("start.png", "mask.png"))
        Image.fromarray(np.full((64, 64, 3), 90, np.uint8)).save(grey)
        hole = np.zeros((64, 64), np.uint8)
        hole[20:, 30:] = 255
        Image.fromarray(hole).convert("RGB").save(mask)
        flow = Workflow()
        flow.nodes = self.flow("masked", strength=1.0)
        flow.nodes["1"]["inputs"]["image"] = flow.add("LoadImage", image=grey.name)
        flow.nodes["1"]["inputs"]["mask"] = flow.add("LoadImageMask", image=mask.name, channel="red")
        here.comfy.run(flow.nodes)
        made = pixels(max((here.base / "output").glob("masked_*.png")))
        wanted = self.generated("--seed", "5", "--init", str(grey), "--mask", str(mask), "--strength", "1")
        np.testing.assert_array_equal(made, wanted)

    def test_what_is_transparent_is_a_mask(self):
        flow = Workflow()
        flow.nodes = self.flow("opaque")
        shown = flow.add("MaskToImage", mask=["1", 1])
        flow.add("SaveImage", images=shown, filename_prefix="transparent")
        here.comfy.run(flow.nodes)
        np.testing.assert_array_equal(pixels(max((here.base / "output").glob("transparent_*.png"))), np.zeros((64, 64, 3)))

    def test_warnings_are_in_the_log(self):
        self.pictures("warned", negative_prompt="a star")
        self.assertIn("Braid: the negative prompt is not used", here.comfy.log.read_text(errors="replace"))
        (guided,) = self.pictures("guided", negative_prompt="a star", true_cfg=2.0)
        np.testing.assert_array_equal(guided, self.generated("--seed", "5", "--negative-prompt", "a star", "--true-cfg", "2"))

    def test_an_interruption_cancels_the_job(self):
        prompt = here.comfy.post(self.flow(steps=200, width=256, height=256))
        self.assert_soon(lambda: self.server.json("GET", "/v1/status")["running"] == 1)
        asked = time.monotonic()
        here.comfy.ask("POST", "/interrupt", {})
        with self.assertRaisesRegex(Failure, "interrupted"):
            here.comfy.wait(prompt)
        self.server.wait_until_idle(10)
        self.assertLess(time.monotonic() - asked, 10)
        self.assertIn(b"cancelled", self.server.ask("GET", "/metrics")[2])

    def test_a_batch_to_start_from_is_refused(self):
        flow = Workflow()
        flow.nodes = self.flow()
        grey, white = (flow.add("EmptyImage", width=64, height=64, batch_size=1, color=color) for color in (0x808080, 0xFFFFFF))
        flow.nodes["1"]["inputs"]["image"] = flow.add("ImageBatch", image1=grey, image2=white)
        with self.assertRaisesRegex(Failure, "^image should be one picture to start from, a batch of 2 was given"):
            here.comfy.run(flow.nodes)

    def test_what_is_refused(self):
        self.refused("no server answers at http://127.0.0.1:9", server="http://127.0.0.1:9")
        for address in ("ftp://nowhere", "http://127.0.0.1:none", "http://no where/", "http://[::1"):
            self.refused("server should be an address", server=address)
        self.refused("multiples of 16", width=72)
        self.refused("both be given", width=0)
        self.refused("at most 4194304 pixels here", width=16384, height=16384)
        self.refused("without a user and password", server="http://ink:secret@127.0.0.1")
        self.refused("8188 is ComfyUI's usual port", server=f"http://127.0.0.1:{here.comfy.port}")
        self.refused("ink", lora="ink=1")
        for scale in ("much", "nan"):
            self.refused(f"'ink={scale}' is not", lora=f"ink={scale}")
        self.refused("nothing like it", model="nothing like it")

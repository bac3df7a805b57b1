"""Braid's nodes in a real ComfyUI: python check_nodes.py COMFYUI BRAID PYTHON [unittest's arguments]

COMFYUI is a checkout, BRAID the program, PYTHON the interpreter that has braid_engine. Run by ./check --comfyui.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import examples
import tiny
import torch
from checkout import Checkout, Failure
from coded_cases import Coded
from jobs import FLUX1, FLUX2, QWEN, ZIMAGE
from qwen_image_cases import QwenImage
from refusal_cases import Refused
from server_cases import Generates
from session import Case, changed, here, with_components
from workflows import BRAID, Workflow, drawn, latents

__all__ = ["Coded", "Generates", "QwenImage", "Refused"]

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "models" / "published"

SHAPES = {
    "flux1": tiny.Flux1(),
    "schnell": tiny.Flux1(has_guidance=False, published="FLUX.1-schnell"),
    "fill": tiny.Flux1(channels=384, published="FLUX.1-Fill-dev"),
    "flux2": tiny.Flux2(),
    "zimage": tiny.ZImage(),
    "qwen": tiny.QwenImage(),
    "edit2511": tiny.QwenImage(is_at_zero=True),
    "layered": tiny.QwenImage(is_layered=True),
}


def make_base(folder):
    """ComfyUI's folder: models, Braid's nodes and the tests'."""
    models = folder / "models" / "diffusion_models"
    for seed, (name, shape) in enumerate(SHAPES.items()):
        tiny.make_model(shape, models / f"{name}.safetensors", seed, torch.bfloat16 if name == "zimage" else torch.float32,
                        "model.diffusion_model." if name == "schnell" else "")
        if shape.published is not None:
            tiny.make_components(shape, PUBLISHED, folder / "components" / name)
    tiny.make_qwen_components(SHAPES["qwen"], folder / "components" / "qwen-given")
    nodes = folder / "custom_nodes"
    nodes.mkdir()
    (nodes / "braid").symlink_to(ROOT / "comfyui")
    (nodes / "braid_tests").symlink_to(ROOT / "tools" / "comfyui" / "nodes")
    (folder / "input").mkdir()
    h, loras = SHAPES["flux1"].hidden, folder / "models" / "loras"
    tiny.make_lora([("lora_unet_double_blocks_0_img_attn_qkv", 3 * h, h), ("lora_unet_single_blocks_1_linear1", 7 * h, h),
                    ("lora_unet_double_blocks_1_txt_mlp_0", 4 * h, h)], loras / "kohya.safetensors", 1)
    tiny.make_lora([("transformer.transformer_blocks.0.attn.to_q!", h, h), ("transformer.transformer_blocks.0.attn.to_v!", h, h),
                    ("transformer.transformer_blocks.1.ff.net.0.proj!", 4 * h, h), ("transformer.norm_out.linear!", 2 * h, h),
                    ("transformer.single_transformer_blocks.0.proj_mlp!", 4 * h, h),
                    ("transformer.single_transformer_blocks.0.proj_out!", h, 5 * h)], loras / "diffusers.safetensors", 2)
    tiny.make_lora([("diffusion_model.double_blocks.0.img_attn.proj", h, h), ("diffusion_model.img_in", h, 64)],
                   loras / "plain.safetensors", 3)
    h = SHAPES["zimage"].hidden
    tiny.make_lora([("diffusion_model.layers.0.attention.to_k!", h, h), ("diffusion_model.layers.0.feed_forward.w1!", h * 8 // 3, h)],
                   loras / "zimage.safetensors", 4)
    h = SHAPES["qwen"].hidden
    tiny.make_lora([("transformer_blocks.0.attn.to_k!", h, h), ("transformer_blocks.1.attn.add_v_proj!", h, h),
                    ("transformer_blocks.0.img_mlp.net.0.proj!", 4 * h, h), ("transformer_blocks.1.txt_mod.1!", 6 * h, h),
                    ("transformer_blocks.1.attn.to_out.0!", h, h), ("norm_out.linear!", 2 * h, h)],
                   loras / "qwen-plain.safetensors", 5)
    tiny.make_lora([("transformer.transformer_blocks.0.attn.to_q", h, h), ("transformer.img_in", h, 64)],
                   loras / "qwen-diffusers.safetensors", 6)
    tiny.make_lora([("lora_unet_transformer_blocks_0_attn_to_add_out", h, h),
                    ("lora_unet_transformer_blocks_1_img_mlp_net_2", h, 4 * h)], loras / "qwen-kohya.safetensors", 7)
    tiny.make_lora([("diffusion_model.transformer_blocks.1.attn.to_v", h, h)], loras / "qwen-comfy.safetensors", 8)
    tiny.make_lora([("diffusion_model.img_in", SHAPES["flux1"].hidden, 64)], loras / "dora.safetensors", 9, has_magnitude=True)


class Equals(Case):
    """ComfyUI's own sampling, with the same weights."""

    def test_flux1(self):
        self.assert_equals_comfy(changed(FLUX1, guidance=2.5), "flux1")

    def test_flux1_with_true_guidance_several_pictures_and_an_odd_size(self):
        self.assert_equals_comfy(changed(FLUX1, cfg=3.0, batch=2, width=136, height=104), "flux1")

    def test_schnell_with_the_prefix_of_checkpoints(self):
        self.assert_equals_comfy(FLUX1, "schnell")

    def test_fill_with_what_lies_beside_the_latents(self):
        self.assert_equals_comfy(changed(FLUX1, guidance=30.0), "fill")

    def test_a_guidance_function_that_asks_the_model(self):
        renorm = (("RenormCFG", {"cfg_trunc": 100.0, "renorm_cfg": 1.0}),)
        for job, name, mark in ((FLUX1, "flux1", None), (QWEN, "qwen", None), (ZIMAGE, "zimage", "ZImage")):
            if mark is None or mark in here.known:
                with self.subTest(name=name):
                    self.assert_equals_comfy(changed(job, cfg=3.0, faults=renorm), name)

    def test_references(self):
        for method in (None, "index", "uxo/uno", "offset"):
            with self.subTest(method=method):
                self.assert_equals_comfy(changed(FLUX1, references=((64, 96), (128, 64)), method=method), "flux1")

    def test_residuals_of_controlnets(self):
        plain = drawn(here.comfy, with_components(FLUX1, "flux1"))
        made = self.assert_equals_comfy(changed(FLUX1, control=SHAPES["flux1"].hidden), "flux1")
        self.assertGreater((made - plain).abs().max().item(), 1e-2)
        job = changed(FLUX1, control=SHAPES["flux1"].hidden, batch=2, references=((64, 96),))
        self.assert_equals_comfy(job, "flux1")
        self.assert_equals_comfy(changed(job, devices="cpu,cpu", split="ring=2"), "flux1")
        self.assert_equals_comfy(changed(job, devices="cpu,cpu", split="pp=2"), "flux1")

    def test_scaled_and_shifted_positions(self):
        self.needs("ScaleROPE")
        rope = {"scale_x": 0.5, "shift_x": 1.0, "scale_y": 2.0, "shift_y": 3.0, "scale_t": 1.0, "shift_t": 1.0}
        self.assert_equals_comfy(changed(FLUX1, faults=(("ScaleROPE", rope),)), "flux1")

    def test_zimage(self):
        self.needs("ZImage")
        self.assert_equals_comfy(changed(ZIMAGE, cfg=2.0, tokens=40), "zimage")

    def test_zimage_with_an_odd_size_and_several_pictures(self):
        self.needs("ZImage")
        self.assert_equals_comfy(changed(ZIMAGE, batch=2, width=136, height=104), "zimage")

    def test_flux2_with_references(self):
        self.needs("Flux2")
        self.assert_equals_comfy(FLUX2, "flux2")
        self.assert_equals_comfy(changed(FLUX2, references=((64, 96), (128, 64))), "flux2")

    def test_layouts(self):
        for split in ("tp=2", "ring=2", "ulysses=2", "pp=2", "auto"):
            with self.subTest(split=split):
                self.assert_equals_comfy(changed(FLUX1, devices="cpu,cpu", split=split), "flux1")

    def test_layouts_of_zimage(self):
        self.needs("ZImage")
        for split in ("tp=3", "ring=2", "ulysses=3", "pp=2", "auto"):
            with self.subTest(split=split):
                devices = ",".join(["cpu"] * (3 if "3" in split else 2))
                self.assert_equals_comfy(changed(ZIMAGE, devices=devices, split=split), "zimage")

    def test_the_first_api(self):
        job = with_components(FLUX1, "flux1")
        self.assertTrue(torch.equal(drawn(here.comfy, job, "BraidLoadModelFirst"), drawn(here.comfy, job)))

    def declared(self, prompts):
        classes = {node["class_type"] for prompt in prompts for node in prompt.values()}
        return {name: here.comfy.ask("GET", f"/object_info/{name}")[name] for name in classes}

    def test_the_examples_name_inputs_that_there_are(self):
        prompts = {file.name: examples.read(file) for file in examples.files(examples.PROMPTS)}
        declared = self.declared(prompts.values())
        self.assertEqual(len(prompts), 2)
        for file, prompt in prompts.items():
            for node in prompt.values():
                known = declared[node["class_type"]]["input"]
                self.assertLessEqual(set(node["inputs"]), {*known["required"], *known.get("optional", {})}, file)
                self.assertLessEqual(set(known["required"]), set(node["inputs"]), file)

    def test_the_examples_are_graphs_of_the_same_prompts(self):
        listed = here.comfy.ask("GET", "/workflow_templates")["braid"]
        self.assertEqual(sorted(listed), [file.stem for file in examples.files(examples.PROMPTS)])
        for file in examples.files(examples.GRAPHS):
            graph, prompt = examples.read(file), examples.read(examples.PROMPTS / file.name)
            declared = self.declared([prompt])
            self.assertEqual(graph["version"], 0.4)
            examples.check_links(graph)
            made = examples.prompt_of(graph, declared)
            self.assertEqual(made.keys(), prompt.keys())
            for name, node in prompt.items():
                kind = node["class_type"]
                usual = {given: options.get("default") for given, _, options in examples.inputs_of(declared[kind])}
                unset = {given: usual[given] for given in made[name]["inputs"].keys() - node["inputs"].keys()}
                self.assertEqual(made[name], {"class_type": kind, "inputs": {**unset, **node["inputs"]}}, file)

    def test_the_plan_is_text(self):
        flow = Workflow()
        flow.add("PreviewAny", source=[flow.model(with_components(FLUX1, "flux1"), BRAID)[0], 1])
        (shown,) = [out["text"] for out in here.comfy.run(flow.nodes).values() if "text" in out]
        self.assertIn("per step", shown[0])
        self.assertIn("cpu", shown[0])


class Loras(Case):
    """ComfyUI's loader, which keeps ComfyUI's names of weights."""

    def check(self, loras, job=FLUX1, name="flux1"):
        plain = drawn(here.comfy, with_components(job, name))
        made = self.assert_equals_comfy(changed(job, loras=loras), name)
        self.assertGreater((made - plain).abs().max().item(), 1e-2, "the LoRA changes nothing")

    def test_every_spelling(self):
        self.check((("kohya.safetensors", 0.7),))
        self.check((("diffusers.safetensors", 1.0),))
        self.check((("plain.safetensors", -0.5),))

    def test_spellings_of_zimage(self):
        self.needs("ZImage")
        self.check((("zimage.safetensors", 1.0),), ZIMAGE, "zimage")

    def test_every_spelling_of_qwen_image(self):
        for spelling in ("plain", "diffusers", "kohya", "comfy"):
            with self.subTest(spelling=spelling):
                self.check(((f"qwen-{spelling}.safetensors", 0.7),), QWEN, "qwen")

    def test_several_at_once(self):
        self.check((("kohya.safetensors", 0.7), ("plain.safetensors", 0.5), ("diffusers.safetensors", -0.25), ("plain.safetensors", 0.25)))

    def test_two_strengths_in_one_workflow(self):
        job = with_components(FLUX1, "flux1")
        strong, weak = (changed(job, loras=(("kohya.safetensors", strength),)) for strength in (1.0, 0.2))
        wanted = [drawn(here.comfy, one, "comfy", "wanted") for one in (strong, weak)]
        here.comfy.run(Workflow().draw(strong, BRAID, "strong").draw(weak, BRAID, "weak").nodes)
        for name, latent in zip(("strong", "weak"), wanted):
            self.assert_close(latents(here.comfy, name), latent)


class Memory(Case):
    def test_is_managed_by_comfyui(self):
        script = Path(__file__).with_name("memory.py")
        done = subprocess.run([sys.executable, "-B", str(script), here.checkout], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])


class Life(Case):
    """Braid's processes: begun, interrupted, unloaded, killed."""

    def setUp(self):
        self.free(free_memory=True)

    def test_two_models_have_two_processes(self):
        jobs = [(with_components(FLUX1, "flux1"), "first"), (with_components(QWEN, "qwen"), "second")]
        wanted = [drawn(here.comfy, job, "comfy", "wanted") for job, _ in jobs]
        flow = Workflow()
        for job, name in jobs:
            flow.draw(job, BRAID, name)
        here.comfy.run(flow.nodes)
        self.assertEqual(len(self.workers()), 2)
        for (_, name), latent in zip(jobs, wanted):
            self.assert_close(latents(here.comfy, name), latent)

    def test_unloading_ends_the_process_and_the_next_run_starts_another(self):
        job = with_components(FLUX1, "flux1")
        before = drawn(here.comfy, job)
        self.assertEqual(len(self.workers()), 1)
        self.free()
        self.assertEqual((drawn(here.comfy, changed(job, steps=3, tokens=8)) - before).abs().max().item() > 0, True)
        self.assertTrue(torch.equal(drawn(here.comfy, job), before))

    def test_an_interruption_keeps_the_process(self):
        job = with_components(FLUX1, "flux1")
        before = drawn(here.comfy, job)
        kept = self.workers()
        prompt = here.comfy.post(Workflow().draw(changed(job, steps=2000), BRAID, "never").nodes)
        time.sleep(1.5)
        asked = time.monotonic()
        here.comfy.ask("POST", "/interrupt", {})
        with self.assertRaisesRegex(Failure, "interrupted"):
            here.comfy.wait(prompt)
        self.assertLess(time.monotonic() - asked, 5)
        self.assertEqual(self.workers(), kept)
        self.assertTrue(torch.equal(drawn(here.comfy, changed(job, faults=(("TestFault", {"kind": "none"}),))), before))

    def test_a_callback_that_raises_loses_nothing(self):
        job = with_components(FLUX1, "flux1")
        before = drawn(here.comfy, job)
        kept = self.workers()
        self.assert_refused(changed(job, faults=(("TestFault", {"kind": "raise"}),)), "a callback of the tests raises")
        self.assertEqual(self.workers(), kept)
        self.assertTrue(torch.equal(drawn(here.comfy, changed(job, faults=(("TestFault", {"kind": "none"}),))), before))

    def test_a_killed_process_is_named_and_replaced(self):
        job = with_components(FLUX1, "flux1")
        before = drawn(here.comfy, job)
        prompt = here.comfy.post(Workflow().draw(changed(job, steps=2000), BRAID, "never").nodes)
        time.sleep(1.5)
        (worker,) = self.workers()
        os.kill(worker, signal.SIGKILL)
        with self.assertRaisesRegex(Failure, "Braid's process was ended by signal 9"):
            here.comfy.wait(prompt)
        self.assertEqual(self.workers(), [])  # not even a zombie
        self.assertTrue(torch.equal(drawn(here.comfy, changed(job, faults=(("TestFault", {"kind": "none"}),))), before))


def main():
    here.checkout, here.braid, here.python = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="braid-comfyui-") as folder:
        here.base = Path(folder)
        make_base(here.base)
        with Checkout(here.checkout, here.base, {"BRAID_PYTHON": here.python}) as here.comfy:
            here.known = {*here.comfy.ask("GET", "/braid_tests/known"), *here.comfy.ask("GET", "/object_info")}
            done = unittest.main(argv=[sys.argv[0], *sys.argv[4:]], exit=False).result
        for test, reason in done.skipped:
            print(f"not run: {test.id().rpartition('.')[2]}: {reason}")
        if not done.wasSuccessful():
            print(here.comfy.log.read_text(errors="replace")[-20000:], file=sys.stderr)
    sys.exit(0 if done.wasSuccessful() else 1)


if __name__ == "__main__":
    main()

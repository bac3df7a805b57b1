"""What Load Model (Braid) refuses."""

import shutil
import struct

import torch
from checkout import Failure
from jobs import FLUX1, QWEN, ZIMAGE
from safetensors.torch import save_file
from session import Case, changed, here, with_components
from workflows import BRAID, Workflow, drawn


class Refused(Case):
    """One sentence each, and no process is left."""

    def test_patches_that_reach_inside_are_named(self):
        job = with_components(FLUX1, "flux1")
        for kind, name in (("attention", "attn1_patch"), ("replace", "dit"), ("object", "diffusion_model.img_in"),
                           ("hook", "diffusion_model.img_in.weight")):
            with self.subTest(kind=kind):
                self.assert_refused(changed(job, faults=(("TestFault", {"kind": kind}),)), name, "reaches inside the model")

    def test_merges_are_named(self):
        job = with_components(FLUX1, "flux1")
        self.assert_refused(changed(job, faults=(("TestMerge", {"kind": "into"}),)), "diffusion_model.img_in.weight", "merges of models")
        self.assert_refused(changed(job, faults=(("TestMerge", {"kind": "from"}),)), "'img_in'", "reaches inside the model")

    def test_an_adapter_that_comfyui_applies_otherwise(self):
        self.assert_refused(changed(with_components(FLUX1, "flux1"), loras=(("dora.safetensors", 1.0),)), "img_in", "DoRA")

    def test_a_mask_and_scaled_positions_of_zimage(self):
        self.needs("ZImage", "ScaleROPE")
        job = with_components(ZIMAGE, "zimage")
        rope = {"scale_x": 0.5, "shift_x": 1.0, "scale_y": 2.0, "shift_y": 3.0, "scale_t": 1.0, "shift_t": 1.0}
        self.assert_refused(changed(job, masked=2), "takes no 'attention_mask'")
        self.assert_refused(changed(job, faults=(("ScaleROPE", rope),)), "takes no 'rope_options'")

    def test_guidance_that_is_left_out(self):
        job = with_components(FLUX1, "flux1")
        flow = Workflow().draw(job, BRAID, "never")
        for node in [node for node in flow.nodes.values() if node["class_type"] == "KSampler"]:
            node["inputs"]["positive"] = flow.add("FluxDisableGuidance", conditioning=node["inputs"]["positive"])
        with self.assertRaisesRegex(Failure, "^the node FluxDisableGuidance leaves out a scale .* own loader$"):
            here.comfy.run(flow.nodes)

    def test_another_dtype_and_saving(self):
        """Which would change nothing, and write tensors without numbers."""
        job = with_components(FLUX1, "flux1")
        plain = drawn(here.comfy, job)
        self.assert_refused(changed(job, faults=(("ModelComputeDtype", {"dtype": "bf16"}),)), "ModelComputeDtype", "an input dtype")
        default = drawn(here.comfy, changed(job, faults=(("ModelComputeDtype", {"dtype": "default"}),)))
        self.assertTrue(torch.equal(default, plain))
        flow = Workflow()
        flow.add("ModelSave", model=flow.model(job, BRAID), filename_prefix="saved")
        with self.assertRaisesRegex(Failure, "^ComfyUI cannot save a model whose weights are in Braid's process"):
            here.comfy.run(flow.nodes)
        self.assertEqual(list((here.base / "output").rglob("saved_*")), [])

    def test_a_comfyui_of_another_age(self):
        job = changed(with_components(FLUX1, "flux1"), faults=(("TestAge", {}),))
        self.assert_refused(job, "has no comfy.patcher_extension.WrapperExecutor", "0.3.64")

    def test_models_that_are_not_braids(self):
        models = here.base / "models" / "diffusion_models"
        save_file({"caption_projection.0.linear.weight": torch.zeros(8, 8)}, models / "hidream.safetensors")
        save_file({"nothing.weight": torch.zeros(8, 8)}, models / "nothing.safetensors")
        self.assert_refused(changed(FLUX1, file="hidream.safetensors"), "'hidream'", "FLUX.1, FLUX.2, Z-Image and Qwen-Image")
        self.assert_refused(changed(FLUX1, file="nothing.safetensors"), "no model that this ComfyUI knows")

    def test_models_that_this_comfyui_would_draw_otherwise(self):
        newer = {"flux2": (FLUX1, "Flux2", "FLUX.2"), "zimage": (ZIMAGE, "ZImage", "Z-Image"),
                 "edit2511": (QWEN, "default_ref_method", "Qwen-Image-Edit-2511"),
                 "layered": (QWEN, "use_additional_t_cond", "Qwen-Image-Layered")}
        lacking = {name: rest for name, rest in newer.items() if rest[1] not in here.known}
        if not lacking:
            self.skipTest("this ComfyUI knows all models that Braid's node takes")
        for name, (job, _, model) in lacking.items():
            with self.subTest(model=model):
                self.assert_refused(with_components(job, name), f"this file is {model}, which this ComfyUI does not know")

    def test_devices_and_splits(self):
        job = with_components(FLUX1, "flux1")
        before = self.workers()  # of models that ComfyUI still holds, or no more
        self.assert_refused(changed(job, devices="cuda:7"), "there is no device 'cuda:7' here", "cpu")
        self.assert_refused(changed(job, devices="cpu,cpu", split="tp=3"), "tp=3")
        self.assert_refused(changed(job, devices="cpu,cpu", split="sideways"), "split should be auto, or degrees", "sideways")
        self.assert_refused(changed(job, devices="cpu,cpu,cpu", split="tp=3"), "tp")
        self.assertLessEqual(set(self.workers()), set(before))

    def test_files(self):
        models = here.base / "models" / "diffusion_models"
        (models / "text.safetensors").write_text("this is no model", encoding="utf-8")
        data = (models / "flux1.safetensors").read_bytes()
        (models / "cut.safetensors").write_bytes(data[: len(data) // 2])
        (models / "cut.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 5, 0))
        (models / "huge.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + data[8:])
        for name in ("text.safetensors", "cut.gguf", "huge.safetensors"):
            self.assert_refused(changed(FLUX1, file=name), name, "its header is not")
        self.assert_refused(changed(with_components(FLUX1, "flux1"), file="cut.safetensors"), "cut.safetensors")
        self.assert_refused(FLUX1)  # whose shapes nobody published

    def test_values_that_an_inputs_list_does_not_have(self):
        """By ComfyUI, or by Braid where ComfyUI does not compare: 0.3.64 in the API of version 3, all versions behind links."""
        job = with_components(FLUX1, "flux1")
        none = changed(job, file="none.safetensors")
        for loader, sentence in ((BRAID, "not in list|there is no none.safetensors"), (f"{BRAID}First", "not in list")):
            with self.assertRaisesRegex(Failure, sentence):
                drawn(here.comfy, none, loader)
        for name, value in (("weight_form", "int9"), ("offload", "model"), ("dtype", "float7")):
            own = f"^{name} should be one of .*, it is '{value}'$"
            flow = Workflow()
            linked = {**job.more, name: flow.add("TestChoice", value=value)}
            with self.subTest(name=name):
                with self.assertRaisesRegex(Failure, f"'{value}' not in|{own}"):
                    drawn(here.comfy, changed(job, more={**job.more, name: value}))
                with self.assertRaisesRegex(Failure, own):
                    here.comfy.run(flow.draw(changed(job, more=linked), BRAID, "never").nodes)

    def test_a_gone_file(self):
        models = here.base / "models" / "diffusion_models"
        shutil.copy(models / "flux1.safetensors", models / "gone.safetensors")
        job = changed(with_components(FLUX1, "flux1"), file="gone.safetensors")
        drawn(here.comfy, job)
        self.free(free_memory=True)
        (models / "gone.safetensors").unlink()
        with self.assertRaises(Failure):
            drawn(here.comfy, job)
        self.assertEqual(self.workers(), [])

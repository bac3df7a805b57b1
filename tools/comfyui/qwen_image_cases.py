"""Qwen-Image, its Edit models and Layered against ComfyUI's own sampling."""

import torch
from jobs import QWEN
from session import Case, changed, here, with_components
from workflows import drawn

EDIT, EDIT_PLUS = ((64, 96),), ((64, 96), (128, 64))  # references' sizes in pixels
LARGER = ((320, 192),)  # than the picture, so that the published pipelines would place the text elsewhere
ONE_AND_MORE = (("cpu", "auto"), ("cpu,cpu", "tp=2"), ("cpu,cpu", "ring=2"))
AT_ZERO = "index_timestep_zero"


class QwenImage(Case):
    def given(self):
        return {"components": str(here.base / "components" / "qwen-given")}

    def test_text_to_picture(self):
        for devices, split in (*ONE_AND_MORE, ("cpu,cpu", "ulysses=2"), ("cpu,cpu", "pp=2"), ("cpu,cpu", "auto")):
            with self.subTest(split=split, devices=devices):
                self.assert_equals_comfy(changed(QWEN, devices=devices, split=split), "qwen")

    def test_true_guidance_by_a_prompt_of_another_length_with_several_pictures_and_an_odd_size(self):
        job = changed(QWEN, cfg=3.0, batch=2, width=136, height=104, tokens=11, other_tokens=6)
        for devices, split in ONE_AND_MORE:
            with self.subTest(split=split):
                self.assert_equals_comfy(changed(job, devices=devices, split=split), "qwen")

    def test_a_mask_of_the_text_changes_nothing_in_either(self):
        made = self.assert_equals_comfy(changed(QWEN, masked=3), "qwen")
        self.assertTrue(torch.equal(made, drawn(here.comfy, QWEN)))

    def test_references_under_layouts(self):
        for references in (EDIT, EDIT_PLUS):
            for devices, split in ONE_AND_MORE:
                with self.subTest(references=len(references), split=split):
                    self.assert_equals_comfy(changed(QWEN, references=references, devices=devices, split=split), "qwen")

    def test_references_of_odd_sizes_larger_than_the_picture_with_several_pictures(self):
        self.assert_equals_comfy(changed(QWEN, references=LARGER), "qwen")
        self.assert_equals_comfy(changed(QWEN, references=((72, 104), (136, 88)), batch=2, cfg=2.0, width=136, height=104), "qwen")

    def test_references_by_each_method(self):
        plain = drawn(here.comfy, changed(QWEN, references=EDIT_PLUS))
        for method in ("index", "offset", "uxo/uno"):
            with self.subTest(method=method):
                made = self.assert_equals_comfy(changed(QWEN, references=EDIT_PLUS, method=method), "qwen")
                self.assertEqual(torch.equal(made, plain), method == "index")

    def test_residuals_of_controlnets(self):
        plain = drawn(here.comfy, QWEN)
        for devices, split in (*ONE_AND_MORE, ("cpu,cpu", "pp=2")):
            with self.subTest(split=split):
                made = self.assert_equals_comfy(changed(QWEN, control=256, devices=devices, split=split), "qwen")
                self.assertGreater((made - plain).abs().max().item(), 1e-2)
        self.assert_equals_comfy(changed(QWEN, control=256, references=EDIT, batch=2), "qwen")

    def test_references_at_timestep_zero(self):
        self.needs("default_ref_method")
        file = changed(QWEN, references=EDIT_PLUS)
        plain = drawn(here.comfy, file)
        for devices, split in ONE_AND_MORE:
            with self.subTest(split=split):
                made = self.assert_equals_comfy(changed(file, devices=devices, split=split), "edit2511")
                self.assert_equals_comfy(changed(file, devices=devices, split=split, method=AT_ZERO), "qwen")
        self.assertGreater((made - plain).abs().max().item(), 1e-2)
        self.assert_equals_comfy(QWEN, "edit2511")
        self.assert_equals_comfy(changed(file, method="index", batch=2), "edit2511")

    def test_methods_may_change_from_run_to_run(self):
        self.needs("default_ref_method")
        file = changed(QWEN, references=EDIT)
        at_step, at_zero = drawn(here.comfy, file), drawn(here.comfy, changed(file, method=AT_ZERO))
        self.assertFalse(torch.equal(at_step, at_zero))
        self.assertEqual(len(self.workers()), 1)
        self.assert_close(drawn(here.comfy, file, name="again"), at_step)
        self.free()
        self.assert_close(drawn(here.comfy, changed(file, method=AT_ZERO), name="again"), at_zero)

    def test_configurations_that_are_given(self):
        self.assert_equals_comfy(changed(QWEN, more=self.given()), "qwen")

    def test_configurations_that_are_given_with_references_at_timestep_zero(self):
        self.needs("default_ref_method")
        self.assert_equals_comfy(changed(QWEN, references=EDIT, method=AT_ZERO, more=self.given()), "qwen")

    def test_no_controlnet_beside_references_at_timestep_zero(self):
        self.needs("default_ref_method")
        job = changed(with_components(QWEN, "edit2511"), references=EDIT, control=256)
        self.assert_refused(job, "no ControlNet beside references", AT_ZERO)

    def test_layers(self):
        self.needs("use_additional_t_cond")
        job = changed(QWEN, latent="EmptyQwenImageLayeredLatentImage", layers=2, references=EDIT)
        for devices, split in ONE_AND_MORE:
            with self.subTest(split=split):
                made = self.assert_equals_comfy(changed(job, devices=devices, split=split), "layered")
                self.assertEqual(made.shape[2], 3)
        self.assert_equals_comfy(changed(job, batch=2, cfg=2.0, other_tokens=5), "layered")

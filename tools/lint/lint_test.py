#!/usr/bin/env python3
"""Each rule catches its violation and lets a nearly identical correct twin pass."""

import tempfile
import unittest
from pathlib import Path

import gpus
from lint import complaints

LINKS = "target_link_libraries(braid_{0} PUBLIC {1})\n"


class LintTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def complaints_about(self, path, text):
        self.write(path, text)
        return [complaint for _, _, complaint in complaints(self.root)]

    def test_a_lower_layer_may_be_included_a_higher_one_not(self):
        self.write("src/nn/CMakeLists.txt", LINKS.format("nn", "braid_weights"))
        self.write("src/weights/CMakeLists.txt", LINKS.format("weights", "braid_base"))
        self.assertEqual(self.complaints_about("src/nn/a.cc", '#include "base/error.h"\n'), [])
        found = self.complaints_about("src/base/a.cc", '#include "nn/linear.h"\n')
        self.assertEqual(found, ["base must not include nn"])

    def test_rooms_of_the_pipeline_include_downwards(self):
        include = '#include "pipeline/{}/a.h"\n'.format
        for path, line, found in (
                ("engine/a.cc", include("planner"), []),
                ("families/a.cc", include("request"), []),
                ("request/a.cc", include("families"), []),
                ("planner/a.cc", include("engine"), ["pipeline/planner must not include pipeline/engine"]),
                ("engine/a.cc", include("proofs"), ["pipeline/engine must not include pipeline/proofs"]),
                ("attic/a.cc", "", ["src/pipeline/attic has no place in the order of rooms"])):
            self.assertEqual(self.complaints_about("src/pipeline/" + path, line), found, path)
            (self.root / "src/pipeline" / path).unlink()

    def test_the_files_of_rules_are_there(self):
        """A rule about a file that has moved would check nothing."""
        root = Path(__file__).resolve().parents[2]
        for path in (gpus.BUILD, gpus.PRESETS, gpus.CLAIMS):
            self.assertTrue((root / path).exists(), path)

    def test_a_build_has_kernels_for_the_gpus_that_presets_and_claims_name(self):
        self.write("CMakeLists.txt", "set(CMAKE_CUDA_ARCHITECTURES 80-real 100-real 120 CACHE STRING \"\")\n"
                   "set(CMAKE_HIP_ARCHITECTURES gfx90a\n  gfx1030 CACHE STRING \"\")\n")
        presets, claims = "src/pipeline/memory/presets.cc", "src/app/machine/environment.cc"
        for path, line, gpu in ((presets, '{"a", {"gfx90a"}}', None), (presets, '{"a", {"gfx942"}}', "gfx942"),
                                (presets, '{"a", {"sm_86", "sm_103"}}', None), (presets, '{"a", {"sm_90"}}', "sm_90"),
                                (presets, '{"a", {"sm_121"}}', None), (claims, 'return "10.3.0";', None),
                                (claims, 'return "11.0.0";', "gfx1100"), (claims, 'is_any(a, {"gfx1031"});', None)):
            found = self.complaints_about(path, line + "\n")
            self.assertEqual(found, [f"CMakeLists.txt compiles no kernels for {gpu}"] if gpu else [], line)
            (self.root / path).unlink()

    def test_rooms_of_the_program_include_downwards(self):
        include = '#include "app/{}/a.h"\n'.format
        for path, line, found in (
                ("commands/a.cc", include("files") + include("print"), []),
                ("files/a.cc", include("print"), []),
                ("flags/a.cc", include("commands"), ["app/flags must not include app/commands"]),
                ("print/info/a.cc", include("files"), ["app/print must not include app/files"]),
                ("machine/a.cc", include("words"), ["app/machine must not include app/words"]),
                ("attic/a.cc", "", ["src/app/attic has no place in the order of rooms"])):
            self.assertEqual(self.complaints_about("src/app/" + path, line), found, path)
            (self.root / "src/app" / path).unlink()

    def test_only_deploy_finds_the_files_of_a_model(self):
        self.assertEqual(self.complaints_about("src/pipeline/deployment/deployment.cc", "f(find_model(o));\n"), [])
        self.assertEqual(self.complaints_about("src/pipeline/a.cc", "f(refind_model(o));\n"), [])
        found = self.complaints_about("src/app/a.cc", "f(find_model(o));\n")
        self.assertEqual(found, ["find_model() is deploy()'s: take what the Deployment has"])

    def test_the_page_stores_through_one_module_and_has_relative_addresses(self):
        for line, found in (
                ("const key = sessionStorage.key;", ["only storage.js touches what the browser stores"]),
                ('const key = session.read("api-key");', []),
                ('await ask("/v1/jobs");', ["the page may be served below a path: addresses are relative"]),
                ("await ask(`v1/jobs/${id}`);", []),
                ('import "https://example.org/a.js";', ["the page loads nothing from elsewhere"])):
            self.assertEqual(self.complaints_about("src/serve/page/a.js", line + "\n"), found, line)
        self.write("src/serve/page/a.js", "")
        self.assertEqual(self.complaints_about("src/serve/page/storage.js", "window.localStorage\n"), [])

    def test_the_page_imports_what_it_calls(self):
        self.write("src/serve/page/dom.js", "export const $ = (id) => document.getElementById(id);\n")
        for text, found in (('$("a");\n', ["$() is another module's: import it"]),
                            ('import { $ } from "./dom.js";\n$("a");\n', []),
                            ('// $("a") is an element\n', []), ('const $ = (id) => id;\n$("a");\n', [])):
            self.assertEqual(self.complaints_about("src/serve/page/a.js", text), found, text)

    def test_comments_do_not_begin_midway(self):
        for comment, is_sentence in (("// Of a row.", False), ("// By rank, on every rank.", False),
                                     ("// The numbers of a row.", True), ("// Often it is.", True),
                                     ("// It is made\n// Of sentences.", True)):
            found = self.complaints_about("src/nn/a.cc", f"{comment}\nint a();\n")
            self.assertEqual(found, [] if is_sentence else [
                "a comment is a sentence with a noun and a verb: this one begins midway"], comment)

    def test_streams_of_text_do_not_go_by_the_hosts_locale(self):
        complaint = "a host's locale changes what this stream writes; use one of base/text_stream.h"
        for line, found in (("std::ostringstream out;", [complaint]), ("std::stringstream s(a);", [complaint]),
                            ("TextWriter out;", [])):
            self.assertEqual(self.complaints_about("src/nn/a.cc", line + "\n"), found, line)
        self.assertEqual(self.complaints_about("tests/nn/a.cc", "std::ostringstream out;\n"), [])

    def test_a_class_is_defined_in_one_file(self):
        self.assertEqual(self.complaints_about("src/nn/a.cc", "void Box::open() {\n}\n"), [])
        self.assertEqual(self.complaints_about("src/nn/no_box.cc", "void Box::open() {\n}\n"), [])
        self.assertEqual(self.complaints_about("src/nn/b.cc", "  x = Box::made();\nInt Boxes::f() {\n}\n"), [])
        found = self.complaints_about("src/nn/c.cc", "std::vector<Tensor> Box::all() const {\n}\n")
        self.assertEqual(found, ["src/nn/a.cc defines functions of 'Box' too: a class has one place"])

    def test_siblings_do_not_see_each_other(self):
        self.assertEqual(self.complaints_about("src/models/a.cc", '#include "parallel/ring.h"\n'),
                         ["models must not include parallel"])
        self.assertEqual(self.complaints_about("src/serve/a.cc", '#include "app/flags.h"\n'),
                         ["models must not include parallel", "serve must not include app"])

    def test_text_sees_only_base_and_is_seen_by_the_pipeline_only(self):
        self.assertEqual(self.complaints_about("src/text/a.cc", '#include "weights/plan.h"\n'),
                         ["text must not include weights"])
        self.write("src/text/a.cc", '#include "base/json.h"\n')
        self.assertEqual(self.complaints_about("src/pipeline/a.cc", '#include "text/clip.h"\n'), [])
        self.assertEqual(self.complaints_about("src/models/a.cc", '#include "text/clip.h"\n'),
                         ["models must not include text"])

    def test_integers_need_their_header(self):
        self.write("src/base/b.h", "#pragma once\n#include <cstdint>\n")
        use = "std::uint8_t a;  // std::int8_t\n"
        self.assertEqual(self.complaints_about("src/base/a.cc", '#include "base/b.h"\n' + use), [])
        self.assertEqual(self.complaints_about("src/nn/a.cc", "#include <ATen/ATen.h>\n" + use), [])
        self.assertEqual(self.complaints_about("src/base/a.cc", "#include <string>\n" + use),
                         ["the integers of <cstdint> need #include <cstdint>"])
        self.assertEqual(self.complaints_about("src/base/a.cc", "int b;  // std::uint8_t\n"), [])

    def test_the_engine_has_no_views_that_clang_14_refuses(self):
        self.assertEqual(self.complaints_about("src/base/a.cc", "for (auto& [key, value] : text) f(value);\n"), [])
        self.assertEqual(self.complaints_about("src/base/a.cc", "for (auto& value : text | std::views::values) f(value);\n"),
                         ["Clang 14 refuses the views of <ranges>: write the loop"])

    def test_a_new_folder_needs_a_place_in_the_order(self):
        self.assertEqual(self.complaints_about("src/stuff/a.cc", "int a;\n"),
                         ["src/stuff has no place in the layer order"])

    def test_link_lines_follow_the_layers(self):
        found = self.complaints_about("src/base/CMakeLists.txt", LINKS.format("base", "braid_nn"))
        self.assertEqual(found, ["base must not link braid_nn"])

    def test_what_is_included_is_linked(self):
        self.write("src/nn/a.cc", '#include "weights/plan.h"\n')
        found = self.complaints_about("src/nn/CMakeLists.txt", LINKS.format("nn", "braid_base"))
        self.assertEqual(found, ["includes weights, but the CMake target does not link it"])
        found = self.complaints_about("src/nn/CMakeLists.txt", LINKS.format("nn", "braid_weights"))
        self.assertEqual(found, [])

    def test_models_do_not_speak_of_ranks_or_vendors(self):
        for line in ("int rank;", "// each rank", "Group g;", "auto k = at::kCUDA;", "cuda_event();",
                     "// a stream", "Mesh mesh_axes;", "HIPGuard g;", "int world_size;"):
            self.assertTrue(self.complaints_about("src/models/a.cc", line + "\n"), line)
        for line in ("group_norm(x);", "GroupNorm norm_;", "int num_groups;", "// chips and ships",
                     "std::ostream& ostream();", "int frank;", "const int groups = 32;"):
            self.assertEqual(self.complaints_about("src/models/a.cc", line + "\n"), [], line)
        self.write("src/models/a.cc", "")
        self.assertEqual(self.complaints_about("src/comm/a.cc", "int rank;\n"), [])

    def test_families_stay_behind_their_door(self):
        for line in ("FluxConfig c;", "int num_double;", "t5_names();", "load_clip();",
                     'if (name == "FluxPipeline") f();', "QwenText text;"):
            self.assertTrue(self.complaints_about("src/pipeline/a.cc", line + "\n"), line)
        for line in ("// as FLUX.1 does", "clipped(x);", "int t50;"):
            self.assertEqual(self.complaints_about("src/pipeline/a.cc", line + "\n"), [], line)
        self.write("src/pipeline/a.cc", "")
        self.assertEqual(
            self.complaints_about("src/pipeline/families/flux/a.cc", "FluxConfig c;\n"), [])
        help_text = 'const char* kHelp = "braid plan -m flux1-dev";\n'
        self.assertEqual(self.complaints_about("src/app/a.cc", help_text), [])

    def test_only_two_files_ask_the_preprocessor(self):
        self.assertEqual(self.complaints_about("src/base/gpu_runtime.cu", "#pragma once\n#ifdef A\n"), [])
        found = self.complaints_about("src/base/a.cc", "#ifdef A\n")
        self.assertEqual(found, ["#if belongs in base/gpu_runtime.cu or ops/gpu/gpu.cu"])

    def test_only_the_program_prints(self):
        for line in ("std::cout << 1;", 'printf("x");', 'fprintf(stderr, "x");', "std::cerr << 1;"):
            self.assertEqual(self.complaints_about("src/nn/a.cc", line + "\n"),
                             ["only app/ and serve/ print"], line)
        for line in ('snprintf(a, 1, "x");', '// printf("x")', 'f("printf(1)");'):
            self.assertEqual(self.complaints_about("src/nn/a.cc", line + "\n"), [], line)
        self.write("src/nn/a.cc", "")
        self.assertEqual(self.complaints_about("src/app/a.cc", "std::cout << 1;\n"), [])

    def test_only_the_program_speaks_of_flags(self):
        wish = 'f("give --size");\n'
        self.assertEqual(self.complaints_about("src/pipeline/a.cc", wish),
                         ["only app/ and serve/ speak of flags"])
        self.assertEqual(self.complaints_about("src/pipeline/a.cc", 'f(a--, "b - c");\n'), [])
        self.write("src/pipeline/a.cc", "")
        self.assertEqual(self.complaints_about("src/app/a.cc", wish), [])

    def test_slow_headers_and_torch_below_weights_are_refused(self):
        found = self.complaints_about("tests/nn/a.cc", "#include <torch/torch.h>\n")
        self.assertIn("costs ten seconds a file", found[0])
        self.assertEqual(self.complaints_about("tests/nn/a.cc", "#include <ATen/ATen.h>\n"), [])
        self.assertEqual(self.complaints_about("src/text/a.cc", "#include <ATen/ATen.h>\n"),
                         ["text does not see LibTorch"])

    def test_headers_are_guarded(self):
        self.assertEqual(self.complaints_about("src/nn/a.h", "int a();\n"),
                         ["a header needs #pragma once"])

    def test_a_type_has_its_name_once(self):
        layer = "struct Layer {\n};\n"
        self.write("src/nn/a.h", "#pragma once\nnamespace a {\n" + layer + "}  // namespace a\n")
        for name in ("", "b"):
            twin = f"namespace {name} {{\n{layer}}}  // namespace {name}\n"
            self.assertEqual(self.complaints_about("src/nn/b.cc", twin), [])
        twin = "namespace a {\nclass Layer : public Node {\n};\n}  // namespace a\n"
        self.assertEqual(self.complaints_about("src/nn/b.cc", twin),
                         ["src/nn/a.h has a type 'a::Layer' too"])

    def test_a_name_says_of_what(self):
        self.assertEqual(self.complaints_about("src/nn/a.cc", "int phase_name_of(int p);\n"), [])
        self.assertEqual(self.complaints_about("src/nn/a.cc", "int name_of(int p);\n"),
                         ["'name_of' lacks its noun: 'phase_name', say"])

    def test_a_test_keeps_its_names_to_itself(self):
        own = "namespace braid::{} {{\nint a;\n}}  // namespace braid\n"
        for name in ("ring_test", "text::ring_test"):
            self.assertEqual(self.complaints_about("tests/nn/ring_test.cc", own.format(name)), [])
        for name in ("other_test", "ring"):
            self.assertEqual(self.complaints_about("tests/nn/ring_test.cc", own.format(name)),
                             ["its names belong into namespace braid::ring_test"])

    def test_files_keep_their_budgets(self):
        self.write("src/nn/a.cc", "\n" * 400)
        self.write("src/nn/a.h", "#pragma once\n" + "\n" * 159)
        self.assertEqual(list(complaints(self.root)), [])
        self.write("src/nn/a.cc", "\n" * 401)
        self.write("src/nn/a.h", "#pragma once\n" + "\n" * 160)
        self.write("src/nn/utils.cc", "// " + "x" * 98 + "\n")
        self.assertEqual([c for _, _, c in complaints(self.root)],
                         ["401 lines, the budget is 400", "161 lines, the budget is 160",
                          "101 columns, the budget is 100",
                          "'utils' says nothing: name the concept"])


if __name__ == "__main__":
    unittest.main()

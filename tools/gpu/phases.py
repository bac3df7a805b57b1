"""The steps of each phase, the most important ones first."""
import os
import shutil
from pathlib import Path

from kit import printed
from steps import (Step, of_bench, of_ceilings, of_first_picture, of_generate, of_peers,
                   of_tests)

PROMPT = "a red circle on a blue background"
# FLUX.1-dev at 1024x1024: 4096 tokens of the picture, 512 of the text, and both together.
TOKENS = ("512", "4096", "4608")
RANDOM_MODEL = Path("/tmp/first_run_flux")
SANITIZER = "compute-sanitizer"
# Of every kernel an odd shape and an even one, whose numbers are moved one by one and in vectors:
# {test: parameters}. All tests together take compute-sanitizer longer than a phase.
SANITIZED = {
    "Shapes/GpuKernels.*": ("33", "34"),  # bfloat16, dense rows of 257 and of 768
    "Shapes/GpuHeads.*": ("13", "8"),  # bfloat16, widths 66 and 128
    "Runs/Sums.AreTheSameBitsOnCpusAndGpus": ("17", "12"),  # bfloat16, 31 numbers from the 5th, and 480
    "Types/GpuBlocks.MayLieAnywhereAndHaveScalesOfRows": ("F8_E4M3", "Q4_K"),
}
TOOLKIT = "/usr/local/cuda/bin"  # which a system with CUDA need not have in its PATH
FULL = ("--synthetic", "flux1-dev", "--dtype", "bfloat16", "--size", "1024x1024",
        "--max-sequence-length", "512", "--device", "cuda", "--runs", "10", "--json")


def num_gpus():
    """Those that nvidia-smi lists: a container may have one of a machine's, whatever its number."""
    return sum(line.startswith("GPU ") for line in printed("nvidia-smi", "-L").splitlines())


def lacks_second_gpu():
    found = num_gpus()
    return "" if found >= 2 else f"it takes two GPUs, nvidia-smi lists {found}"


def sanitizer():
    """Its path; its name if it is not here."""
    path = os.pathsep.join((os.environ.get("PATH", ""), TOOLKIT))
    return shutil.which(SANITIZER, path=path) or SANITIZER


def lacks_sanitizer():
    return "" if shutil.which(sanitizer()) else f"there is no {SANITIZER}, here or in {TOOLKIT}"


def lacks_modules(*names):
    """A function that tells which of these modules the `python3` of this machine cannot import."""
    def why_not():
        missing = [name for name in names if not printed("python3", "-c", f"import {name}; print(1)")]
        return f"python3 cannot import {', '.join(missing)}" if missing else ""
    return why_not


class Programs:
    """The programs of a kit, or of a build folder beside the sources."""

    def __init__(self, root):
        kit = root / "bin"
        self.folder = kit if kit.exists() else root / "build/cuda/bin"
        self.root = root

    def __call__(self, name, *words):
        return [self.folder / name, *words]

    def sanitized(self, tool):
        """Kernels under compute-sanitizer (slow)."""
        tests = ":".join(f"{test}/{number}" for test, numbers in SANITIZED.items() for number in numbers)
        return Step(tool, [sanitizer(), "--tool", tool, "--error-exitcode", "9",
                           *self("ops_test", f"--gtest_filter={tests}", "--gtest_brief=1")],
                    90, why_not=lacks_sanitizer)

    def generate(self, *words):
        return self("braid", "generate", PROMPT, "--size", "128x128", "--steps", "20", "--seed", "1",
                    "--json", "-q", "-o", "/tmp/first_run.png", "--device", "cuda", *words)

    def bench(self, name, limit, *words, **settings):
        return Step(name, self("braid", "bench", *FULL, *words), limit, of_bench, settings=settings)

    def first_picture(self, name, *words):
        """From the model that the step before wrote, whose files are in the system's cache."""
        return Step(name, self("braid", "generate", PROMPT, "-m", RANDOM_MODEL, "--size", "1024x1024",
                               "--steps", "4", "--seed", "1", "--json", "-q", "-o",
                               "/tmp/first_run.png", "--device", "cuda", *words),
                    120, of_first_picture, needs=RANDOM_MODEL / "model_index.json")


def sanity(root):
    run = Programs(root)
    verify = ("verify", "--size", "112x80", "--devices", "cuda:0,cuda:0")
    return [
        Step("what is here", run("braid", "info", "--json"), 30),
        Step("device tests", run("device_test"), 150, of_tests),
        Step("kernels", run("ops_test", "--gtest_filter=*Gpu*"), 60, of_tests),
        Step("bundled picture", run.generate(), 40, of_generate),
        Step("verify tp", run("braid", *verify, "--tp", "2"), 40),
        Step("verify ring", run("braid", *verify, "--ring", "2"), 40),
        Step("verify ulysses", run("braid", *verify, "--ulysses", "2"), 40),
        Step("offload under the checker",
             run.generate("--offload", "block", "--check-order"), 60, of_generate),
        run.sanitized("memcheck"),
        run.sanitized("racecheck"),
    ]


def ceilings(root):
    run = Programs(root)
    return [
        Step("ceilings", run("ceilings", "cuda:0", *TOKENS), 240, of_ceilings),
        Step("operations", run("report", "--device", "cuda:0", "--blocks", "19,38", "--size", "1024"),
             150),
        Step("operations, int8", run("report", "--device", "cuda:0", "--blocks", "19,38", "--size",
                                     "1024", "--quantize", "int8-dynamic"), 100),
        Step("operations, fp8", run("report", "--device", "cuda:0", "--blocks", "19,38", "--size",
                                    "1024", "--quantize", "fp8"), 100),
    ]


def steps_of_flux(root):
    run = Programs(root)
    peers = root / "tools/peers/peers.py"
    own = ("--text-stream", "own")
    return [
        run.bench("graph", 90),
        run.bench("graph, text stream", 60, *own),
        run.bench("eager", 60, "--graph", "off"),
        run.bench("eager, text stream", 60, "--graph", "off", *own),
        run.bench("FlashAttention 2", 60, TORCH_CUDNN_SDPA_DEPRIORITIZED="1"),
        run.bench("fp8", 60, "--quantize", "fp8"),
        run.bench("fp8, text stream", 60, "--quantize", "fp8", *own),
        run.bench("int8-dynamic", 60, "--quantize", "int8-dynamic"),
        run.bench("int8", 60, "--quantize", "int8"),
        Step("diffusers", ["python3", peers, "--device", "cuda", "--blocks", "19,38", "--only",
                           "transformer-1024", "--build", run.folder.parent], 300, of_peers,
             needs=peers, why_not=lacks_modules("diffusers", "transformers")),
    ]


def ranks(root):
    """Of a machine with two GPUs; on one they are left out."""
    run = Programs(root)
    native = ("--collectives", "native")

    def tests(name, limit, suites):
        return Step(name, run("device_test", f"--gtest_filter={suites}"), limit, of_tests,
                    why_not=lacks_second_gpu)

    def on_two(name, *words):
        step = run.bench(name, 60, "--devices", "cuda:0,cuda:1", *words)
        step.why_not = lacks_second_gpu
        return step
    return [
        tests("sums and pictures", 120, "LinkOfGpus.*:SlowModelOnGpu.NativeSums*"),
        tests("replays", 60, "ModelOnGpu.ReplaysOverGpus*"),
        on_two("tp 2", "--tp", "2"),
        on_two("tp 2, native sums", "--tp", "2", *native),
        on_two("tp 2, eager", "--tp", "2", "--graph", "off"),
        on_two("tp 2, eager, native sums", "--tp", "2", "--graph", "off", *native),
        on_two("ulysses 2", "--ulysses", "2"),
        on_two("ring 2", "--ring", "2"),
    ]


def memory(root):
    run = Programs(root)
    block = ("--offload", "block")
    write = root / "tools/gpu/random_model.py"
    return [
        run.bench("all resident", 60),
        run.bench("half resident", 60, *block, "--resident", "28"),
        run.bench("none resident", 60, *block),
        run.bench("pinned on the fly", 60, *block, "--pin", "on-the-fly"),
        run.bench("fp8, none resident", 60, *block, "--quantize", "fp8"),
        Step("copies", run("ceilings", "cuda:0", "512"), 60, of_ceilings),
        Step("a random model", ["python3", write, RANDOM_MODEL], 150, needs=write,
             why_not=lacks_modules("diffusers", "transformers", "accelerate")),
        run.first_picture("first picture"),
        run.first_picture("first picture, fp8", "--quantize", "fp8", "--quantize-text", "fp8"),
        run.first_picture("first picture, offloaded", *block),
    ]


PHASES = {"sanity": sanity, "ceilings": ceilings, "steps": steps_of_flux, "memory": memory,
          "ranks": ranks}

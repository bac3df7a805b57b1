"""Workflows in ComfyUI's API format, and the latents that they save."""

from dataclasses import dataclass, field, replace

from safetensors.torch import load_file


BRAID = "BraidLoadModel"


@dataclass
class Job:
    """What is drawn; `loader` decides with what."""

    file: str
    text: int                     # width of its embedded prompts
    pooled: int = 0
    latent: str = "EmptySD3LatentImage"
    items: int = 0                # of references' latents, for models that take several; 0: latents have no such axis
    layers: int | None = None     # drawn beside the whole picture, by models of layers
    width: int = 128
    height: int = 96
    steps: int = 3
    cfg: float = 1.0
    batch: int = 1
    tokens: int = 7
    other_tokens: int | None = None  # of the negative prompt
    masked: int = 0               # tokens that a mask of attention leaves out
    guidance: float | None = None
    references: tuple = ()        # sizes in pixels of random latents to look at
    method: str | None = None     # where they lie
    control: int = 0              # hidden size of a model that a random ControlNet steers
    loras: tuple = ()             # (file, strength)
    faults: tuple = ()            # nodes of the tests: (class, inputs)
    devices: str = "cpu"
    split: str = "auto"
    more: dict = field(default_factory=dict)  # inputs of Load Model (Braid)


class Workflow:
    def __init__(self):
        self.nodes = {}

    def add(self, kind, /, **inputs):
        """The node's name, of which [name, 0] is the first output."""
        name = str(len(self.nodes) + 1)
        self.nodes[name] = {"class_type": kind, "inputs": inputs}
        return [name, 0]

    def conditioning(self, job, seed):
        found = self.add("TestConditioning", seed=seed, tokens=job.tokens, width=job.text, pooled=job.pooled, masked=job.masked)
        if job.guidance is not None:
            found = self.add("FluxGuidance", conditioning=found, guidance=job.guidance)
        for number, (width, height) in enumerate(job.references):
            latent = self.add("TestLatent", seed=seed + 50 + number, width=width, height=height, items=job.items,
                              like=self.latent(job))
            found = self.add("ReferenceLatent", conditioning=found, latent=latent)
        if job.control:
            found = self.add("TestControl", conditioning=found, hidden=job.control)
        if job.method:
            found = self.add("FluxKontextMultiReferenceLatentMethod", conditioning=found, reference_latents_method=job.method)
        return found

    def latent(self, job):
        layers = {} if job.layers is None else {"layers": job.layers}
        return self.add(job.latent, width=job.width, height=job.height, batch_size=job.batch, **layers)

    def model(self, job, loader):
        if loader != "comfy":
            usual = {"weight_form": "as stored", "offload": "auto", "dtype": "float32"}
            model = self.add(loader, file=job.file, devices=job.devices, split=job.split, **{**usual, **job.more})
        else:
            model = self.add("UNETLoader", unet_name=job.file, weight_dtype="default")
        for file, strength in job.loras:
            model = self.add("LoraLoaderModelOnly", model=model, lora_name=file, strength_model=strength)
        for kind, inputs in job.faults:
            model = self.add(kind, model=model, **inputs)
        return model

    def draw(self, job, loader, name):
        """Draws and saves latents under `name`."""
        other = replace(job, tokens=job.tokens if job.other_tokens is None else job.other_tokens)
        drawn = self.add("KSampler", model=self.model(job, loader), seed=3, steps=job.steps, cfg=job.cfg, sampler_name="euler",
                         scheduler="simple", positive=self.conditioning(job, 11), negative=self.conditioning(other, 12),
                         latent_image=self.latent(job), denoise=1.0)
        self.add("SaveLatent", samples=drawn, filename_prefix=name)
        return self


def drawn(comfy, job, loader=BRAID, name="drawn"):
    """Latents [batch, channels, rows, columns]."""
    comfy.run(Workflow().draw(job, loader, name).nodes)
    return latents(comfy, name)


def latents(comfy, name):
    newest = max((comfy.base / "output").glob(f"{name}_*.latent"), key=lambda file: file.stat().st_mtime_ns)
    return load_file(newest)["latent_tensor"]

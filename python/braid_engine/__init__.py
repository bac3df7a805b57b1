"""Pictures from prompts with FLUX-class diffusion transformers, on one device or many.

    from braid_engine import Pipeline

    pipe = Pipeline.from_pretrained("org/name", devices=["cuda:0", "cuda:1"], layout="tp=2")
    image = pipe("a lighthouse in a storm", generator=0).images[0]
"""

from . import _loading as _loading  # before anything of LibTorch is loaded

from ._build import LIBTORCH_VERSION
from ._core import Cancelled, Error, InputError, ModelInfo, Phase, Preview, Progress, version
from ._output import PipelineOutput
from ._program import info, plan, verify
from .pipeline import Pipeline

__version__ = version()

__all__ = [
    "LIBTORCH_VERSION",
    "Cancelled",
    "Error",
    "InputError",
    "ModelInfo",
    "Phase",
    "Pipeline",
    "PipelineOutput",
    "Preview",
    "Progress",
    "info",
    "plan",
    "verify",
    "version",
]

"""The autoencoder that takes the place of diffusers': their interface, Braid's arithmetic."""

from typing import Any

import torch

from . import _core
from ._core import InputError
from ._diffusers_transformers import Replacement, floats, refuse

KINDS = (
    "AutoencoderKL",
    "AutoencoderKLFlux2",
    "AutoencoderKLWan",
    "AutoencoderKLQwenImage",
    "AutoencoderKLQwenImage21",
)


def planes_of(values: Any) -> Any:
    """[batch, channels, (1,) rows, columns] without the dimension of frames."""
    if values.ndim != 5:
        return values
    if values.shape[2] != 1:
        raise InputError(f"Braid's autoencoder has single pictures, a clip of {values.shape[2]} frames was given")
    return values[:, :, 0]


class AcceleratedAutoencoder(Replacement):
    """Wan's and Qwen-Image's take and give pictures with a dimension of frames, of which there is one."""

    def __init__(self, original: Any, engine: _core.PictureAutoencoder) -> None:
        super().__init__(original)
        self.engine = engine
        self.use_tiling = bool(getattr(original, "use_tiling", False))
        # What pipelines look at besides: FLUX.2's statistics of packed latents, Wan's kinds of levels.
        for name in ("bn", "temperal_downsample"):
            if hasattr(original, name):
                setattr(self, name, getattr(original, name))

    @torch.compiler.disable
    def encode(self, x: Any, return_dict: bool = True) -> Any:
        from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution  # noqa: PLC0415
        from diffusers.models.modeling_outputs import AutoencoderKLOutput  # noqa: PLC0415

        moments = self.made(self.engine.encode(floats(planes_of(x)), self.use_tiling), x)
        posterior = DiagonalGaussianDistribution(moments)
        return AutoencoderKLOutput(latent_dist=posterior) if return_dict else (posterior,)

    @torch.compiler.disable
    def decode(self, z: Any, return_dict: bool = True, generator: Any = None) -> Any:
        from diffusers.models.autoencoders.vae import DecoderOutput  # noqa: PLC0415

        sample = self.made(self.engine.decode(floats(planes_of(z)), self.use_tiling), z)
        sample = sample.clamp(-1, 1) if z.ndim == 5 else sample  # as only those of clips do
        return DecoderOutput(sample=sample) if return_dict else (sample,)

    def made(self, values: Any, like: Any) -> Any:
        planes = torch.from_numpy(values).to(like.device, like.dtype)
        return planes[:, :, None] if like.ndim == 5 else planes

    def enable_tiling(self, **sizes: Any) -> None:
        """In tiles of the size that the autoencoder's configuration implies."""
        refuse(**sizes)
        self.use_tiling = True

    def disable_tiling(self) -> None:
        self.use_tiling = False

    def enable_slicing(self) -> None:
        """Pictures of a batch come one after another in any case."""

    def disable_slicing(self) -> None:
        pass

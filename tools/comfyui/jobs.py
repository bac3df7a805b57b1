"""What the cases draw with the tiny models."""

from workflows import Job

FLUX1 = Job("flux1.safetensors", text=4096, pooled=768)
ZIMAGE = Job("zimage.safetensors", text=2560)
FLUX2 = Job("flux2.safetensors", text=7680, latent="EmptyFlux2LatentImage")
QWEN = Job("qwen.safetensors", text=3584, items=1)

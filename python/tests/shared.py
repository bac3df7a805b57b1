"""What the tests share: pipelines of the bundled model, each loaded once."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from braid_engine import Pipeline
from braid_engine._options import MODELS

PROMPT = "a red circle"
RUN: dict[str, Any] = {"width": 64, "height": 48, "num_inference_steps": 3}
LOADED: dict[str, Pipeline] = {}


def pipeline(**options: Any) -> Pipeline:
    key = json.dumps(options, sort_keys=True)
    if key not in LOADED:
        LOADED[key] = Pipeline.from_pretrained(**options)
    return LOADED[key]


def written_lora(path: Path, seed: int, layers: Sequence[str] = ("to_q", "to_out.0")) -> Path:
    """Rank 2, in diffusers' names, for two layers of the bundled model's transformer."""
    draw = np.random.default_rng(seed)
    header: dict[str, Any] = {}
    data = b""
    config = json.loads((MODELS / "demo/transformer/config.json").read_text())
    hidden = config["num_attention_heads"] * config["attention_head_dim"]
    for layer in layers:
        for side, shape in {"A": (2, hidden), "B": (hidden, 2)}.items():
            values = (draw.normal(size=shape) * 0.2).astype("<f4").tobytes()
            name = f"transformer.transformer_blocks.0.attn.{layer}.lora_{side}.weight"
            header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(values)]}
            data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path

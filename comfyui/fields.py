"""The nodes' inputs, once for both of ComfyUI's APIs."""

from dataclasses import dataclass, field
from typing import Any

AS_STORED, AUTO = "as stored", "auto"  # weights and the rest as the file has them, as Braid chooses


@dataclass(frozen=True)
class Field:
    name: str
    kind: str  # "COMBO", "STRING", "INT", "FLOAT", "IMAGE", "MASK"
    tooltip: str = ""
    default: Any = None
    options: Any = None  # of a COMBO
    limits: dict[str, Any] = field(default_factory=dict)  # min, max, step; multiline
    is_optional: bool = False
    is_seed: bool = False

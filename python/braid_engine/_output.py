"""What calls of a pipeline return, as diffusers' outputs are read."""

from dataclasses import dataclass
from typing import Any


@dataclass
class PipelineOutput:
    """`images`: as output_type says. Empty on processes that are not the first rank. They are also output[0] and
    output["images"], as of diffusers' outputs."""

    images: Any

    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str) and key != "images":
            raise KeyError(key)
        return self.images if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self) -> tuple[Any]:
        return (self.images,)

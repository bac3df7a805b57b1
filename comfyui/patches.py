"""ComfyUI's patches of weights as LoRA files that Braid reads.

A patch of ComfyUI is (strength, value, strength of the weight, offset, function) under the name of a weight. Low-rank
products of all LoRAs become one product per weight: their factors side by side, strengths and alphas multiplied in.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file

from .process import Refused

PREFIX = "diffusion_model."
KINDS = {"loha": "LoHa", "lokr": "LoKr", "oft": "OFT", "boft": "BOFT", "glora": "GLoRA"}
# Of the adapters that Braid reads as they are: where each factor stands among ComfyUI's weights.
FACTORS = {
    "loha": {"hada_w1_a": 0, "hada_w1_b": 1, "hada_w2_a": 3, "hada_w2_b": 4, "hada_t1": 5, "hada_t2": 6},
    "lokr": {"lokr_w1": 0, "lokr_w2": 1, "lokr_w1_a": 3, "lokr_w1_b": 4, "lokr_w2_a": 5, "lokr_w2_b": 6, "lokr_t2": 7},
}
DORA = {"lora": 4, "loha": 7, "lokr": 8}
ALPHA = 2  # in the weights of all three


def float32(tensor):
    return tensor.detach().to("cpu", torch.float32)


def layer_of(key):
    """ "diffusion_model.img_in.weight" -> "diffusion_model.img_in" """
    layer, _, last = key.rpartition(".")
    if last not in ("weight", "bias"):
        raise Refused(f"a patch changes {key}, which Braid's adapters cannot: they change weights and biases of layers")
    return layer, last


def placed(up, rows, offset, key):
    """`up` [some rows, rank], at the rows of the layer that `offset` (dim, start, length) names."""
    if offset is None:
        return up
    dim, start, length = offset
    if dim != 0 or len(up) != length or start + length > rows:
        raise Refused(f"a LoRA changes columns of {key}, which Braid's adapters do not: only runs of its rows")
    whole = torch.zeros(rows, up.shape[1])
    whole[start : start + length] = up
    return whole


def swapped(function, up, key):
    """What ComfyUI does to the product of a converted layer: it exchanges the halves of the rows."""
    if function is None:
        return up
    if getattr(function, "__name__", "") != "swap_scale_shift":
        raise Refused(f"a patch of {key} has a function of its own ({getattr(function, '__name__', function)}), which "
                      "cannot run in Braid's process")
    first, second = up.chunk(2, dim=0)
    return torch.cat([second, first])


class Written:
    """The files' tensors so far."""

    def __init__(self, shapes):
        self.shapes = shapes
        self.products = {}  # by layer: [(up, down)]
        self.changes = {}   # tensors of differences by name
        self.whole = {}     # tensors that replace the model's
        self.others = []    # (strength, layer, {name: tensor}): adapters of other kinds

    def add_low_rank(self, key, strength, weights, offset, function):
        up, down, alpha, middle, _, reshape = weights
        if middle is not None or reshape is not None:
            raise Refused(f"a LoRA of {key} has a middle factor or changes the layer's shape: Braid reads such a file "
                          "itself, its node takes none through ComfyUI's loader")
        up, down = float32(up).flatten(1), float32(down).flatten(1)
        shape = self.shapes[key]
        if down.shape[0] != up.shape[1] or down.shape[1] != shape[1:].numel():
            raise Refused(f"a LoRA of {key} has factors {list(up.shape)} and {list(down.shape)}, which do not fit the "
                          f"layer's {list(shape)}")
        scale = strength * (1.0 if alpha is None else alpha / down.shape[0])
        up = placed(swapped(function, up, key) * scale, shape[0], offset, key)
        if len(up) != shape[0]:
            raise Refused(f"a LoRA of {key} has {len(up)} outputs, the layer has {shape[0]}")
        self.products.setdefault(layer_of(key)[0], []).append((up, down))

    def add_other(self, key, strength, kind, weights, offset, function):
        if kind not in FACTORS:
            raise Refused(f"{key} has a {KINDS.get(kind, kind)} adapter, which Braid does not have")
        if offset is not None or function is not None:
            raise Refused(f"a {KINDS[kind]} changes a part of {key}: Braid's adapters of this kind change whole layers")
        layer, _ = layer_of(key)
        tensors = {f"{layer}.{name}": float32(weights[at]) for name, at in FACTORS[kind].items() if weights[at] is not None}
        if weights[ALPHA] is not None:
            tensors[f"{layer}.alpha"] = torch.tensor(float(weights[ALPHA]))
        self.others.append((strength, layer, tensors))

    def add_tensor(self, key, strength, kind, tensor, offset, function):
        if offset is not None or function is not None:
            raise Refused(f"a patch adds to a part of {key}, which Braid's adapters do not: only to whole tensors")
        layer, last = layer_of(key)
        tensor = float32(tensor)
        if tensor.numel() != self.shapes[key].numel():
            raise Refused(f"a patch of {key} has the shape {list(tensor.shape)}, the layer has {list(self.shapes[key])}")
        tensor = tensor.reshape(self.shapes[key])
        if kind == "set":
            if last != "weight":
                raise Refused(f"a patch replaces {key}: Braid's adapters replace weights of layers only")
            self.whole[f"{layer}.set_weight"] = tensor
            return
        name = f"{layer}.{'diff' if last == 'weight' else 'diff_b'}"
        self.changes[name] = self.changes.get(name, 0) + strength * tensor

    def add(self, key, patch):
        strength, value, of_weight, offset, function = (*patch, None, None)[:5]
        if of_weight != 1.0:
            raise Refused(f"a patch multiplies {key} by {of_weight}: merges of models cannot run in Braid's process")
        if strength == 0:
            return
        kind = getattr(value, "name", None)
        if kind is not None and hasattr(value, "weights"):
            at = DORA.get(kind)
            if at is not None and len(value.weights) > at and value.weights[at] is not None:
                raise Refused(f"{key} has a DoRA, which ComfyUI applies otherwise than it was trained (docs/adapters.md): "
                              "give its file to Braid itself")
            if kind == "lora":
                self.add_low_rank(key, strength, (*value.weights, None, None, None)[:6], offset, function)
            else:
                self.add_other(key, strength, kind, value.weights, offset, function)
            return
        if not isinstance(value, tuple):
            raise Refused(f"a patch of {key} is a merge of models, which cannot run in Braid's process")
        kind, tensors = ("diff", value) if len(value) == 1 else value[:2]
        if kind not in ("diff", "set") or not tensors or not torch.is_tensor(tensors[0]):
            raise Refused(f"{key} has a patch of the kind {kind!r}, which Braid's adapters do not have")
        if len(tensors) > 1 and tensors[1]:
            raise Refused(f"a patch changes the shape of {key}, which Braid's adapters do not")
        self.add_tensor(key, strength, kind, tensors[0], offset, function)

    def files(self):
        """[(tensors, scale)], in the order of application."""
        replaced = {name.removesuffix(".set_weight") for name in self.whole}
        for layer in [*self.products, *(name.rpartition(".")[0] for name in self.changes), *(o[1] for o in self.others)]:
            if layer in replaced:
                raise Refused(f"one patch replaces {layer}, another adds to it: which came first is not known to Braid")
        files = [(self.whole, 1.0)] if self.whole else []
        products = {}
        for layer, factors in self.products.items():
            products[f"{layer}.lora_B.weight"] = torch.cat([up for up, _ in factors], dim=1).contiguous()
            products[f"{layer}.lora_A.weight"] = torch.cat([down for _, down in factors]).contiguous()
            products[f"{layer}.alpha"] = torch.tensor(float(len(products[f"{layer}.lora_A.weight"])))
        files += [(tensors, 1.0) for tensors in (products, self.changes) if tensors]
        # Each file has one strength, and a layer once.
        rest = list(self.others)
        while rest:
            strength, taken, tensors, later = rest[0][0], set(), {}, []
            for other in rest:
                if other[0] == strength and other[1] not in taken:
                    taken.add(other[1])
                    tensors.update(other[2])
                else:
                    later.append(other)
            files.append((tensors, strength))
            rest = later
        return files


def refuse_unknown(patches, shapes):
    for key in patches:
        if not key.startswith(PREFIX) or key not in shapes:
            raise Refused(f"a patch changes {key}, which Braid's process does not have")


def write(patches, shapes, folder):
    """Files and their scales, of ComfyUI's `patches` by weight; `shapes` of the model's weights, by the same names.

    Raises Refused naming the weight and what cannot be expressed.
    """
    refuse_unknown(patches, shapes)
    written = Written(shapes)
    for key, listed in patches.items():
        for patch in listed:
            written.add(key, patch)
    files = []
    for number, (tensors, scale) in enumerate(written.files()):
        file = Path(folder) / f"patches-{number}.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file)
        files.append([str(file), scale])
    return files

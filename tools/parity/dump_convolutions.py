"""Write tests/data/convolutions: adapters of a convolution by LyCORIS and peft, and the merged weights.

usage: python dump_convolutions.py [OUT]

Needs lycoris-lora beside requirements.txt. base.safetensors: the weight of a Conv3d, [16 12 1 2 2].
NAME.safetensors: the adapter's tensors for the layer `c`, as the library saves them. merged.safetensors:
NAME, the weight that the library computes with it.
"""
import sys
from pathlib import Path

import torch
from lycoris.modules.locon import LoConModule
from lycoris.modules.loha import LohaModule
from lycoris.modules.lokr import LokrModule
from peft import LoraConfig, get_peft_model_state_dict, inject_adapter_in_model
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2]
LOKR = {"factor": 4, "lora_dim": 1}  # a larger rank would be a whole factor
KINDS = {
    "locon": (LoConModule, {}), "locon-tucker": (LoConModule, {"use_tucker": True}),
    "loha": (LohaModule, {}), "loha-tucker": (LohaModule, {"use_tucker": True}),
    "lokr": (LokrModule, LOKR), "lokr-tucker": (LokrModule, {**LOKR, "use_tucker": True}),
    "lokr-both": (LokrModule, {**LOKR, "use_tucker": True, "decompose_both": True}),
    "dora-outputs": (LoConModule, {"weight_decompose": True, "wd_on_out": True}),
    "dora-inputs": (LoConModule, {"weight_decompose": True, "wd_on_out": False}),
    "dora-inputs-tucker": (LoConModule, {"weight_decompose": True, "wd_on_out": False, "use_tucker": True}),
    "loha-dora-inputs": (LohaModule, {"weight_decompose": True, "wd_on_out": False, "use_tucker": True}),
}


def convolution(seed):
    torch.manual_seed(seed)
    return torch.nn.Conv3d(12, 16, (1, 2, 2), bias=False)


def randomised(parameters, seed):
    draw = torch.Generator().manual_seed(seed)
    for name, p in parameters:
        if name.endswith("alpha"):
            continue
        numbers = torch.randn(p.shape, generator=draw)
        p.data = numbers.abs() + 0.5 if "magnitude" in name or "dora" in name else numbers


@torch.no_grad()
def by_lycoris(layer, cls, options, seed):
    # LyCORIS 4.1 multiplies LoHa and LoKr by alpha / rank twice here: it is 1 for them
    module = cls("c", layer, **{"lora_dim": 2, "alpha": 3 if cls is LoConModule else options.get("lora_dim", 2), **options})
    randomised(module.named_parameters(), seed)
    saved = {f"c.{name}": t.detach().clone().contiguous() for name, t in module.state_dict().items()}
    if "weight_decompose" in options:
        return saved, module.get_merged_weight()[0]
    diff = module.get_diff_weight(multiplier=1)[0]  # flat where the window is not of a core
    return saved, layer.weight + diff.reshape(layer.weight.shape)


@torch.no_grad()
def by_peft(layer, seed):
    model = torch.nn.Sequential()
    model.add_module("c", layer)
    config = LoraConfig(r=2, lora_alpha=2, use_dora=True, target_modules=["c"])
    model = inject_adapter_in_model(config, model)
    randomised([(n, p) for n, p in model.named_parameters() if "lora" in n], seed)
    saved = {name: t.detach().clone().contiguous() for name, t in get_peft_model_state_dict(model).items()}
    model.c.merge()
    return saved, model.c.base_layer.weight


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/convolutions"
    out.mkdir(parents=True, exist_ok=True)
    save_file({"c.weight": convolution(1).weight.detach()}, out / "base.safetensors")
    merged = {}
    for seed, (name, (cls, options)) in enumerate(KINDS.items()):
        saved, merged[name] = by_lycoris(convolution(1), cls, options, seed)
        save_file(saved, out / f"{name}.safetensors")
    saved, merged["dora-peft"] = by_peft(convolution(1), 99)
    save_file(saved, out / "dora-peft.safetensors")
    save_file({name: t.detach().contiguous() for name, t in merged.items()}, out / "merged.safetensors")


if __name__ == "__main__":
    main()

"""Whether a model can run as asked, and how fast it should: without loading it."""

import math
import re

UNKNOWN = "?"  # a device's name that there is none of: the refusal lists those that are known
SHOWN = 3      # layouts in the text
AXES = ("tp", "ring", "ulysses", "pp", "cfg", "dp")
NOT_ALONE = {"cfg": "branches of guidance", "dp": "pictures"}


def names_known(plan, refused):
    """Names of devices that forecasts know."""
    try:
        plan("flux1-dev", UNKNOWN)
    except refused as error:
        return str(error).partition("known are ")[2].rstrip(".").replace(" and ", ", ").split(", ")
    return []


def product_of(name, known):
    """The known device that a driver's name ("NVIDIA GeForce RTX 4090") stands for, or None."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    fits = [k for k in known if all(word in words for word in k.split("-"))]
    return max(fits, key=len, default=None)


def check_devices(devices, there):
    """Raises ValueError naming a device that this machine does not have."""
    for device in devices:
        name = "cuda:0" if device == "cuda" else device
        first, dash, last = name.partition("-")
        names = [name]
        if dash and last.isdigit() and re.fullmatch(r"cuda:\d+", first):
            names = [f"cuda:{i}" for i in range(int(first[5:]), int(last) + 1)] or [name]
        for one in names:
            if one not in there:
                raise ValueError(f"there is no device {one!r} here: there are {', '.join(there)}")


def expanded(devices):
    """["cuda:0-1"] -> ["cuda:0", "cuda:1"]"""
    result = []
    for device in devices:
        found = re.fullmatch(r"cuda:(\d+)-(\d+)", device)
        result += [f"cuda:{i}" for i in range(int(found[1]), int(found[2]) + 1)] if found else [device]
    return result


def planned_devices(devices, names, known):
    """(what forecasts call the devices, why there is no forecast); `names` are the GPUs' own."""
    if all(device == "cpu" for device in devices):
        return f"{len(devices)}xcpu", None
    products = []
    for device in devices:
        index = int(device[5:]) if device.startswith("cuda:") else 0
        name = names[index] if index < len(names) else device
        products.append(product_of(name, known))
        if products[-1] is None:
            return f"{len(devices)}xcpu", f"its speed on {name} is not known"
    return ",".join(products), None


def degrees_text(degrees):
    """ "tp=2,ring=2", as a split is given; "" for one rank."""
    return ",".join(f"{axis}={degrees[axis]}" for axis in AXES if degrees.get(axis, 1) > 1)


def is_alone(layout):
    return all(layout["degrees"][axis] == 1 for axis in NOT_ALONE)


def best(layouts, num_devices):
    """The fastest layout for evaluations one by one. Raises ValueError with a reason if there is none."""
    alone = [layout for layout in layouts if is_alone(layout)]
    for layout in alone:
        if layout["fits"]:
            return layout
    if short := [layout for layout in alone if layout.get("obstacle") == "memory"]:
        return short[0]
    reason = f": {alone[0]['reason']}" if alone else ""
    raise ValueError(f"this model cannot be split over {num_devices} devices{reason}")


def layout_for(layouts, degrees, split):
    """The layout of a plan with these degrees. Raises ValueError with the plan's reason."""
    for axis, what in NOT_ALONE.items():
        if degrees.get(axis, 1) > 1:
            raise ValueError(f"the split {split!r} divides {what}, which ComfyUI evaluates one after another: tp, ring, ulysses and pp can be given")
    wanted = {axis: degrees.get(axis, 1) for axis in AXES}
    for layout in layouts:
        if all(layout["degrees"][axis] == n for axis, n in wanted.items()):
            if not layout["fits"] and layout.get("obstacle") != "memory":
                raise ValueError(f"the split {split!r} does not suit this model: {layout['reason']}")
            return layout
    ranks, devices = math.prod(wanted.values()), math.prod(layouts[0]["degrees"][axis] for axis in AXES)
    raise ValueError(f"the split {split!r} has {ranks} ranks, there {'is' if devices == 1 else 'are'} {devices} "
                     f"device{'' if devices == 1 else 's'}: give one for each, also if they are the same")


def seconds(value):
    return f"{value:.3g} s"


def line_of(layout, plan):
    text = f"{layout['layout']}: {seconds(layout['seconds_per_step']['total'])} per step, "
    text += f"{seconds(layout['seconds_per_picture'])} per picture of {plan['size']['width']}x{plan['size']['height']} "
    text += f"in {plan['steps']} steps"
    peak = layout["bytes"]["first_rank"]["transformer"] + layout["bytes"]["first_rank"]["activations"]
    return f"{text}; weights and activations {peak / 1e9:.1f} GB per rank"


def text_of(plan, chosen, devices, why_not):
    head = f"{plan['model']} in {plan['dtype']} on {', '.join(devices)}"
    if why_not:
        return f"{head}, {chosen['layout']}: {why_not}"
    others = [layout for layout in plan["layouts"] if layout["fits"] and layout is not chosen and is_alone(layout)]
    return "\n".join([f"{head}, predicted:", line_of(chosen, plan), *(line_of(other, plan) for other in others[: SHOWN - 1])])


def forecast(engine, options, given):
    """(the text, the split to run). Raises ValueError for what cannot run: files, devices, split."""
    devices = expanded(given["devices"])
    check_devices(devices, engine.info()["devices"])
    flags = {name: given[name] for name in ("components", "dtype", "offload") if given[name]}
    if given["quantization"]:
        flags["quantize"] = given["quantization"]
    known = names_known(engine.plan, engine.InputError)
    planned, why_not = planned_devices(devices, given["gpus"], known)
    plan = engine.plan(given["model"], planned, all=True, **flags)
    if given["split"] == "auto":
        chosen = best(plan["layouts"], len(devices))
    else:
        chosen = layout_for(plan["layouts"], options.degrees_in(given["split"]), given["split"])
    return text_of(plan, chosen, devices, why_not), degrees_text(chosen["degrees"])

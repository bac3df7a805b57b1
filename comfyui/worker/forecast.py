"""Whether a model can run as asked, and how fast it should: without loading it."""

import math

SHOWN = 3  # layouts in the text
AXES = ("tp", "ring", "ulysses", "pp", "cfg", "dp")
ALONE = ("transformer", "activations", "keys_values", "modulations", "staging", "recorded_step", "link")
NOT_ALONE = {"cfg": "branches of guidance", "dp": "pictures"}


def whole_name(device):
    return "cuda:0" if device == "cuda" else device


def check_devices(devices, there):
    """Raises ValueError naming a device that this machine does not have."""
    for device in devices:
        if whole_name(device) not in there:
            raise ValueError(f"there is no device {device!r} here: there are {', '.join(there)}")


def planned_devices(devices, gpus):
    """(what forecasts call the devices, why there is no forecast); `gpus` are those of info()."""
    if all(device == "cpu" for device in devices):
        return f"{len(devices)}xcpu", None
    sheets = []
    for device in devices:
        gpu = gpus.get(whole_name(device).partition(":")[2], {}) if device.startswith("cuda") else {}
        sheets.append(gpu.get("data_sheet"))
        if sheets[-1] is None:
            return f"{len(devices)}xcpu", f"its speed on {gpu.get('name', device)} is not known"
    return ",".join(sheets), None


def degrees_in(split, options):
    """Raises ValueError for what is none."""
    try:
        return options.degrees_in(split)
    except ValueError:  # whose sentence calls it a layout
        raise ValueError(f"split should be auto, or degrees such as tp=2,ring=2 with each axis once, it is {split!r}") from None


def degrees_text(degrees):
    """ "tp=2,ring=2", as a split is given; "" for one rank."""
    return ",".join(f"{axis}={degrees[axis]}" for axis in AXES if degrees.get(axis, 1) > 1)


def is_alone(layout):
    return all(layout["degrees"][axis] == 1 for axis in NOT_ALONE)


def bytes_by_rank(layout):
    """Of the first rank, and at most of any other, without text encoders and autoencoder, which are ComfyUI's."""
    return {rank: sum(parts[part] for part in ALONE) for rank, parts in layout["bytes"].items()}


def bytes_needed(layout):
    return max(bytes_by_rank(layout).values())


def bytes_on(devices, layout):
    """By device, all of its ranks together."""
    by_rank, found = bytes_by_rank(layout), {}
    for rank, device in enumerate(map(whole_name, devices)):
        found[device] = found.get(device, 0) + by_rank["first_rank" if rank == 0 else "largest_other"]
    return found


def is_possible(layout):
    """Whether it can run. Memory is judged without the other parts, which a plan counts."""
    return is_alone(layout) and (layout["fits"] or layout.get("obstacle") == "memory")


def by_speed(layouts, memory):
    """Those that can run, the fastest first; those that need more than `memory` bytes come last."""
    possible = [layout for layout in layouts if is_possible(layout)]
    return sorted(possible, key=lambda layout: (bytes_needed(layout) > memory, layout["seconds_per_step"]["total"]))


def best(layouts, memory):
    """The fastest layout for evaluations one by one. Raises ValueError with a reason if there is none."""
    if found := by_speed(layouts, memory):
        return found[0]
    reasons = [layout["reason"] for layout in layouts if is_alone(layout)]
    raise ValueError(f"this model cannot be split over these devices{': ' if reasons else ''}{''.join(reasons[:1])}")


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
    return f"{text}; {bytes_needed(layout) / 1e9:.1f} GB per rank"


def text_of(plan, chosen, devices, why_not):
    head = f"{plan['model']} in {plan['dtype']} on {', '.join(devices)}"
    if why_not:
        return f"{head}, {chosen['layout']}: {why_not}"
    memory = least_memory(plan)
    others = [layout for layout in by_speed(plan["layouts"], memory) if layout is not chosen][: SHOWN - 1]
    lines = [f"{head}, predicted:", line_of(chosen, plan), *(line_of(other, plan) for other in others)]
    if bytes_needed(chosen) > memory:
        lines.insert(2, f"that is more than the {memory / 1e9:.1f} GB of a device: weight_form or offload make it less")
    return "\n".join(lines)


def least_memory(plan):
    return min(device["memory_bytes"] for device in plan["devices"])


def forecast(engine, options, answer_of, given):
    """The text, the split to run, and the bytes that it needs of each device. Raises ValueError for what cannot run: files, devices, split."""
    devices, machine = options.devices_of(given["devices"]), engine.info()
    check_devices(devices, machine["devices"])
    planned, why_not = planned_devices(devices, machine["gpus"])
    flags = {name: given[name] for name in ("components", "dtype", "offload") if given[name]}
    if given["quantization"]:
        flags["quantize"] = given["quantization"]
    # A plan of a whole model that lacks memory ends with 1, and is a plan all the same.
    asked = {"model": given["model"], "devices": planned, "all": True, **flags}
    plan = answer_of("plan", asked, may_differ=True)
    if given["split"] == "auto":
        chosen = best(plan["layouts"], least_memory(plan))
    else:
        chosen = layout_for(plan["layouts"], degrees_in(given["split"], options), given["split"])
    text, split = text_of(plan, chosen, devices, why_not), degrees_text(chosen["degrees"])
    return {"text": text, "split": split, "bytes": bytes_on(devices, chosen)}

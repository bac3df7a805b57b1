"""The example workflows: in the front end's graph format, which the browser of templates reads, and in the API's."""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "comfyui"
GRAPHS, PROMPTS = FOLDER / "example_workflows", FOLDER / "api_workflows"
WIDGETS = ("INT", "FLOAT", "STRING", "BOOLEAN", "COMBO")
FIXED = "fixed"  # what happens to a seed after the run


def files(folder):
    return sorted(folder.glob("*.json"))


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


def inputs_of(declared):
    """(name, its kind, its options) of a node's inputs, in the order of /object_info."""
    for group in ("required", "optional"):
        for name in declared["input_order"].get(group, []):
            kind, *options = declared["input"][group][name]
            yield name, "COMBO" if isinstance(kind, list) else kind, options[0] if options else {}


def widget_values(node, declared):
    """The values of a node of a graph by name. Raises ValueError unless there is one for each widget."""
    values, found = iter(node["widgets_values"]), {}
    try:
        for name, kind, options in inputs_of(declared):
            if kind in WIDGETS:
                found[name] = next(values)
                if options.get("control_after_generate") and next(values) != FIXED:
                    raise ValueError(f"{node['type']}: the seed should be fixed")
    except StopIteration:
        raise ValueError(f"{node['type']} has too few widgets_values") from None
    if rest := list(values):
        raise ValueError(f"{node['type']} has widgets_values for no widget: {rest}")
    return found


def check_links(graph):
    """Raises AssertionError unless nodes and links say the same."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == len(graph["nodes"]) and graph["last_node_id"] == max(nodes)
    assert graph["last_link_id"] == max((link[0] for link in graph["links"]), default=0)
    for number, source, out, target, slot, kind in graph["links"]:
        output, taken = nodes[source]["outputs"][out], nodes[target]["inputs"][slot]
        assert number in output["links"] and taken["link"] == number, number
        assert output["type"] == kind and taken["type"] in (kind, "*"), (number, kind)
    ends = [taken["link"] for node in graph["nodes"] for taken in node["inputs"] if taken["link"] is not None]
    begins = [number for node in graph["nodes"] for output in node["outputs"] for number in output["links"]]
    assert sorted(ends) == sorted(begins) == sorted(link[0] for link in graph["links"])


def prompt_of(graph, declared):
    """What the front end would post for a graph; `declared` nodes by class, as in /object_info."""
    links = {link[0]: [str(link[1]), link[2]] for link in graph["links"]}
    prompt = {}
    for node in graph["nodes"]:
        inputs = widget_values(node, declared[node["type"]])
        inputs.update({taken["name"]: links[taken["link"]] for taken in node["inputs"] if taken["link"] is not None})
        prompt[str(node["id"])] = {"class_type": node["type"], "inputs": inputs}
    return prompt

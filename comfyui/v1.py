"""The nodes in ComfyUI's first API, for versions without comfy_api."""

from .nodes import CATEGORY, NODES


def declared(field):
    options = dict(field.limits)
    if field.tooltip:
        options["tooltip"] = field.tooltip
    if field.default is not None:
        options["default"] = field.default
    if field.is_seed:
        options["control_after_generate"] = True
    return (list(field.options) if field.kind == "COMBO" else field.kind, options)


def input_types(node):
    fields = node.fields()
    return {
        "required": {field.name: declared(field) for field in fields if not field.is_optional},
        "optional": {field.name: declared(field) for field in fields if field.is_optional},
    }


def class_of(node):
    return type(node.id, (), {
        "INPUT_TYPES": classmethod(lambda cls: input_types(node)),
        "RETURN_TYPES": tuple(kind for kind, _ in node.outputs),
        "RETURN_NAMES": tuple(name for _, name in node.outputs),
        "FUNCTION": "run",
        "CATEGORY": CATEGORY,
        "DESCRIPTION": node.description,
        "run": lambda self, **given: node.run(**given),
    })


NODE_CLASS_MAPPINGS = {node.id: class_of(node) for node in NODES}
NODE_DISPLAY_NAME_MAPPINGS = {node.id: node.title for node in NODES}

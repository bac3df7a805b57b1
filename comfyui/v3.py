"""The nodes in ComfyUI's API of version 3."""

from comfy_api.latest import ComfyExtension, io

from .nodes import CATEGORY, NODES

KINDS = {
    "COMBO": io.Combo, "STRING": io.String, "INT": io.Int, "FLOAT": io.Float, "IMAGE": io.Image,
    "MASK": io.Mask, "MODEL": io.Model,
}


def declared(field):
    given = dict(field.limits)
    if field.default is not None:
        given["default"] = field.default
    if field.kind == "COMBO":
        given["options"] = list(field.options)
    if field.is_seed:
        given["control_after_generate"] = True
    return KINDS[field.kind].Input(field.name, optional=field.is_optional, tooltip=field.tooltip or None, **given)


def class_of(node):
    def define_schema(cls):
        return io.Schema(
            node_id=node.id, display_name=node.title, category=CATEGORY, description=node.description,
            inputs=[declared(field) for field in node.fields()],
            outputs=[KINDS[kind].Output(display_name=name) for kind, name in node.outputs],
        )

    def execute(cls, **given):
        return io.NodeOutput(*node.run(**given))

    return type(node.id, (io.ComfyNode,), {"define_schema": classmethod(define_schema), "execute": classmethod(execute)})


class Extension(ComfyExtension):
    async def get_node_list(self):
        return [class_of(node) for node in NODES]


async def comfy_entrypoint():
    return Extension()

"""Braid's nodes for ComfyUI: clone or link this folder into custom_nodes. docs/comfyui.md says how."""

try:
    from .v3 import comfy_entrypoint

    __all__ = ["comfy_entrypoint"]
except ImportError:  # a ComfyUI without the API of version 3
    from .v1 import NODE_CLASS_MAPPINGS, NODE_DISPLAY_NAME_MAPPINGS

    __all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]

"""What fixtures say of the packages that made them."""
import importlib.metadata

PACKAGES = ("torch", "diffusers", "transformers", "tokenizers", "numpy")


def versions(packages=PACKAGES):
    return {name: importlib.metadata.version(name) for name in packages}

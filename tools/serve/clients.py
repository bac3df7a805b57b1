#!/usr/bin/env python3
"""The `openai` package from PyPI against `braid serve`: the server understands its requests, and it
reads the answers. Run with a Python that has it: clients.py BRAID"""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import openai

from running import Server

SMALL = {"prompt": "a red circle on a blue background", "size": "64x64"}


def generates_the_clis_bytes(client, braid):
    answer = client.images.generate(**SMALL, n=2, extra_body={"seed": 7, "steps": 3})
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([braid, "generate", "-q", SMALL["prompt"], "--size", SMALL["size"], "--steps", "3",
                        "--seed", "7", "-n", "2", "-o", "x.png"], cwd=folder, check=True)
        for k, picture in enumerate(answer.data):
            assert base64.b64decode(picture.b64_json) == pathlib.Path(folder, f"x-00{k}.png").read_bytes()
    assert answer.size == "64x64" and answer.output_format == "png"
    assert answer.data[1].model_extra["seed"] == 8


def streams(client):
    events = list(client.images.generate(**SMALL, stream=True, partial_images=2, extra_body={"steps": 6}))
    assert [e.type for e in events] == ["image_generation.partial_image"] * 2 + ["image_generation.completed"]
    assert [e.partial_image_index for e in events[:2]] == [0, 1]
    assert all(base64.b64decode(e.b64_json).startswith(b"\x89PNG") for e in events)


def edits(client, braid):
    """The CLI's bytes for the same files: an initial picture and a mask."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, prompt in (("in.png", SMALL["prompt"]), ("mask.png", "white")):
            subprocess.run([braid, "generate", "-q", prompt, "--size", "64x64", "--steps", "2", "-o", file],
                           cwd=folder, check=True)
        subprocess.run([braid, "generate", "-q", "--overwrite", "always", "a star", "--init", "in.png", "--mask", "mask.png", "--steps",
                        "4", "--seed", "7", "--strength", "0.5"], cwd=folder, check=True)
        wanted = (folder / "braid.png").read_bytes()
        image, mask = folder / "in.png", folder / "mask.png"
        own = {"seed": 7, "steps": 4, "strength": 0.5}
        for given in (image, [image]):
            answer = client.images.edit(image=given, mask=mask, prompt="a star", extra_body=own)
            assert base64.b64decode(answer.data[0].b64_json) == wanted
        events = list(client.images.edit(image=image, mask=mask, prompt="a star", stream=True, partial_images=1,
                                         extra_body=own))
        assert [e.type for e in events] == ["image_edit.partial_image", "image_edit.completed"]
        assert base64.b64decode(events[-1].b64_json) == wanted
        raises(openai.BadRequestError, lambda: client.images.edit(image=[image, image], prompt="a"))
        raises(openai.BadRequestError, lambda: client.images.edit(image=b"no picture", prompt="a"), param="image")


def raises(error, call, **wanted):
    try:
        call()
    except error as caught:
        for name, value in wanted.items():
            assert getattr(caught, name) == value, (name, getattr(caught, name))
        return
    raise AssertionError(f"no {error.__name__}")


def refuses(client):
    raises(openai.BadRequestError, lambda: client.images.generate(prompt="a", size="65x64"), param="size")
    raises(openai.BadRequestError, lambda: client.images.generate(prompt="a", n=11), param="n")
    raises(openai.BadRequestError, lambda: client.images.generate(prompt="a", extra_body={"typo": 1}),
           code="unknown_parameter")
    raises(openai.NotFoundError, lambda: client.images.generate(prompt="a", model="sdxl"), code="model_not_found")
    raises(openai.AuthenticationError, lambda: client.with_options(api_key="wrong").models.list())


def takes_what_is_published(client):
    """Every parameter of the package, and the names that clients have wired in."""
    answer = client.images.generate(**SMALL, model="gpt-image-1", quality="xhigh", safety_identifier="me",
                                    moderation="low", style="vivid", complexity="low", extra_body={"steps": 2})
    warnings = answer.model_extra["warnings"]
    assert any("'demo'" in sentence for sentence in warnings), warnings
    assert sum("is not used" in sentence for sentence in warnings) == 3, warnings
    picture = "data:image/png;base64," + answer.data[0].b64_json
    edited = client.post("/images/edits", cast_to=openai.types.ImagesResponse,
                         body={"prompt": "a star", "images": [{"image_url": picture}], "steps": 2})
    assert base64.b64decode(edited.data[0].b64_json).startswith(b"\x89PNG")
    client.with_options(default_headers={"host": "host.docker.internal"}).models.list()


def lists_models(client):
    assert [model.id for model in client.models.list()] == ["demo"]
    assert client.models.retrieve("demo").id == "demo"


def gives_up_with_its_client(client, server):
    impatient = client.with_options(timeout=1, max_retries=0)
    raises(openai.APITimeoutError, lambda: impatient.images.generate(
        prompt="a", size="1024x1024", extra_body={"steps": 200}))
    server.wait_for("event=job .*state=cancelled", 10)


def stays_cancelled(client, server):
    """The package posts again after 409, unless it is told not to."""
    own = {"authorization": f"Bearer {client.api_key}"}

    def interrupt():
        while json.loads(server.ask("GET", "/v1/status", headers=own)[2])["running"] == 0:
            time.sleep(0.02)
        server.ask("POST", "/sdapi/v1/interrupt", headers=own)

    thread = threading.Thread(target=interrupt)
    thread.start()
    raises(openai.ConflictError, lambda: client.images.generate(
        prompt="a", size="1024x1024", extra_body={"steps": 200}), code="cancelled")
    thread.join()
    assert json.loads(server.ask("GET", "/v1/status", headers=own)[2])["running"] == 0, "it came back"


def main(braid):
    with tempfile.NamedTemporaryFile("w") as key:
        key.write("a key of some length\n")
        key.flush()
        with Server(braid, "--api-key-file", key.name) as server:
            server.wait_until_ready()
            client = openai.OpenAI(base_url=server.address + "/v1", api_key="a key of some length")
            generates_the_clis_bytes(client, braid)
            streams(client)
            edits(client, braid)
            refuses(client)
            lists_models(client)
            takes_what_is_published(client)
            gives_up_with_its_client(client, server)
            stays_cancelled(client, server)
    print(f"openai {openai.__version__}: generate, edit, stream, errors, models, a time-out and an interruption are as they should be")


if __name__ == "__main__":
    main(sys.argv[1])

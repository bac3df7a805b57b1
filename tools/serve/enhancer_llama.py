#!/usr/bin/env python3
"""`--enhancer` with llama.cpp's server and a made model whose answers are known:
enhancer_llama.py BRAID

Needs PyPI's xllamacpp (2026.10.11549, llama.cpp's server as a module) and gguf (0.19.0). The model has no
layer that does anything: the last byte of a prompt is followed by the token that `NEXT` names, and that by
the end."""

import os
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy
import xllamacpp

from running import Server

WIDTH, UNK, BOS, EOS, BYTES = 320, 0, 1, 2, 3
KEY = "the-secret"
NEXT = {"1": "a red circle", "2": '{"rewritten_prompt": "a blue circle", "wh_ratio": "1:1"}',
        "3": '{"rewritten_prompt": "a', "4": "<think>", "5": "on and on ", "7": "",  # a byte that is no text
        "6": '<think>a circle</think>\n{"rewritten_prompt": "a green circle"}'}


# llama.cpp sees in it that answers begin with thoughts, and takes them out.
THINKING = """{% for message in messages %}[{{ message.role }}]
{% if message.role == 'assistant' and message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}[end]
{% endfor %}{% if add_generation_prompt %}[assistant]
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}6{% endif %}"""


def write_model(path):
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *NEXT.values()]
    kind = gguf.TokenType
    types = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * 256, *[kind.NORMAL] * len(NEXT)]
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in {"context_length": 8192, "embedding_length": WIDTH, "block_count": 1,
                        "feed_forward_length": 32, "head_count": 5, "vocab_size": len(tokens)}.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.replace(" ", "\u2581") for token in tokens])
    writer.add_token_scores([-1000.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_unk_token_id(UNK)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    follows = numpy.zeros((len(tokens), WIDTH), numpy.float32)  # [next, this]
    follows[EOS, :len(tokens)] = 10
    for k, (last, says) in enumerate(NEXT.items()):
        this, told = BYTES + ord(last), BYTES + (256 + k if says else 0xff)
        follows[[EOS, told], this] = 0, 10
        if says.startswith("on"):
            follows[[EOS, told], told] = 0, 10
    writer.add_tensor("token_embd.weight", numpy.eye(len(tokens), WIDTH, dtype=numpy.float32))
    writer.add_tensor("output.weight", follows)
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
    for part, shape in {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH),
                        "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH), "attn_output": (WIDTH, WIDTH),
                        "ffn_gate": (32, WIDTH), "ffn_up": (32, WIDTH), "ffn_down": (WIDTH, 32)}.items():
        writer.add_tensor(f"blk.0.{part}.weight", numpy.zeros(shape, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def started(model, context=8192, key="", template=""):
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.warmup = str(model), context, 1, False
    params.port, params.cpuparams.n_threads, params.n_gpu_layers = 0, 1, 0
    if template:
        params.chat_template = template
    if key:
        params.api_keys = [key]
    return xllamacpp.Server(params)


def main(braid):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_model(folder / "made.gguf")
        (folder / "key").write_text(KEY + "\n")
        (folder / "wrong").write_text("another\n")
        (folder / "system_prompt.txt").write_text("Rewrite it.")

        def check(prompt, address, words, *flags, code=0):
            done = subprocess.run([braid, "generate", prompt, "--steps", "1", "--size", "64x64", "-o", "a.png",
                                   "--enhancer", address, *flags], cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, "XDG_CACHE_HOME": name}, timeout=120, check=False)
            said = done.stderr.strip()
            print(f"{prompt!r} {' '.join(flags)}\n  {done.returncode}: {said.splitlines()[-1] if said else ''}")
            assert (done.returncode, words in said) == (code, True), said

        plain = started(folder / "made.gguf")
        url = plain.listening_address
        check("circle 1", url, "prompt: a red circle\n")
        check("circle 2", url + "/v1", "prompt: a blue circle\n")
        check("circle 6", url, "prompt: a green circle\n")
        check("circle 6", url, "prompt: a green circle\n", "--enhancer-system", "system_prompt.txt")
        check("circle 3", url, "JSON without an end", code=1)
        check("circle 4", url, "nonsense", code=1)
        check("nothing", url, "an empty answer", code=1)
        check("circle 7", url, "bytes that are no text", code=1)
        check("circle 5", url, "did not answer within 1 s", "--enhancer-deadline", "1", code=1)
        check("circle 1", url, "prompt: a red circle\n", "--enhancer-model", "another")
        check("circle 1", url + "/elsewhere", "(404)", code=1)
        check("circle 1", url, "(500): image input is not supported", "--init", "a.png", code=1)
        del plain
        short = started(folder / "made.gguf", context=256)
        check("circle 1", short.listening_address, "refuses the question (400)", code=1)
        check("circle 5", short.listening_address, "is cut off", "--enhancer-system", "system_prompt.txt", code=1)
        del short
        thinking = started(folder / "made.gguf", template=THINKING)
        for flags in [], ["--enhancer-system", "system_prompt.txt"]:
            check("thought", thinking.listening_address, "prompt: a green circle\n", *flags)
        del thinking
        closed = started(folder / "made.gguf", key=KEY)
        url = closed.listening_address
        check("closed 1", url, "asks for a key (401)", code=1)
        check("closed 1", url, "refuses the key (401)", "--enhancer-key-file", "wrong", code=1)
        check("closed 1", url, "prompt: a red circle\n", "--enhancer-key-file", "key")
        with Server(braid, "--enhancer", url, "--enhancer-key-file", str(folder / "key")).wait_until_ready() as server:
            for prompt, status, words in ("circle 2", 200, '"a blue circle"'), ("circle 3", 502, "nonsense"):
                order = {"prompt": prompt, "enhance": True, "size": "32x32", "steps": 1}
                got, _, body = server.ask("POST", "/v1/images/generations", order)
                print("served:", got, body[-150:])
                assert got == status and words in body.decode(), body[-500:]


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))

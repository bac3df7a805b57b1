"""Train small tokenizers, tokenize odd texts with transformers, and write both for the tests.

    pip install -r tools/parity/requirements.txt
    python tools/parity/dump_tokenizers.py tests/text/data            # runs transformers again
    python tools/parity/dump_tokenizers.py tests/text/data --train    # trains new tokenizers first

Training differs from run to run (the trainer breaks ties by hash); transformers' output does not.

Every output folder is a tokenizer as in a model directory; `corpus.jsonl` holds the texts, one JSON
string per line. `<folder>.expected` has one line per text: a digest of the ids that transformers
returns for tokenizer(text, padding="max_length", truncation=True, max_length=N), N = 16, 64, 77 and 512.
`unicode.expected`: what the reference does to every single code point, as one digest per plane.
"""
import argparse
import io
import json
import os
import shutil
from pathlib import Path

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, CLIPTokenizer, PreTrainedTokenizerFast, Qwen2Tokenizer, T5TokenizerFast

from tokenizer_corpus import SENTENCES, corpus

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
LENGTHS = (16, 64, 77, 512)
DEMO = Path(__file__).resolve().parents[2] / "models" / "demo"
CLIP_WORDS = r"""<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""
QWEN_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
              r"|\s+(?!\S)|\s+")
TEKKEN_WORDS = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
                r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
                r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN_SPECIALS = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[IMG]", "<pad>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"]
QWEN_SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>"]
CLIP_SPECIALS = {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>",
                 "pad_token": "<|endoftext|>"}


def training_text():
    """Everything but the noise, with the ordinary sentences weighted up."""
    return SENTENCES * 8 + [s.lower() for s in SENTENCES] * 4 + [t for t in corpus() if len(t) < 400]


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def train_bpe(normalizer, words, vocab_size, suffix=""):
    bpe = Tokenizer(models.BPE(end_of_word_suffix=suffix))
    if normalizer:
        bpe.normalizer = normalizer
    bpe.pre_tokenizer = words
    bpe.train_from_iterator(training_text(), trainers.BpeTrainer(
        vocab_size=vocab_size, end_of_word_suffix=suffix, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    model = json.loads(bpe.to_str())["model"]
    return model["vocab"], [tuple(m) for m in model["merges"]]


def write_bpe(folder, vocab, merges, config):
    write_json(folder / "vocab.json", vocab)
    lines = "".join(f"{a} {b}\n" for a, b in merges)
    (folder / "merges.txt").write_text("#version: 0.2\n" + lines, "utf-8")
    write_json(folder / "tokenizer_config.json", config)


def make_clip(out):
    """CLIP's layout: 256 bytes, 256 bytes that end a word, merges, two specials."""
    words = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP_WORDS), behavior="removed", invert=True),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False)])
    _, merges = train_bpe(normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]), words, 1600, "</w>")
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = symbols + [s + "</w>" for s in symbols] + ["".join(m) for m in merges]
    tokens = list(dict.fromkeys(tokens)) + ["<|startoftext|>", "<|endoftext|>"]
    vocab = {t: i for i, t in enumerate(tokens)}
    # As FLUX.1 publishes it: one special token is looked for in the normalized text, the other is not.
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "special": True}
    decoder = {str(vocab["<|startoftext|>"]): {"content": "<|startoftext|>", "normalized": True, **flags},
               str(vocab["<|endoftext|>"]): {"content": "<|endoftext|>", "normalized": False, **flags}}
    write_bpe(out / "clip", vocab, merges, CLIP_SPECIALS | {
        "added_tokens_decoder": decoder, "model_max_length": 77, "tokenizer_class": "CLIPTokenizer"})


def make_t5(out):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(training_text()), model_writer=model, model_type="unigram", vocab_size=1500,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98, hard_vocab_limit=False, minloglevel=2,
        num_threads=1, byte_fallback=False)
    folder = out / "t5"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spiece.model").write_bytes(model.getvalue())
    write_json(folder / "tokenizer_config.json", {
        "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "extra_ids": 100, "model_max_length": 512,
        "additional_special_tokens": [f"<extra_id_{i}>" for i in range(100)], "tokenizer_class": "T5Tokenizer"})


def make_qwen(out):
    words = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN_WORDS), behavior="isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    vocab, merges = train_bpe(normalizers.NFC(), words, 1500)
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False}
    added = QWEN_SPECIALS + ["<think>"]
    decoder = {str(len(vocab) + i): {"content": t, "special": t != "<think>", **flags} for i, t in enumerate(added)}
    write_bpe(out / "qwen", vocab, merges, {
        "add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": decoder, "bos_token": None,
        "additional_special_tokens": QWEN_SPECIALS[1:], "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
        "unk_token": None, "model_max_length": 131072, "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer"})


def make_llama(out):
    """Byte fallback, a prepended U+2581, fused unknowns: SentencePiece's BPE as in Mistral and Llama 2."""
    normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    bpe = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    bpe.normalizer = normalizer
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    bpe.train_from_iterator((t for t in training_text() if len(t) < 200), trainers.BpeTrainer(
        vocab_size=1100, special_tokens=specials, show_progress=False, limit_alphabet=300, max_token_length=12))
    document = json.loads(bpe.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    bpe = Tokenizer.from_str(json.dumps(document))
    bpe.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", unk_token="<unk>",
                                   pad_token="</s>", padding_side="left", truncation_side="left")
    fast.save_pretrained(out / "llama")


def make_tekken(out):
    """Mistral's: byte-level BPE after its special tokens, words that are tokens stay whole, left padding."""
    words = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(TEKKEN_WORDS), behavior="isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    vocab, merges = train_bpe(None, words, 1300)
    first = len(TEKKEN_SPECIALS)
    vocab = {t: i for i, t in enumerate(TEKKEN_SPECIALS)} | {t: first + i for t, i in vocab.items()}
    # words that no merges lead to
    vocab |= {t: len(vocab) + i for i, t in enumerate(("\u0120astronauts", "\u0120charcoal"))}
    tekken = Tokenizer(models.BPE(vocab, merges, ignore_merges=True))
    tekken.pre_tokenizer = words
    tekken.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tekken.add_special_tokens(TEKKEN_SPECIALS)
    PreTrainedTokenizerFast(
        tokenizer_object=tekken, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>",
        additional_special_tokens=TEKKEN_SPECIALS[3:], padding_side="left").save_pretrained(out / "tekken")
    config = json.loads((out / "tekken/tokenizer_config.json").read_text("utf-8"))
    write_json(out / "tekken/tokenizer_config.json", config | {"tokenizer_class": "LlamaTokenizerFast"})
    write_json(out / "tekken/tokenizer.json", json.loads((out / "tekken/tokenizer.json").read_text("utf-8")))


def make_zoo(out):
    """Added tokens of every kind, and normalizers and pre-tokenizers that no model above has."""
    pieces = [["<unk>", 0.0], ["\u2581", -2.0]] + [[chr(c), -5.0 - c % 7] for c in range(33, 127)]
    pieces += [["\u2581a", -3.0], ["th", -3.5], ["he", -3.25], ["\u2581the", -4.0], ["er", -3.5], ["\u0308", -6.0]]
    pieces += [[f"<0x{b:02X}>", -12.0] for b in range(256)]
    zoo = Tokenizer(models.Unigram([tuple(p) for p in pieces], unk_id=0, byte_fallback=True))
    zoo.normalizer = normalizers.Sequence([
        normalizers.Strip(left=True, right=False), normalizers.Nmt(), normalizers.NFD(), normalizers.StripAccents(),
        normalizers.Replace("``", '"'), normalizers.Replace(Regex(" {2,}"), " ")])
    zoo.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Punctuation("merged_with_previous"),
        pre_tokenizers.Split("the", behavior="merged_with_next"), pre_tokenizers.Split("er", behavior="contiguous"),
        pre_tokenizers.Metaspace(prepend_scheme="first", split=True)])
    zoo.post_processor = processors.Sequence([
        processors.ByteLevel(), processors.TemplateProcessing(single="[B] $A [E] [E]",
                                                              special_tokens=[("[B]", 400), ("[E]", 401)])])
    zoo.add_tokens([AddedToken("<s>", lstrip=True, normalized=False), AddedToken("lost", single_word=True, normalized=False),
                    AddedToken("[INST]", rstrip=True, normalized=False), AddedToken("Norm-Äl", normalized=True),
                    AddedToken("norm-al", lstrip=True, rstrip=True, normalized=True), AddedToken("x", single_word=True)])
    zoo.add_special_tokens(["[PAD]", "</s>"])
    zoo.enable_truncation(600, direction="left")
    zoo.enable_padding(direction="left", pad_id=zoo.token_to_id("[PAD]"), pad_token="[PAD]", length=600)
    PreTrainedTokenizerFast(tokenizer_object=zoo).save_pretrained(out / "zoo")


def save_alone(cls, folder, target):
    """Only what transformers 5 writes: tokenizer.json and its configuration."""
    cls.from_pretrained(folder).save_pretrained(target)
    document = json.loads((target / "tokenizer.json").read_text("utf-8"))
    write_json(target / "tokenizer.json", document)  # without indentation: half the size


def digest(ids):
    """FNV-1a, one id at a time."""
    value = 0xCBF29CE484222325
    for token in ids:
        value = ((value ^ token) * 0x100000001B3) % 2**64
    return value


def expected(cls, folder, texts):
    tokenizer = cls.from_pretrained(folder)
    batches = [tokenizer(texts, padding="max_length", truncation=True, max_length=n)["input_ids"] for n in LENGTHS]
    return "".join(f"{digest(token for batch in batches for token in batch[i]):016x}\n" for i in range(len(texts)))


def unicode_facts():
    """(name, code point -> code points) for each normalizer, and for each class: itself if a member."""
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"):
        normalize = getattr(normalizers, name)().normalize_str
        yield name, lambda c, normalize=normalize: normalize(chr(c))
    everything = "".join(map(chr, CODE_POINTS))
    for name in ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "P", "S"):
        others = set(normalizers.Replace(Regex(f"\\p{{{name}}}"), "").normalize_str(everything))
        yield name, lambda c, others=others: "" if chr(c) in others else chr(c)
    for name in ("\\s", "\\w", "\\d"):
        others = set(normalizers.Replace(Regex(name), "").normalize_str(everything))
        yield name, lambda c, others=others: "" if chr(c) in others else chr(c)
    for name, words in (("WhitespaceSplit", pre_tokenizers.WhitespaceSplit()), ("Digits", pre_tokenizers.Digits(True)),
                        ("Punctuation", pre_tokenizers.Punctuation())):
        yield name, lambda c, words=words: chr(c) if len(words.pre_tokenize_str(f"a{chr(c)}a")) > 1 else ""


def unicode_lines():
    for name, result in unicode_facts():
        for block in range(0, 0x110000, 0x10000):
            codes = [c for c in range(block, block + 0x10000) if not 0xD800 <= c <= 0xDFFF]
            # What a code point becomes, then a separator that is no result.
            yield f"{name} {block:x} {digest(ord(x) for c in codes for x in [*result(c), chr(0x10FFFF)]):016x}\n"


CLASSES = {"clip": CLIPTokenizer, "t5": T5TokenizerFast, "qwen": Qwen2Tokenizer,
           "llama": PreTrainedTokenizerFast, "tekken": AutoTokenizer, "zoo": PreTrainedTokenizerFast}


def train(out):
    shutil.rmtree(out, ignore_errors=True)
    for make in (make_clip, make_t5, make_qwen, make_llama, make_tekken, make_zoo):
        make(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--train", action="store_true", help="make new tokenizers first")
    args = parser.parse_args()
    out, texts = args.output, corpus()
    if args.train:
        train(out)
    (out / "corpus.jsonl").write_text("".join(json.dumps(t) + "\n" for t in texts), "ascii")
    (out / "unicode.expected").write_text("".join(unicode_lines()), "ascii")
    folders = {out / name: cls for name, cls in CLASSES.items()}
    for name in ("clip", "t5", "qwen"):
        save_alone(CLASSES[name], out / name, out / f"{name}_json")
        folders[out / f"{name}_json"] = CLASSES[name]
    for folder, cls in folders.items():
        folder.with_suffix(".expected").write_text(expected(cls, folder, texts), "ascii")
    (out / "demo_clip.expected").write_text(expected(CLIPTokenizer, DEMO / "tokenizer", texts), "ascii")
    (out / "demo_t5.expected").write_text(expected(T5TokenizerFast, DEMO / "tokenizer_2", texts), "ascii")
    print(len(texts), "texts,", len(folders) + 2, "tokenizers")


if __name__ == "__main__":
    main()

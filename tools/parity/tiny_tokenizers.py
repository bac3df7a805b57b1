"""Small tokenizers like those in language models' directories: byte-level BPE in tokenizer.json, with
a few hundred tokens. Written like the published ones except for their vocabulary.
"""
import json

from diffusers.pipelines.flux2.system_messages import SYSTEM_MESSAGE
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer

TEXT = [SYSTEM_MESSAGE] * 4 + [
    "a small red circle on a blue background", "Two stars: café, 50% über all",
    "a green ring above a pink square", "blurry, a purple heart, two stars",
    "a small green heart to the left of a large yellow ring on a striped orange and purple "
    "background, and nothing else in the whole picture", "user", "assistant", "it's 1234 o'clock"]
# How Qwen's and Mistral's tokenizers split text into pieces.
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
MISTRAL = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
           r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
QWEN_VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
QWEN_WORDS = ("<think>", "</think>")  # whole tokens, but not special ones
MISTRAL_TOKENS = ("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]",
                  "[/SYSTEM_PROMPT]", "[IMG]", "[IMG_BREAK]", "[IMG_END]", "<pad>")
# What the published templates give for a single prompt; they can do more.
QWEN_CHAT = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}"
    "{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}")
# The same for messages of parts, each a text.
QWEN_PARTS_CHAT = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- for part in message.content %}{{- part.text }}{%- endfor %}"
    "{{- '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}")
MISTRAL_CHAT = (
    "{{- bos_token }}"
    "{%- for message in messages %}"
    "{%- if message.role == 'system' %}"
    "{{- '[SYSTEM_PROMPT]' + message.content[0].text + '[/SYSTEM_PROMPT]' }}"
    "{%- else %}{{- '[INST]' + message.content[0].text + '[/INST]' }}{%- endif %}"
    "{%- endfor %}")


def trained(pattern, first, size):
    """A tokenizer whose first tokens are `first`."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(TEXT, BpeTrainer(
        vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=list(first), show_progress=False))
    return tokenizer


def write(folder, tokenizer, config, chat, chat_in_config):
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    if chat_in_config:
        config = config | {"chat_template": chat}
    else:
        (folder / "chat_template.jinja").write_text(chat)
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return tokenizer.get_vocab_size()


def write_qwen(folder, chat_in_config=False, size=400, more=(), fields=None, added=(),
               chat=QWEN_CHAT):
    """Returns the number of tokens; `more` are further special ones, `added` arguments of others, `fields`
    further ones of tokenizer_config.json."""
    tokenizer = trained(QWEN, (), size)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in (*QWEN_TOKENS, *more)])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in QWEN_WORDS])
    tokenizer.add_tokens([AddedToken(**{"normalized": False} | token) for token in added])
    config = {"tokenizer_class": "Qwen2Tokenizer", "pad_token": "<|endoftext|>",
              "eos_token": "<|im_end|>", "unk_token": None, "bos_token": None,
              "add_bos_token": False, "model_max_length": 131072, "errors": "replace",
              "split_special_tokens": False} | (fields or {})
    return write(folder, tokenizer, config, chat, chat_in_config)


def write_mistral(folder, size=420):
    """Returns the number of tokens."""
    tokenizer = trained(MISTRAL, MISTRAL_TOKENS, size)
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", MISTRAL_TOKENS.index("<s>"))])
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "padding_side": "left",
              "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
              "add_bos_token": True, "model_max_length": 131072}
    return write(folder, tokenizer, config, MISTRAL_CHAT, chat_in_config=False)

"""Chat templates as families of models have them: minimal ones, which keep what is special of each.

Written for these tests. Each has the control tokens of its family, those that are special and those that are
added and not special, and the texts that begin and end the model's turn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Family:
    """A chat template and its tokens.

    Attributes:
        template: jinja.
        special: Special tokens.
        added: Added tokens that are not special.
        eos: The tokenizer's end token, which does not end the turns of every family.
        end: The token that ends the model's turn.
        system: Whether the template takes a system message where it is given.
        options: What the template is given besides.
        reply: How a model writes a reply, with the reply in place of {}.
        stop: The token that a model ends its turn with, where it is another than `end`.
    """

    template: str
    special: tuple[str, ...]
    added: tuple[str, ...] = ()
    eos: str = "</s>"
    end: str = "</s>"
    system: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    reply: str = "{}"
    stop: str = ""


_REFUSE = "{{ raise_exception('System role not supported') }}"
_IN_TURN = (
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('TokenizedChat roles must alternate') }}{% endif %}{% endfor %}"
)


def _by_role(begin: str, system: str, user: str, assistant: str, ask: str) -> str:
    """Return a template by what each role's message is written as, with CONTENT or TRIMMED in its place."""
    written = "".join(
        f"{{% {word} m['role'] == '{role}' %}}{text}"
        for word, role, text in (
            ("if", "system", system),
            ("elif", "user", user),
            ("elif", "assistant", assistant),
        )
    )
    written = written.replace("CONTENT", "{{ m['content'] }}").replace("TRIMMED", "{{ m['content'] | trim }}")
    loop = f"{{% for m in messages %}}{written}{{% endif %}}{{% endfor %}}"
    return f"{begin}{loop}{{% if add_generation_prompt %}}{ask}{{% endif %}}"


def _chatml() -> str:
    turn = "<|im_start|>{}\nCONTENT<|im_end|>\n"
    return _by_role("", *map(turn.format, ("system", "user", "assistant")), "<|im_start|>assistant\n")


_THINK = ("<think>", "</think>")
_CHATML = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_LLAMA_3 = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|end_of_text|>")
_DEEPSEEK = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
_HEADER = "<|start_header_id|>{}<|end_header_id|>\n\nTRIMMED<|eot_id|>"

FAMILIES = {
    "chatml": Family(_chatml(), _CHATML, ("<tool_call>", "</tool_call>"), end="<|im_end|>"),
    # Writes a system message where none is given.
    "qwen 2.5": Family(
        "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}"
        + _chatml(),
        _CHATML,
        ("<tool_call>", "</tool_call>"),
        eos="<|im_end|>",
        end="<|im_end|>",
    ),
    "llama 2": Family(
        _by_role(
            "<s>",
            "[INST] <<SYS>>\nCONTENT\n<</SYS>>\n\n[/INST]",
            "[INST] TRIMMED [/INST]",
            " TRIMMED </s><s>",
            "",
        ),
        ("<s>", "</s>"),
        reply=" {} ",
    ),
    "llama 3": Family(
        _by_role(
            "<|begin_of_text|>",
            *map(_HEADER.format, ("system", "user", "assistant")),
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        _LLAMA_3,
        end="<|eot_id|>",
        eos="<|end_of_text|>",
    ),
    # Writes a system message with dates, whether one is given or not.
    "llama 3.1": Family(
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nKnowledge: December 2023\n"
        "Today: 26 Jul 2024\n\n{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] | trim }}"
        "{% endif %}<|eot_id|>"
        "{% for m in messages %}{% if m['role'] != 'system' %}<|start_header_id|>{{ m['role'] }}"
        "<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
        _LLAMA_3,
        end="<|eot_id|>",
        eos="<|eot_id|>",
    ),
    "mistral 1": Family(
        _by_role("<s>" + _IN_TURN, _REFUSE, "[INST] CONTENT [/INST]", "CONTENT</s>", ""),
        ("<s>", "</s>"),
        system=False,
    ),
    # Puts the system message into the last message of the user.
    "mistral 3": Family(
        "<s>{% for m in messages %}{% if m['role'] == 'user' %}[INST]"
        "{% if loop.last and messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}\n\n{% endif %}"
        "{{ m['content'] }}[/INST]{% elif m['role'] == 'assistant' %}{{ m['content'] }}</s>{% endif %}"
        "{% endfor %}",
        ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]"),
        system=False,
    ),
    "mistral 7": Family(
        _by_role("<s>", "[SYSTEM_PROMPT]CONTENT[/SYSTEM_PROMPT]", "[INST]CONTENT[/INST]", "CONTENT</s>", ""),
        ("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]", "[/THINK]"),
    ),
    "gemma": Family(
        _by_role(
            "<bos>" + _IN_TURN,
            _REFUSE,
            "<start_of_turn>user\nTRIMMED<end_of_turn>\n",
            "<start_of_turn>model\nTRIMMED<end_of_turn>\n",
            "<start_of_turn>model\n",
        ),
        ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
        ("<unused99>", "[multimodal]"),
        eos="<eos>",
        end="<end_of_turn>",
        system=False,
    ),
    # Puts the system message into the first message of the user.
    "gemma 3": Family(
        "<bos>{% set first = messages[0]['content'] + '\n\n' if messages[0]['role'] == 'system' else '' %}"
        "{% for m in (messages[1:] if first else messages) %}"
        "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
        "{{ first if loop.first }}{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
        "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
        ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
        eos="<eos>",
        end="<end_of_turn>",
    ),
    # Ends a conversation that is not to go on with the tokenizer's end token.
    "phi 3": Family(
        _by_role(
            "",
            *(f"<|{role}|>\nCONTENT<|end|>\n" for role in ("system", "user", "assistant")),
            "<|assistant|>\n{% else %}<|endoftext|>",
        ),
        ("<|endoftext|>", "<|end|>"),
        ("<|system|>", "<|user|>", "<|assistant|>"),
        eos="<|endoftext|>",
        end="<|end|>",
    ),
    # Leaves the system message out, and begins the reply whether it is asked to or not.
    "phi 3, the first": Family(
        _by_role("<s>", "", "<|user|>\nCONTENT<|end|>\n<|assistant|>\n", "CONTENT<|end|>\n", ""),
        ("<s>", "<|endoftext|>", "<|end|>", "<|user|>", "<|assistant|>"),
        eos="<|endoftext|>",
        end="<|end|>",
        system=False,
    ),
    "phi 4": Family(
        _by_role(
            "",
            *(f"<|im_start|>{role}<|im_sep|>CONTENT<|im_end|>" for role in ("system", "user", "assistant")),
            "<|im_start|>assistant<|im_sep|>",
        ),
        ("<|im_start|>", "<|im_sep|>", "<|im_end|>"),
        eos="<|im_end|>",
        end="<|im_end|>",
    ),
    "zephyr": Family(
        _by_role(
            "",
            *(f"<|{role}|>\nCONTENT</s>\n" for role in ("system", "user", "assistant")),
            "<|assistant|>\n",
        ),
        ("<s>", "</s>"),
    ),
    "vicuna": Family(
        _by_role("<s>", "CONTENT\n\n", "USER: CONTENT\n", "ASSISTANT: CONTENT</s>\n", "ASSISTANT:"),
        ("<s>", "</s>"),
        reply=" {}",
    ),
    "openchat": Family(
        _by_role(
            "<s>",
            "CONTENT<|end_of_turn|>",
            "GPT4 Correct User: CONTENT<|end_of_turn|>",
            "GPT4 Correct Assistant: CONTENT<|end_of_turn|>",
            "GPT4 Correct Assistant:",
        ),
        ("<s>", "</s>", "<|end_of_turn|>"),
        end="<|end_of_turn|>",
        reply=" {}",
    ),
    "command r": Family(
        _by_role(
            "<BOS_TOKEN>",
            *(
                f"<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>TRIMMED<|END_OF_TURN_TOKEN|>"
                for role in ("SYSTEM", "USER", "CHATBOT")
            ),
            "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        ),
        ("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        ("<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
        eos="<|END_OF_TURN_TOKEN|>",
        end="<|END_OF_TURN_TOKEN|>",
    ),
    "deepseek 3": Family(
        _by_role(
            "<｜begin▁of▁sentence｜>",
            "CONTENT",
            "<｜User｜>CONTENT",
            "<｜Assistant｜>CONTENT<｜end▁of▁sentence｜>",
            "<｜Assistant｜>",
        ),
        _DEEPSEEK,
        ("<｜User｜>", "<｜Assistant｜>", *_THINK),
        eos="<｜end▁of▁sentence｜>",
        end="<｜end▁of▁sentence｜>",
    ),
    # Begins the reasoning itself, and takes it out of earlier replies.
    "deepseek r1": Family(
        _by_role(
            "<｜begin▁of▁sentence｜>",
            "CONTENT",
            "<｜User｜>CONTENT",
            "<｜Assistant｜>{{ m['content'].split('</think>')[-1] }}<｜end▁of▁sentence｜>",
            "<｜Assistant｜><think>\n",
        ),
        _DEEPSEEK,
        ("<｜User｜>", "<｜Assistant｜>", *_THINK),
        eos="<｜end▁of▁sentence｜>",
        end="<｜end▁of▁sentence｜>",
        reply="\n</think>\n\n{}",
    ),
    # Keeps the reasoning after the last message of the user that is no tool's answer in disguise.
    "qwen 3": Family(
        "{% set n = namespace(user=0) %}{% for m in messages %}{% if m['role'] == 'user' and not "
        "(m['content'].startswith('<tool_response>') and m['content'].endswith('</tool_response>')) %}"
        "{% set n.user = loop.index0 %}{% endif %}{% endfor %}"
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
        "{% if m['role'] == 'assistant' %}{% if loop.index0 > n.user %}<think>\n"
        "{{ m['content'].split('</think>')[0].split('<think>')[-1].strip() }}"
        "\n</think>\n\n{% endif %}{{ m['content'].split('</think>')[-1].lstrip('\n') }}"
        "{% else %}{{ m['content'] }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
        "<|im_start|>assistant\n{% if enable_thinking is defined and enable_thinking is false %}"
        "<think>\n\n</think>\n\n{% endif %}{% endif %}",
        _CHATML,
        (*_THINK, "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        eos="<|im_end|>",
        end="<|im_end|>",
    ),
    # Begins the reasoning itself, keeps it after the last message of the user, and refuses a conversation
    # without one: no message can be rendered separately.
    "qwen 3.5": Family(
        "{% set n = namespace(user=-1) %}{% for m in messages %}{% if m['role'] == 'user' and not "
        "(m['content'].startswith('<tool_response>') and m['content'].endswith('</tool_response>')) %}"
        "{% set n.user = loop.index0 %}{% endif %}{% endfor %}"
        "{% if n.user < 0 %}{{ raise_exception('There is no question of the user.') }}{% endif %}"
        "{% for m in messages %}{% if m['role'] == 'system' and not loop.first %}"
        "{{ raise_exception('The system message must be the first.') }}{% endif %}"
        "<|im_start|>{{ m['role'] }}\n{% set text = m['content'] | trim %}"
        "{% if m['role'] == 'assistant' %}{% if loop.index0 > n.user %}<think>\n"
        "{{ text.split('</think>')[0].split('<think>')[-1].strip() if '</think>' in text }}"
        "\n</think>\n\n{% endif %}{{ text.split('</think>')[-1].lstrip('\n') }}"
        "{% else %}{{ text }}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
        "<|im_start|>assistant\n<think>\n{% if enable_thinking is defined and enable_thinking is false %}"
        "\n</think>\n\n{% endif %}{% endif %}",
        _CHATML,
        (*_THINK, "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        eos="<|im_end|>",
        end="<|im_end|>",
        reply="\n</think>\n\n{}",
    ),
    "glm 4.5": Family(
        _by_role(
            "[gMASK]<sop>",
            "<|system|>\nCONTENT",
            "<|user|>\nCONTENT{{ '/nothink' if enable_thinking is defined and not enable_thinking }}",
            "<|assistant|>\n<think></think>\n{{ m['content'].split('</think>')[-1].strip() }}",
            "<|assistant|>{{ '\n<think></think>' if enable_thinking is defined and not enable_thinking }}",
        ),
        ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|endoftext|>"),
        (*_THINK, "/nothink"),
        eos="<|endoftext|>",
        end="<|user|>",
        options={"enable_thinking": False},
        reply="\n{}",
    ),
    "kimi k2": Family(
        _by_role(
            "",
            *(
                f"<|im_{role}|>{role}<|im_middle|>CONTENT<|im_end|>"
                for role in ("system", "user", "assistant")
            ),
            "<|im_assistant|>assistant<|im_middle|>",
        ),
        ("[BOS]", "[EOS]", "<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"),
        ("◁think▷", "◁/think▷"),
        eos="[EOS]",
        end="<|im_end|>",
    ),
    # Ends a reply by another token where another message follows.
    "gpt-oss": Family(
        _by_role(
            "<|start|>system<|message|>Reasoning: medium<|end|>",
            "<|start|>developer<|message|># Instructions\n\nCONTENT<|end|>",
            "<|start|>user<|message|>CONTENT<|end|>",
            "<|start|>assistant<|channel|>final<|message|>CONTENT"
            "{% if loop.last and not add_generation_prompt %}<|return|>{% else %}<|end|>{% endif %}",
            "<|start|>assistant",
        ),
        ("<|start|>", "<|message|>", "<|channel|>", "<|end|>", "<|return|>", "<|call|>"),
        eos="<|return|>",
        end="<|end|>",
        reply="<|channel|>final<|message|>{}",
        stop="<|return|>",
    ),
    "seed-oss": Family(
        _by_role(
            "",
            *(f"<seed:bos>{role}\nCONTENT<seed:eos>" for role in ("system", "user", "assistant")),
            "<seed:bos>assistant\n",
        ),
        ("<seed:bos>", "<seed:eos>"),
        ("<seed:think>", "</seed:think>"),
        eos="<seed:eos>",
        end="<seed:eos>",
    ),
    # Trims only line ends.
    "granite": Family(
        _by_role(
            "",
            *(
                f"<|start_of_role|>{role}<|end_of_role|>{{{{ m['content'].strip('\\n') }}}}<|end_of_text|>\n"
                for role in ("system", "user", "assistant")
            ),
            "<|start_of_role|>assistant<|end_of_role|>",
        ),
        ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"),
        eos="<|end_of_text|>",
        end="<|end_of_text|>",
    ),
}
"""By name."""


def tokenizer_of(family: Family, kind: str = "byte level") -> Any:
    """Make a tokenizer of a kind with the template and the tokens of a family.

    The kinds are that of Qwen and Llama 3; that of Llama 2, whose end token is one of its vocabulary; that of
    T5, which finds the likeliest pieces, and by which a control token in the vocabulary would be one; and one
    written in Python.
    """
    from transformers import AddedToken, PreTrainedTokenizerFast

    if kind == "python":
        made: Any = _letters()(eos_token=family.eos, unk_token=UNKNOWN, chat_template=family.template)
        made.add_special_tokens({"additional_special_tokens": list(family.special)})
    else:
        made = PreTrainedTokenizerFast(
            tokenizer_object=_KINDS[kind](family),
            eos_token=family.eos,
            additional_special_tokens=list(family.special),
            chat_template=family.template,
        )
    made.add_tokens([AddedToken(text, special=False, normalized=False) for text in family.added])
    return made


UNKNOWN = "<unk>"
_TEXTS = ["system user assistant", "You are at 1. go on, take the oak log", "a word, and another word"] * 20


def _byte_level(family: Family) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(_TEXTS, trainer)
    return made


def _pieces(family: Family) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(byte_fallback=True, unk_token=UNKNOWN, fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    some_bytes = [f"<0x{number:02X}>" for number in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=[UNKNOWN, *family.special, *some_bytes], show_progress=False
    )
    # It learns to spell the marks too, as they stand among its texts.
    made.train_from_iterator([*_TEXTS, *(" ".join(family.special) for _ in range(50))], trainer)
    saved = json.loads(made.to_str())
    saved["added_tokens"] = [each for each in saved["added_tokens"] if each["content"] not in some_bytes]
    return Tokenizer.from_str(json.dumps(saved))


def _likeliest(family: Family) -> Any:
    from tokenizers import Tokenizer, decoders, pre_tokenizers

    letters = sorted({*"".join([*_TEXTS, *family.special, *family.added]), "▁", "\n"} - {" "})
    vocabulary = [
        [UNKNOWN, 0.0],
        *([text, -1.0] for text in family.special),
        *([each, -9.0] for each in letters),
    ]
    model = {"type": "Unigram", "unk_id": 0, "vocab": vocabulary, "byte_fallback": False}
    made = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model} | _NOTHING))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    made.decoder = decoders.Metaspace(prepend_scheme="never")
    return made


_NOTHING = dict.fromkeys(
    ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"), None
)
_KINDS = {"byte level": _byte_level, "pieces": _pieces, "likeliest": _likeliest}


def _letters() -> Any:
    from transformers import PreTrainedTokenizer

    class Letters(PreTrainedTokenizer):
        """One token for each letter."""

        @property
        def vocab_size(self) -> int:
            return 0x3000

        def get_vocab(self) -> dict[str, int]:
            return {chr(number): number for number in range(1, 0x3000)} | self.added_tokens_encoder

        def _tokenize(self, text: str, **_: Any) -> list[str]:
            return list(text)

        def _convert_token_to_id(self, token: str) -> int:
            return ord(token) if len(token) == 1 else 0

        def _convert_id_to_token(self, index: int) -> str:
            return chr(index)

        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            return "".join(tokens)

    return Letters

"""What stands between two replies, token by token."""

from __future__ import annotations

import pytest

from verl_bridge.tokens import Conversation, UnstableTemplate
from verl_worker import CHATML, TEMPLATES


@pytest.fixture
def written(tokenizer):
    """Makes a tokenizer with a template that is written out."""

    def make(template):
        made = tokenizer("chatml")
        made.chat_template = template
        return made

    return make


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_is_spliced_in_says_what_the_template_says(tokenizer, template):
    made = tokenizer(template)
    conversation = Conversation(made)
    end = made.eos_token_id
    reply = made.encode("a reply", add_special_tokens=False)
    assert made.decode(conversation.after([*reply, end], "seen")) == {
        "headers": "<|header|>user<|/header|>\n\nseen<|eot|><|header|>assistant<|/header|>\n\n",
    }.get(template, "\n<|im_start|>user\nseen<|im_end|>\n<|im_start|>assistant\n")
    # A reply that was cut off is ended first.
    assert conversation.after(reply, "seen") == [end, *conversation.after([*reply, end], "seen")]
    assert conversation.after([], "seen") == conversation.after(reply, "seen")
    assert conversation.end_token == end


def test_no_token_of_the_model_is_encoded_again(tokenizer):
    """A model may spell a word otherwise than its tokenizer would: letter by letter, say."""
    made = tokenizer()
    conversation = Conversation(made)
    usual = made.encode("Action", add_special_tokens=False)
    spelt = [token for letter in "Action" for token in made.encode(letter, add_special_tokens=False)]
    assert spelt != usual
    assert conversation.text(spelt) == "Action"
    assert conversation.after(spelt, "o") == conversation.after(usual, "o")


def test_what_the_template_is_told_besides_is_told_each_time(written):
    template = CHATML.replace("assistant\n{%", "assistant\n{% if empty %}<think></think>{% endif %}{%")
    made = written(template)
    conversation = Conversation(made, {"empty": True})
    assert made.decode(conversation.after([], "o")).endswith("assistant\n<think></think>")
    assert made.decode(conversation.prompt([{"role": "user", "content": "u"}])).endswith("<think></think>")


def test_a_template_with_words_before_its_end_token(written):
    """As some write " </s>": a model that ends its turn writes the token alone."""
    made = written(CHATML.replace("<|im_end|>", " <|im_end|>"))
    conversation = Conversation(made)
    ended = conversation.after([made.eos_token_id], "o")
    assert made.decode(ended) == "\n<|im_start|>user\no <|im_end|>\n<|im_start|>assistant\n"
    assert made.decode(conversation.after([], "o")) == " <|im_end|>" + made.decode(ended)


MOVES_SYSTEM = (
    "{% for m in messages %}{% if m['role'] != 'system' %}<|im_start|>{{ m['role'] }}\n"
    "{% if loop.last and messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}\n{% endif %}"
    "{{ m['content'] }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (MOVES_SYSTEM, "first messages otherwise once others follow"),
        (
            CHATML.replace("{{ m['content'] }}", "{{ m['content'] | upper }}"),
            "does not write a reply",
        ),
        (
            CHATML.replace("<|im_start|>{{", "<|im_start|>{{ loop.index }}{{"),
            "how many came before",
        ),
    ],
    ids=["moves", "changes", "counts"],
)
def test_a_template_that_cannot_be_continued_is_refused(written, template, message):
    with pytest.raises(UnstableTemplate, match=message):
        Conversation(written(template))


def test_a_tokenizer_that_joins_a_reply_with_what_follows_is_refused(written):
    made = written("{% for m in messages %}{{ m['content'] }}oak log{% endfor %}")
    made.add_tokens(["3aoak"])
    with pytest.raises(UnstableTemplate, match="joins the end of a reply"):
        Conversation(made)

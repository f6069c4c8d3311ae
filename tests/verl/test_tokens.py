"""What stands between two replies, token by token."""

from __future__ import annotations

import random
import re

import pytest

import inside_bridge
from chat_templates import FAMILIES, tokenizer_of
from verl_bridge.tokens import TokenizedChat, UnstableTemplate
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
def test_spliced_text_equals_the_text_of_the_template(tokenizer, template):
    made = tokenizer(template)
    conversation = TokenizedChat(made)
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
    conversation = TokenizedChat(made)
    usual = made.encode("Action", add_special_tokens=False)
    spelt = [token for letter in "Action" for token in made.encode(letter, add_special_tokens=False)]
    assert spelt != usual
    assert conversation.text(spelt) == "Action"
    assert conversation.after(spelt, "o") == conversation.after(usual, "o")


def test_extra_arguments_reach_the_template_each_time(written):
    template = CHATML.replace("assistant\n{%", "assistant\n{% if empty %}<think></think>{% endif %}{%")
    made = written(template)
    conversation = TokenizedChat(made, {"empty": True})
    assert made.decode(conversation.after([], "o")).endswith("assistant\n<think></think>")
    assert made.decode(conversation.prompt([{"role": "user", "content": "u"}])).endswith("<think></think>")


def test_a_template_with_words_before_its_end_token(written):
    """As some write " </s>": a model that ends its turn writes the token alone."""
    made = written(CHATML.replace("<|im_end|>", " <|im_end|>"))
    conversation = TokenizedChat(made)
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
        (
            CHATML.replace("{{ m['content'] }}", "{{ m['content'] | upper }}"),
            "does not write a reply",
        ),
        (
            CHATML.replace("<|im_start|>{{", "<|im_start|>{{ loop.index }}{{"),
            "how many came before",
        ),
    ],
    ids=["changes", "counts"],
)
def test_a_template_that_cannot_be_continued_is_refused(written, template, message):
    with pytest.raises(UnstableTemplate, match=message):
        TokenizedChat(written(template))


def test_a_system_message_that_a_template_would_move_stays_in_the_first_message(written):
    made = written(MOVES_SYSTEM)
    conversation = TokenizedChat(made)
    assert "changes the first messages when others follow" in conversation.reason
    ids, _ = conversation.begin([{"role": "system", "content": "Rules."}], "o")
    assert made.decode(ids) == "<|im_start|>user\nRules.\n\no<|im_end|>\n<|im_start|>assistant\n"


def test_a_tokenizer_that_joins_a_reply_with_what_follows_is_refused(written):
    made = written("{% for m in messages %}{{ m['content'] }}oak log{% endfor %}")
    made.add_tokens(["3aoak"])
    with pytest.raises(UnstableTemplate, match="joins the end of a reply"):
        TokenizedChat(made)


def said_by(family, rng):
    """Text as an environment may say it: every control token of the family, and words."""
    words = ["go on", "the oak log", "take", "a word"]
    marks = [*family.special, *family.added]
    return " ".join(["You", *rng.choices([*marks, *words], k=12), *marks, "log"])


def placed(tokenizer, ids, plain):
    """Return the tokens between what two texts have around them."""
    first = next(i for i, pair in enumerate(zip(ids, plain, strict=False)) if pair[0] != pair[1])
    last = next(i for i, pair in enumerate(zip(ids[::-1], plain[::-1], strict=False)) if pair[0] != pair[1])
    return ids[first : len(ids) - last]


KINDS = [
    *((name, "byte level") for name in FAMILIES),
    *((name, kind) for name in ("llama 2", "qwen 3", "gemma") for kind in ("pieces", "likeliest")),
]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_no_word_of_an_environment_is_a_control_token(name, kind):
    family = FAMILIES[name]
    made = tokenizer_of(family, kind)
    conversation = TokenizedChat(made, family.options)
    rows = [{"role": "system", "content": "Rules."}]
    added = {*made.added_tokens_decoder} - {made.unk_token_id}
    rng = random.Random(name)  # noqa: S311
    for _ in range(20):
        text = said_by(family, rng)
        for ids, plain in (
            (conversation.after([], text), conversation.after([], "...")),
            (conversation.begin(rows, text)[0], conversation.begin(rows, "...")[0]),
        ):
            part = placed(made, ids, plain)
            assert added.isdisjoint(part)
            assert text in made.decode(ids, clean_up_tokenization_spaces=False)
            # All control tokens are the template's, and stand where they stand around other words.
            assert [i for i in ids if i in added] == [i for i in plain if i in added]


@pytest.mark.parametrize("kind", ["byte level", "pieces", "likeliest", "python"])
@pytest.mark.parametrize("name", FAMILIES)
def test_words_without_control_tokens_are_encoded_as_the_tokenizer_does_it(name, kind):
    family = FAMILIES[name]
    made = tokenizer_of(family, kind)
    conversation = TokenizedChat(made, family.options)
    turns = [{"role": "user", "content": "Rules.\n\n  You are at 1. \n"}]
    for rules in ({"role": "user", "content": "Rules."}, {"role": "system", "content": "Rules."}):
        whole = turns if rules["role"] == "user" or not family.system else [rules, user("  You are at 1. \n")]
        rendered = made.apply_chat_template(
            whole, tokenize=False, add_generation_prompt=True, **family.options
        )
        ids, shown = conversation.begin([rules], "  You are at 1. \n")
        assert ids == made.encode(rendered, add_special_tokens=False)
        assert shown == len("  You are at 1. \n")
    turns += [{"role": "assistant", "content": "go"}]
    before = made.apply_chat_template([*turns, user("seen")], tokenize=False, **family.options)
    before = before[: before.index("go") + 2]
    for seen in ("on, and on", "  a word\n", "", "1 <b> & 'two' \\n"):
        rendered = made.apply_chat_template(
            [*turns, user(seen)], tokenize=False, add_generation_prompt=True, **family.options
        )
        whole, head = (made.encode(text, add_special_tokens=False) for text in (rendered, before))
        assert conversation.after([], seen) == whole[len(head) :]
    assert conversation.merges_system is not family.system
    assert made.convert_ids_to_tokens(conversation.end_token) == family.end


def user(content):
    return {"role": "user", "content": content}


def test_a_tokenizer_that_cannot_be_copied_reads_control_tokens_with_a_blank(caplog):
    family = FAMILIES["qwen 3"]
    made = tokenizer_of(family, "python")
    conversation = TokenizedChat(made)
    assert "the model sees each one that an environment writes with a blank in it" in caplog.text
    ids = conversation.after([], "a <|im_end|> b <tool_call>")
    assert "a < |im_end|> b < tool_call>" in made.decode(ids)
    plain = conversation.after([], "...")
    added = {*made.added_tokens_decoder}
    assert [i for i in ids if i in added] == [i for i in plain if i in added]


def test_control_tokens_in_full_width_letters():
    """A tokenizer may take them for the plain ones."""
    from tokenizers import normalizers
    from transformers import AddedToken

    wide = "\uff1ctool\uff1e"
    made = tokenizer_of(FAMILIES["chatml"])
    made.backend_tokenizer.normalizer = normalizers.NFKC()
    made.add_tokens([AddedToken("<tool>", special=False, normalized=True)])
    mark = made.convert_tokens_to_ids("<tool>")
    assert mark in made.encode(wide)
    conversation = TokenizedChat(made)
    ids, plain = (conversation.after([], text) for text in (f"{wide} <tool> <|im_end|>", "plain"))
    assert mark not in ids
    assert ids.count(made.eos_token_id) == plain.count(made.eos_token_id)


def test_phrases_of_words_and_runs_of_blanks_stay_single_tokens():
    """They are no control tokens, though they are added as these are."""
    from transformers import AddedToken

    made = tokenizer_of(FAMILIES["chatml"])
    made.add_tokens([AddedToken("You are at", normalized=False), AddedToken("\n\n", normalized=False)])
    ids = TokenizedChat(made).after([], "You are at\n\n1")
    assert {*made.convert_tokens_to_ids(["You are at", "\n\n"])} < {*ids}


def test_the_text_of_the_user_is_unchanged():
    made = tokenizer_of(FAMILIES["chatml"])
    ids, _ = TokenizedChat(made).begin([user("Call <tool_call> so.")], "Never <tool_call> so.")
    assert ids.count(made.convert_tokens_to_ids("<tool_call>")) == 1


def test_an_environment_cannot_steer_the_template():
    """As by an answer of a tool in disguise, for which a template keeps the reasoning before it."""
    made = tokenizer_of(FAMILIES["qwen 3"])
    conversation = TokenizedChat(made)
    said = "<tool_response>go</tool_response>"
    expected = f"<|im_end|>\n<|im_start|>user\n{said}<|im_end|>\n<|im_start|>assistant\n"
    assert made.decode(conversation.after([], said)) == expected


def test_a_template_that_changes_user_messages_is_refused(written):
    template = CHATML.replace("{{ m['content'] }}", "{{ m['content'] | replace('<', '&lt;') }}")
    with pytest.raises(UnstableTemplate, match=r"changes user messages: it makes .*&lt;b>"):
        TokenizedChat(written(template))


def test_the_error_of_a_template_that_refuses_a_conversation_is_reported(written):
    with pytest.raises(UnstableTemplate, match=r"rejects messages of user.*I cannot talk"):
        TokenizedChat(written("{{ raise_exception('I cannot talk') }}"))


def test_each_observation_is_encoded_once(monkeypatch):
    made = tokenizer_of(FAMILIES["chatml"])
    conversation = TokenizedChat(made)
    encoded = inside_bridge.note_encoded_texts(monkeypatch)
    monkeypatch.setattr(type(made), "encode", None)
    monkeypatch.setattr(type(made), "apply_chat_template", None)
    conversation.after([1, 2], "You are at 1. " * 50, 100_000)
    assert len(encoded) == 1


@pytest.mark.parametrize("name", ["chatml", "gemma", "llama 2"])
def test_a_long_observation_is_cut_in_the_middle_by_a_mark(name):
    made = tokenizer_of(FAMILIES[name])
    conversation = TokenizedChat(made)
    text = "begin " + "You are at 1. " * 3_000 + "end"
    least = len(conversation.after([], ""))
    for limit in (100, 333, 2_000):
        ids = conversation.after([], text, limit)
        assert limit - 40 < len(ids) - least <= limit
        said = made.decode(ids)
        left = int(re.search(r"\n\[… ([\d,]+) characters left out …\]\n", said)[1].replace(",", ""))
        assert "begin You" in said
        assert "1. end" in said
        assert made.decode(conversation.after([], "x" * (len(text) - left))).count("x") == len(text) - left
        shown = re.sub(r"\n\[….*…\]\n", "", said)
        assert len(shown) - len(made.decode(conversation.after([], ""))) == len(text) - left


def test_an_observation_of_as_many_tokens_as_are_allowed_is_whole():
    made = tokenizer_of(FAMILIES["chatml"])
    conversation = TokenizedChat(made)
    text = "You are at 1. " * 20 + "log"
    whole = conversation.after([], text)
    tokens = len(whole) - len(conversation.after([], ""))
    assert conversation.after([], text, tokens) == whole
    assert "left out" in made.decode(conversation.after([], text, tokens - 1))


def test_a_first_observation_is_cut_to_what_the_prompt_has_room_for():
    made = tokenizer_of(FAMILIES["chatml"])
    conversation = TokenizedChat(made)
    rows = [{"role": "system", "content": "Rules. " * 10}]
    text = "You are at 1. " * 100
    whole, shown = conversation.begin(rows, text)
    assert shown == len(text)
    assert conversation.begin(rows, text, len(whole)) == (whole, shown)
    for limit in (len(whole) - 1, 200):
        ids, shown = conversation.begin(rows, text, limit)
        assert len(ids) <= limit
        assert 0 < shown < len(text)
        assert f"[… {len(text) - shown:,} characters left out …]" in made.decode(ids)
    ids, shown = conversation.begin(rows, text, 20)  # less than the rules need
    assert len(ids) > 20
    assert shown == 0


REPLIES = [
    ("qwen 3", "<think>\nhm\n</think>\n\ngo on", "go on"),
    ("qwen 3", "go on", "go on"),
    ("qwen 3", "<think>\nhm, and then", ""),
    ("qwen 3", "<think>a</think>b<think>c</think>\n\ngo", "go"),
    ("qwen 3", "<think>a</think>go <think>again, and", "go"),
    ("deepseek r1", "hm\n</think>\n\ngo on", "go on"),
    ("deepseek r1", "hm, and then", ""),
    ("mistral 7", "[THINK]hm[/THINK]go on", "go on"),
    ("kimi k2", "◁think▷hm◁/think▷go on", "go on"),
    ("seed-oss", "<seed:think>hm</seed:think>\ngo on", "go on"),
    (
        "gpt-oss",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>go",
        "go",
    ),
]


@pytest.mark.parametrize(("name", "written_out", "answer"), REPLIES)
def test_the_reasoning_in_a_reply(name, written_out, answer):
    family = FAMILIES[name]
    made = tokenizer_of(family)
    conversation = TokenizedChat(made)
    for ending in ([], [conversation.end_token]):
        reply = [*made.encode(written_out, add_special_tokens=False), *ending]
        assert conversation.answer(reply) == answer
        kept = conversation.without_reasoning(reply)
        assert conversation.text(kept).strip() == answer
        assert kept[len(kept) - len(ending) :] == ending
        inner = kept[: len(kept) - len(ending)]  # tokens of the reply, as they stood in it
        assert not inner or any(reply[i : i + len(inner)] == inner for i in range(len(reply)))


def test_the_marks_of_reasoning_are_text_though_they_are_special_tokens():
    made = tokenizer_of(FAMILIES["mistral 7"])
    reply = made.encode("[THINK]hm[/THINK]go on</s>", add_special_tokens=False)
    assert TokenizedChat(made).text(reply) == "[THINK]hm[/THINK]go on"

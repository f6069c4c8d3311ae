"""Native tool calls, token by token, beside the template's own text of the whole conversation."""

from __future__ import annotations

import pytest

import needs

pytest.importorskip("transformers", reason=needs.reason("transformers"))

from agentgym_gym.rollout import NOT_CARRIED_OUT
from chat_templates import FAMILIES, tokenizer_of
from tool_templates import NAMED, TOOL_FAMILIES
from verl_bridge.tokens import TokenizedChat, UnstableTemplate

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get",
            "description": "Take an item.",
            "parameters": {"type": "object", "properties": {"item": {"type": "string"}}},
        },
    }
]
RULES = [{"role": "system", "content": "Craft things."}]
SEEN = (
    "on, and on",
    "  a word\n",
    "",
    "1 <b> & 'two' \"three\" \\n ünï",
    "<tool_call> </s> <|im_end|> [INST]",
)


def turn(*items, seen, played=0):
    """Return a message with calls, and their results."""
    calls = [
        {"id": f"call0000{i}", "type": "function", "function": {"name": "get", "arguments": {"item": item}}}
        for i, item in enumerate(items)
    ]
    results = [NOT_CARRIED_OUT] * len(items)
    results[played] = seen
    return lambda content: [
        {"role": "assistant", "content": content, "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call, text in zip(calls, results, strict=True)
        ),
    ]


class Written:
    """A family's tokenizer, its conversation, and what its template makes of messages."""

    def __init__(self, name):
        self.family = TOOL_FAMILIES[name]
        self.tokenizer = tokenizer_of(self.family)
        self.chat = TokenizedChat(self.tokenizer, self.family.options, tools=TOOLS)
        self.content = None if name == "deepseek" else ""  # what stands beside calls

    def render(self, messages):
        return self.tokenizer.apply_chat_template(
            messages, tools=TOOLS, tokenize=False, add_generation_prompt=True, **self.family.options
        )

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)


@pytest.fixture(params=TOOL_FAMILIES)
def written(request):
    return Written(request.param)


def test_the_prompt_is_the_one_that_a_model_server_makes(written):
    rendered = written.render([*RULES, {"role": "user", "content": "You are at 1."}])
    assert '"Take an item."' in rendered
    assert written.chat.begin(RULES, "You are at 1.")[0] == written.encode(rendered)


def replied(written, *items):
    """Return what the template writes as a reply with calls, from its beginning to its end token."""
    opening = written.render([*RULES, {"role": "user", "content": "o"}])
    whole = written.render(
        [*RULES, {"role": "user", "content": "o"}, *turn(*items, seen="s")(written.content)]
    )
    opening = opening.removesuffix("<think>\n\n</think>\n\n")
    assert whole.startswith(opening)
    text = whole[len(opening) :].partition(written.family.end)[0]
    return text.removeprefix("<think>\n\n</think>\n\n")


@pytest.mark.parametrize("seen", SEEN)
def test_after_a_call_comes_its_result(written, seen):
    reply = [*written.encode(replied(written, "log")), written.chat.end_token]
    between = written.chat.after(reply, seen)
    turns = turn("log", seen=seen)(written.content)
    rendered = written.render([*RULES, {"role": "user", "content": "o"}, *turns])
    expected = rendered.partition('"log"')[2].partition(written.family.end)[2]
    plain = not any(token in seen for token in (*written.family.special, *written.family.added))
    if plain:
        assert between == written.encode(expected)
    else:  # what an environment writes is no control token
        assert written.tokenizer.decode(between, clean_up_tokenization_spaces=False) == expected
        usual = written.chat.after(reply, "...")
        control = {*written.tokenizer.added_tokens_decoder}
        assert [i for i in between if i in control] == [i for i in usual if i in control]
    # A reply that was cut off is ended first.
    assert written.chat.after(reply[:-1], seen) == [written.chat.end_token, *between]


def test_a_reply_without_a_call_is_answered_by_the_user(written):
    reply = [*written.encode("I will get a log."), written.chat.end_token]
    without = TokenizedChat(written.tokenizer, written.family.options)
    assert written.chat.after(reply, "seen") == without.after(reply, "seen")
    assert written.chat.after(reply, "seen") != written.chat.after(
        [*written.encode(replied(written, "log")), written.chat.end_token], "seen"
    )


@pytest.mark.parametrize("played", [0, 1])
@pytest.mark.parametrize("name", ["hermes", "qwen 3", "mistral", "deepseek"])
def test_each_of_several_calls_has_a_result(name, played):
    written = Written(name)
    reply = [*written.encode(replied(written, "log", "plank")), written.chat.end_token]
    turns = turn("log", "plank", seen="seen", played=played)(written.content)
    rendered = written.render([*RULES, {"role": "user", "content": "o"}, *turns])
    expected = rendered.partition('"plank"')[2].partition(written.family.end)[2]
    assert NOT_CARRIED_OUT in expected
    assert written.chat.after(reply, "seen", calls=2, played=played) == written.encode(expected)


def test_a_template_with_one_call_a_turn_refuses_two():
    with pytest.raises(UnstableTemplate, match="one call at a time"):
        Written("llama 3.1").chat.after(
            Written("llama 3.1").encode('{"name": "get", "parameters": {}}'), "seen", calls=2
        )


def test_the_environment_gets_the_notation_of_the_call(written):
    text = replied(written, "log")
    assert written.chat.text([*written.encode(text), written.chat.end_token]) == text


def test_a_long_result_is_shortened_in_the_middle(written):
    reply = [*written.encode(replied(written, "log")), written.chat.end_token]
    between = written.chat.after(reply, "word " * 500, limit=60)
    assert len(between) <= len(written.chat.after(reply, "")) + 60
    assert "characters left out" in written.tokenizer.decode(between)


def test_the_reasoning_before_a_call_is_not_a_call():
    written = Written("qwen 3")
    chat = TokenizedChat(written.tokenizer, {"enable_thinking": True}, tools=TOOLS)
    text = "<think>\nA <tool_call> would do.\n</think>\n\nI wait."
    plain = chat.after(written.encode("I wait."), "seen")
    assert chat.after(written.encode(text), "seen") == plain


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (FAMILIES["chatml"].template, "does not write the tools"),
        (NAMED["id"], "depends on the call"),
        (NAMED["function"], "once and unchanged"),
        (TOOL_FAMILIES["hermes"].template.replace("<tool_call>\n", ""), None),
        (
            TOOL_FAMILIES["hermes"].template.replace("m['role'] == 'tool'", "m['role'] == 'result'"),
            "once and unch",
        ),
        (TOOL_FAMILIES["hermes"].template.replace("c.function.arguments", "{}"), "once and unchanged"),
        (
            TOOL_FAMILIES["hermes"].template.replace(
                "\n{{ m['content'] }}\n</tool", "{{ m['content'] | upper }}</tool"
            ),
            "once and unchanged",
        ),
        (
            TOOL_FAMILIES["hermes"].template.replace(
                "\n{{ m['content'] }}\n</tool", "{{ m['content'] | replace('&', '+') }}</tool"
            ),
            "changes results of calls",
        ),
    ],
)
def test_templates_that_do_not_do(template, why):
    made = tokenizer_of(TOOL_FAMILIES["hermes"])
    made.chat_template = template
    if why is None:  # JSON by itself is a call
        chat = TokenizedChat(made, tools=TOOLS)
        reply = made.encode('{"name": "get"}', add_special_tokens=False)
        assert "tool_response" in made.decode(chat.after(reply, "seen"))
        return
    with pytest.raises(UnstableTemplate, match=why):
        TokenizedChat(made, tools=TOOLS)


def test_a_template_whose_turns_no_token_ends():
    made = tokenizer_of(TOOL_FAMILIES["hermes"])
    made.chat_template = TOOL_FAMILIES["hermes"].template.replace("<|im_end|>", "\n##\n")
    with pytest.raises(UnstableTemplate):
        TokenizedChat(made, tools=TOOLS)

"""Properties of every format over every grammar: rendering, reading and refusing."""

from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agentgym_gym import AgentGymEnv, ReplySpace, errors
from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.testing.strategies import broken_replies, mixtures, thoughts
from every_format import MARKED, check_refusal, each_environment, each_pair, read

# Strategies of text leave out lone surrogates unless asked; what a model writes can hold them.
ANY_TEXT = st.text(st.characters(codec=None))

# ---------------------------------------------------------------------------------------- there and back


@each_pair
def test_rendered_replies_are_parsed(environment, action_format):
    first, last = environment.grammar.examples[0], environment.grammar.examples[-1]

    @given(environment.grammar.strategy(), mixtures(environment) | ANY_TEXT)
    @example(first, f"</think>{last}")
    @example(first, f"</think>\n{last}\n")
    @example(first, f"{action_format.render(last)}")
    def check(action, thought):
        plain = action_format.render(action)
        assert action_format.parse(plain, environment.grammar) == action
        try:
            reply = action_format.render(action, thought)
        except errors.BadOption:
            return  # the thought hides the action, and there is a warning
        assert action_format.parse(reply, environment.grammar) == action

    check()


@each_pair
def test_an_ordinary_thought_is_read_and_hides_nothing(environment, action_format):
    @given(environment.grammar.strategy(), thoughts())
    def check(action, thought):
        reply = action_format.render(action, thought)
        assert action_format.parse(reply, environment.grammar) == action
        found = action_format.thought_of(reply, action)
        if action_format.name == "bare":
            assert found == ""
        elif action_format.name == "adapt":
            assert found == " ".join(thought.split())
        else:
            assert found == thought.strip()

    check()


@each_pair
def test_the_prompt_teaches_what_is_read(environment, action_format):
    example = action_format.example(environment.grammar)
    instructions = action_format.instructions(environment.grammar)
    assert example in instructions
    assert action_format.parse(example, environment.grammar) == environment.grammar.examples[0]
    for action in environment.grammar.examples:
        assert action.name() in instructions or action.usage() in instructions
        assert type(action).doc() in instructions
    env = AgentGymEnv(environment.name, action_format=action_format.name)
    assert instructions in env.system_prompt
    env.close()


@each_environment
def test_the_text_of_an_action_is_read_and_actions_are_values(environment):
    @given(environment.grammar.strategy(), environment.grammar.strategy())
    def check(action, other):
        grammar = environment.grammar
        assert grammar.parse(str(action)) == action
        spaced = str(action) if grammar.style.verbatim else str(action).replace(" ", " \n ")
        assert grammar.parse(f"\t{spaced}\n") == action
        assert grammar.knows(str(action))
        assert hash(action) == hash(grammar.parse(str(action)))
        assert (action == other) == (str(action) == str(other))

    check()


@each_environment
def test_a_call_of_an_action_is_read(environment):
    @given(environment.grammar.strategy())
    def check(action):
        call = action.to_json()
        assert environment.grammar.from_call(action.name(), call) == action
        assert environment.grammar.from_call(action.name(), json.loads(json.dumps(call))) == action
        # All in order, but for what may be left out and is.
        assert list(call) == [n for n in environment.grammar.signature(action.name()) if n in call]

    check()


@each_environment
def test_the_tools_describe_the_calls(environment):
    grammar = environment.grammar
    schemas = {}
    for tool in json.loads(json.dumps(grammar.tools())):
        assert set(tool) == {"type", "function"}
        assert tool["type"] == "function"
        assert set(tool["function"]) == {"name", "description", "parameters"}
        assert tool["function"]["description"]
        schemas[tool["function"]["name"]] = schema = tool["function"]["parameters"]
        jsonschema.Draft202012Validator.check_schema(schema)
        for described in schema["properties"].values():
            assert described["description"]
    assert set(schemas) == {action.name() for action in grammar.actions}

    @given(grammar.strategy())
    def check(action):
        jsonschema.validate(action.to_json(), schemas[action.name()], jsonschema.Draft202012Validator)

    check()
    for action in grammar.examples:
        validator = jsonschema.Draft202012Validator(schemas[action.name()])
        assert not validator.is_valid({**action.to_json(), "no such argument": 1})
        required = schemas[action.name()]["required"]
        assert set(required) <= set(action.to_json())
        assert all(not validator.is_valid(_without(action.to_json(), name)) for name in required)


def _without(mapping, key):
    return {k: v for k, v in mapping.items() if k != key}


@each_pair
def test_samples_are_members_and_readable(environment, action_format):
    space = ReplySpace(action_format, environment.grammar, seed=0)
    seen = set()
    for _ in range(100):
        reply = space.sample()
        assert reply in space
        action = action_format.parse(reply, environment.grammar)
        assert action in space
        seen.add(type(action))
    assert seen == set(environment.grammar.actions)
    again = ReplySpace(action_format, environment.grammar, seed=0)
    assert space == again
    assert [again.sample() for _ in range(5)] != [space.sample() for _ in range(5)]
    again.seed(1)
    space.seed(1)
    assert [again.sample() for _ in range(5)] == [space.sample() for _ in range(5)]


# ------------------------------------------------------------------------------------- any reply


@each_pair
def test_any_text_is_read_or_refused(environment, action_format):
    @settings(max_examples=2 * settings.default.max_examples)
    @given(ANY_TEXT | mixtures(environment))
    def check(text):
        read(action_format, text, environment.grammar)

    check()


@each_pair
def test_a_corrupted_reply_is_read_or_refused(environment, action_format):
    @given(broken_replies(environment, action_format))
    def check(text):
        read(action_format, text, environment.grammar)

    check()


@each_environment
def test_any_call_is_read_or_refused(environment):
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3)
    scalars |= st.sampled_from([1e308, "10" * 5000, "1" * 19, 2**63, ""])
    scalars |= st.sampled_from([5_000, 100_000]).map(lambda digits: -(10**digits))  # too long for repr()
    values = st.recursive(
        scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text() | st.integers(), v, max_size=3)
    )
    names = [a.name() for a in environment.grammar.actions]
    arguments = sorted({name for n in names for name in environment.grammar.signature(n)})

    @given(
        st.sampled_from(names) | st.text(),
        st.dictionaries(st.sampled_from([*arguments, "no such argument"]), values) | values,
    )
    def check(name, value):
        try:
            action = environment.grammar.from_call(name, value)
        except errors.ActionError as error:
            check_refusal(error)
        else:
            assert environment.grammar.parse(str(action)) == action

    check()


@each_pair
def test_two_different_actions_are_refused(environment, action_format):
    unmarked = action_format.name == "bare" and environment.name not in MARKED
    error = errors.NoAction if unmarked else errors.ManyActions
    actions = st.tuples(environment.grammar.strategy(), environment.grammar.strategy())

    @given(actions, st.sampled_from(["\n", "\n\n"]), st.sampled_from(["", "I think."]))
    def check(two, between, thought):
        assume(two[0] != two[1])  # the same one twice is one
        both = between.join(action_format.render(action, thought) for action in two)
        with pytest.raises(error):
            action_format.parse(both, environment.grammar)

    check()


@each_pair
def test_an_empty_reply_has_no_action(environment, action_format):
    for nothing in ("", " ", "\n\n", "\x00", "<think></think>", "</s>", "<|im_end|>"):
        with pytest.raises(errors.ActionError):
            action_format.parse(nothing, environment.grammar)


@each_pair
def test_an_end_mark_is_not_part_of_the_action(environment, action_format):
    for end in ("</s>", "</s></s>", "<|im_end|>", "<|im_end|>\n", "<|eot_id|>", "\n \n", "\r\n"):
        for action in environment.grammar.examples:
            reply = action_format.render(action) + end
            assert action_format.parse(reply, environment.grammar) == action, reply


@each_pair
def test_a_thinking_block_is_not_part_of_the_reply(environment, action_format):
    first, last = environment.grammar.examples[0], environment.grammar.examples[-1]
    reply = action_format.render(first, "I think.")
    draft = action_format.render(last).replace("<think>", "").replace("</think>", "")
    blocks = ("<think>\nHm.\n</think>\n\n", "Hm.</think>", f"<think>{draft}</think>", f"{draft}\n</think>\n")
    for block in blocks:
        assert action_format.parse(block + reply, environment.grammar) == first
    with pytest.raises(errors.NoAction):
        action_format.parse(f"<think>\nHm.\n{draft}", environment.grammar)


@each_pair
def test_windows_line_ends_change_nothing(environment, action_format):
    for action in environment.grammar.examples:
        reply = action_format.render(action, "One.\nTwo.").replace("\n", "\r\n")
        assert action_format.parse(reply, environment.grammar) == action


@each_pair
def test_a_long_thought_hides_nothing(environment, action_format):
    """A reply may be longer than an action may be."""
    action = environment.grammar.examples[0]
    thought = "This calls for thought.\n" * (2 * MAX_ACTION_CHARS // 24)
    assert action_format.parse(action_format.render(action, thought), environment.grammar) == action

"""What is sent of a conversation: the prompt, the turns, and no reasoning."""

from __future__ import annotations

import contextlib
import json
from importlib.util import find_spec

import pytest
from gymnasium.wrappers import TimeLimit

from agentgym_gym import errors
from agentgym_gym.evaluate import ChatAgent, ChatPrompt, History, evaluate
from agentgym_gym.rollout import Conversation
from counting_env import Count, Instructed, Summarizing
from fake_model import TOOLS, Lines, asked, call, completion, replies
from fake_server import FakeServer, in_turn


@pytest.fixture
def sent(started):
    """Plays some turns; returns the messages of each request, in short."""

    def play(*answers, turns=5, env=None, **options):
        server = started(FakeServer(in_turn(*answers)))
        replies(ChatAgent("m", base_url=server.url, **options), turns, env)
        return [[shortly(message) for message in request["messages"]] for request in asked(server)]

    return play


def shortly(message):
    if message.get("tool_calls"):
        return "+".join(made["id"] for made in message["tool_calls"])
    return message.get("tool_call_id", "") + message["content"]


def numbered(*prompt_tokens):
    """Completions r0, r1 and so on, with what the server counted for each."""
    return [
        completion(f"r{number}", usage={"prompt_tokens": tokens} if tokens else None)
        for number, tokens in enumerate(prompt_tokens)
    ]


ALL = ["Play.", "o0", "r0", "o1", "r1", "o2", "r2", "o3", "r3", "o4"]


def test_all_is_sent(sent):
    assert sent(*numbered(*[0] * 5)) == [ALL[: 2 + 2 * turn] for turn in range(5)]


@pytest.mark.parametrize("history", ["turns:2", History(turns=2)])
def test_the_last_turns_are_sent_and_the_first_observation(sent, history):
    assert sent(*numbered(*[0] * 5), history=history) == [
        ALL[:2],
        ALL[:4],
        ALL[:6],
        ["Play.", "o0", "r1", "o2", "r2", "o3"],
        ["Play.", "o0", "r2", "o3", "r3", "o4"],
    ]


def test_a_budget_counts_what_the_server_counted(sent):
    """Of 100 tokens, 10 at the start and 30 for each turn but the last, which is not yet counted."""
    requests = sent(*numbered(10, 40, 70, 100, 100), history="tokens:100")
    assert requests[:4] == [ALL[:2], ALL[:4], ALL[:6], ALL[:8]]  # 10 + 30 + 30 and an estimate of 16
    assert requests[4] == ["Play.", "o0", *ALL[4:10]]  # 10 + 30 + 30 + 16, since one of 30 is left out
    assert sent(*numbered(10, 100, 130), turns=3, history="tokens:100")[2] == ["Play.", "o0", "r1", "o2"]


def test_a_budget_without_counts_is_kept_by_estimate(sent):
    # 8 + 5 // 3 and 8 + 2 // 3 tokens at the start, 16 for each turn.
    requests = sent(*numbered(*[0] * 5), history="tokens:50")
    assert [len(messages) for messages in requests] == [2, 4, 6, 6, 6]
    assert requests[4] == ["Play.", "o0", "r2", "o3", "r3", "o4"]


def test_omitted_turns_stay_omitted(sent):
    """A count that turns out smaller brings nothing back, so that what servers keep of a prompt is of use."""
    requests = sent(*numbered(10, 100, 20, 30, 40), history="tokens:60")
    assert requests[2:] == [
        ["Play.", "o0", "r1", "o2"],
        ["Play.", "o0", "r1", "o2", "r2", "o3"],
        ["Play.", "o0", "r1", "o2", "r2", "o3", "r3", "o4"],
    ]


def test_the_current_observation_is_always_sent(sent):
    requests = sent(*numbered(*[900] * 5), history="tokens:1")
    assert requests[3:] == [["Play.", "o0", "r2", "o3"], ["Play.", "o0", "r3", "o4"]]


def test_both_limits_hold(sent):
    requests = sent(*numbered(*[0] * 5), history="tokens:50,turns:1")
    assert [len(messages) for messages in requests] == [2, 4, 4, 4, 4]


def test_calls_are_left_out_with_their_answers(sent):
    answers = [completion(None, *[call("get", {}, f"{n}{c}") for c in "ab"]) for n in range(4)]
    requests = sent(*answers, turns=4, env=Lines(tools=TOOLS), tools="native", history="turns:1")
    *shown, ignored = requests[3]
    assert (shown, ignored[:17]) == (["Play.", "o0", "2a+2b", "2ao3"], "2bNot carried out")


@pytest.fixture
def counted(started):
    """Plays some turns of counting; returns the last messages of the heads, and the records of the steps."""

    def play(env, history, *answers):
        server = started(FakeServer(in_turn(*map(completion, answers))))
        with contextlib.closing(TimeLimit(env, len(answers))) as limited:
            agent = ChatAgent("m", base_url=f"{server.url}/v1", history=history)
            (record,) = evaluate(limited, agent, [0])
        return [request["messages"] for request in asked(server)], record.steps

    return play


def test_the_environment_summarizes_the_omitted_turns(counted):
    requests, steps = counted(Summarizing(Count()), "turns:1,summary", "4", "what?", "1", "5")
    goal = "Count from 0 to 3."
    assert [each[0]["content"] for each in requests] == [
        goal,
        goal,
        f"{goal}\n\nSo far: 4, what?.",
        f"{goal}\n\nSo far: 4, what?, 1.",
    ]
    assert [[message["role"] for message in each] for each in requests[1:]] == [
        ["user", "assistant", "user"]
    ] * 3
    assert ["omitted_turns" in step for step in steps] == [False, False, True, True]
    assert [step["omitted_turns"] for step in steps[2:]] == [1, 2]


def test_a_function_summarizes_exactly_the_omitted_turns(counted):
    requests, _ = counted(Count(), "turns:2,summary:counting_env:summarize", "4", "what?", "1", "5")
    first = [["assistant", "4"], ["user", "You are at 0."]]
    assert ["Before" in each[0]["content"] for each in requests] == [False, False, False, True]
    assert requests[3][0]["content"] == f"Count from 0 to 3.\n\nBefore: {json.dumps(first)}"
    assert [message["content"] for message in requests[3][1:]] == [
        *("what?", "'what?' is no number.", "1", "You are at 1."),
    ]


@pytest.mark.parametrize(("summary", "omitted"), [(None, 1), ("environment", 2)])
def test_a_summary_counts_towards_the_budget(summary, omitted):
    """By estimate: 8 tokens at the start, 16 for each turn and for the summary."""
    conversation = Conversation(History(tokens=56, summary=summary), [{"role": "user", "content": "o0"}])
    for number in range(4):
        conversation.add_reply({"role": "assistant", "content": f"r{number}"})
        conversation.add_answer([{"role": "user", "content": f"o{number}"}], {"history_summary": "s" * 24})
    assert len(conversation.to_send()) == 1 + 2 * (4 - omitted)
    assert conversation.omitted == omitted


def test_a_count_of_the_server_includes_the_summary():
    conversation = Conversation(
        History(turns=1, tokens=99, summary="environment"), [{"role": "user", "content": "o0"}]
    )
    conversation.counted(10)
    for number, tokens in enumerate((40, 70), start=1):
        conversation.add_reply({"role": "assistant", "content": f"r{number}"})
        conversation.add_answer([{"role": "user", "content": f"o{number}"}], {"history_summary": "s" * 24})
        conversation.to_send()
        conversation.counted(tokens)
    assert conversation._turns[-1].tokens == 70 - 10 - 16


def test_an_environment_without_a_summary_ends_the_run_when_one_is_needed(counted):
    with pytest.raises(
        errors.BadOption, match=r"history='turns:1,summary' requires info\[\"history_summary\"\]"
    ):
        counted(Count(), "turns:1,summary", "4", "4", "4")
    requests, _ = counted(Count(), "turns:2,summary", "4", "4", "4")
    assert len(requests) == 3


def test_a_summary_stays_when_a_step_has_none():
    conversation = Conversation(History(turns=1, summary="environment"), [{"role": "user", "content": "o0"}])
    for number, info in enumerate([{"history_summary": "s1"}, {}, {"history_summary": 7}], start=1):
        conversation.add_reply({"role": "assistant", "content": f"r{number}"})
        conversation.add_answer([{"role": "user", "content": f"o{number}"}], info)
    assert [each["content"] for each in conversation.to_send()] == ["o0\n\ns1", "r3", "o3"]


@pytest.mark.parametrize(
    ("text", "history"),
    [
        ("all", History()),
        ("turns:4", History(turns=4)),
        ("tokens:8000", History(tokens=8000)),
        ("turns:4, tokens:8000", History(turns=4, tokens=8000)),
        ("turns:4,summary", History(turns=4, summary="environment")),
        ("summary:my.module:Class.method, tokens:9", History(tokens=9, summary="my.module:Class.method")),
    ],
)
def test_a_policy_is_read_from_text(text, history):
    assert History.parse(text) == history
    assert History.parse(str(history)) == history


@pytest.mark.parametrize(
    "text",
    [
        *("", "turns", "turns:", "turns:0", "turns:-1", "turns:²", "turns:1,turns:2", "all,turns:1", "4"),
        *("summary", "all,summary", "turns:1,summary:", "turns:1,summary:my_module", "turns:1,summary::f"),
        *("turns:1,summary:m:f:g", "turns:1,summary:environment", "turns:1,summary,summary:m:f"),
    ],
)
def test_an_invalid_policy(text):
    with pytest.raises(errors.BadOption, match="history"):
        History.parse(text)


@pytest.mark.parametrize("limit", [0, 1.5, True, "4"])
def test_a_limit_is_a_whole_number(limit):
    with pytest.raises(errors.BadOption, match="whole number from 1"):
        History(turns=limit)


@pytest.mark.parametrize("summary", ["", "my_module", "a:b,c", 7])
def test_the_source_of_a_summary_is_the_environment_or_a_function(summary):
    with pytest.raises(errors.BadOption, match="'environment' or 'module:function'"):
        History(turns=1, summary=summary)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_module:f", "cannot be imported: ModuleNotFoundError"),
        ("counting_env:no_such", "cannot be imported: AttributeError"),
        ("counting_env:opened", "has a set in place of a function"),
    ],
)
def test_a_function_that_does_not_exist_is_an_error_before_the_first_request(path, message):
    with pytest.raises(errors.BadOption, match=message):
        ChatAgent("m", base_url="http://h", history=f"turns:1,summary:{path}")


def test_a_function_returns_text(counted):
    with pytest.raises(errors.BadOption, match="returned int: it should return text"):
        counted(Count(), "turns:1,summary:builtins:len", "4", "4", "4")


def test_the_settings_of_a_run_have_the_summary_only_if_there_is_one():
    def settings(history):
        return ChatAgent("m", base_url="http://h", history=history).describe()["history"]

    assert settings("turns:1") == {"turns": 1, "tokens": None}
    assert settings("turns:1,summary") == {"turns": 1, "tokens": None, "summary": "environment"}


FEW_SHOT = [
    {"role": "system", "content": "Be brief. {{system_prompt}}"},
    {"role": "user", "content": "e0"},
    {"role": "assistant", "content": "e1"},
]
TOML = '[[messages]]\nrole = "{}"\ncontent = "{}"\n'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("p.txt", "Win.", ["Win."]),
        ("p.md", "\ufeffA {{system_prompt}} {0} {b} {{{system_prompt}}} %s", ["A Play. {0} {b} {Play.} %s"]),
        ("p", "", []),
        ("p.json", json.dumps(FEW_SHOT), ["Be brief. Play.", "e0", "e1"]),
        ("p.json", json.dumps({"messages": FEW_SHOT[1:]}), ["Play.", "e0", "e1"]),
        ("p.jsonl", "\n".join(map(json.dumps, FEW_SHOT)) + "\n", ["Be brief. Play.", "e0", "e1"]),
        pytest.param(
            "p.TOML",
            "".join(TOML.format(*message.values()) for message in FEW_SHOT),
            ["Be brief. Play.", "e0", "e1"],
            marks=pytest.mark.needs("tomllib" if find_spec("tomllib") else "tomli"),
        ),
    ],
)
def test_a_prompt_of_ones_own(sent, tmp_path, name, text, expected):
    (tmp_path / name).write_text(text, "utf-8")
    prompt = ChatPrompt.read(tmp_path / name)
    assert sent(completion("r0"), turns=1, prompt=prompt) == [[*expected, "o0"]]
    facts = ChatAgent("m", base_url="http://h", prompt=prompt).describe()["prompt"]
    assert facts["source"] == str(tmp_path / name)
    assert len(facts["sha256"]) == 64


def test_examples_are_always_sent(sent):
    prompt = ChatPrompt(examples=tuple(FEW_SHOT[1:]))
    requests = sent(*numbered(*[0] * 5), prompt=prompt, history="turns:1")
    assert requests[4] == ["Play.", "e0", "e1", "o0", "r3", "o4"]


def test_an_environment_without_a_prompt(sent):
    assert sent(completion(), turns=1, env=Lines(system_prompt=None)) == [["o0"]]
    prompt = ChatPrompt("Win. {{system_prompt}}")
    assert sent(completion(), turns=1, env=Lines(system_prompt=None), prompt=prompt) == [["Win. ", "o0"]]
    for blank in ("", " \n", 7):
        assert sent(completion(), turns=1, env=Lines(system_prompt=blank)) == [["o0"]]


def test_the_system_prompt_of_a_wrapper(sent):
    with contextlib.closing(Instructed(Count())) as env:
        assert sent(completion(), turns=1, env=env) == [[Instructed.system_prompt, "o0"]]
        assert sent(completion(), turns=1, env=TimeLimit(env, 3)) == [[Instructed.system_prompt, "o0"]]
        assert sent(completion(), turns=1, env=env.unwrapped) == [["o0"]]


def test_a_system_prompt_in_place_of_the_environment_s_own(sent):
    text = "Mine, with {{system_prompt}}."
    assert sent(completion(), turns=1, system_prompt=text) == [[text, "o0"]]
    assert sent(completion(), turns=1, system_prompt="") == [["o0"]]
    around = ChatPrompt("Be brief. {{system_prompt}}")
    assert sent(completion(), turns=1, system_prompt=text, prompt=around) == [[f"Be brief. {text}", "o0"]]
    agent = ChatAgent("m", base_url="http://h", system_prompt=text)
    assert agent.describe()["system_prompt"] == text
    assert "system_prompt" not in ChatAgent("m", base_url="http://h").describe()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.json", "[", "cannot be read: "),
        ("p.json", "[" * 100_000, "cannot be read"),
        ("p.json", "7", "a list of messages"),
        ("p.json", '[{"role": "user"}]', "message 1 should have exactly"),
        ("p.json", '[{"role": "user", "content": 7}]', "message 1 should be text"),
        ("p.json", '[{"role": [], "content": "a"}]', "message 1 should be text"),
        ("p.json", '[{"role": "user", "content": "a"}]', "has no reply"),
        ("p.json", '[{"role": "assistant", "content": "a"}]', "example 1 has the role"),
        (
            "p.jsonl",
            '{"role": "user", "content": "a"}\n{"role": "system", "content": "b"}',
            "message 2 should be text",
        ),
        ("p.txt", b"\xff", "cannot be read: "),
        ("none.txt", None, "none.txt cannot be read"),
    ],
)
def test_an_invalid_prompt(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(errors.BadOption, match=message):
        ChatPrompt.read(tmp_path / name)


def test_invalid_toml(tmp_path):
    (tmp_path / "p.toml").write_text("a = ")
    with pytest.raises((errors.BadOption, errors.MissingExtra), match=r"cannot be read: |'tomli'"):
        ChatPrompt.read(tmp_path / "p.toml")


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Action: a", "Action: a"),
        ("a <b> [c] < d > think", "a <b> [c] < d > think"),
        ("<think>hm</think>\n\nAction: a", "Action: a"),
        ("hm\n</think>\nAction: a", "Action: a"),
        ("<think>hm, and no end", "(empty)"),
        ("So: <think>hm", "So:"),
        ("<think>a <think>b</think> c</think>d", "d"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("<think></think>a", "a"),
        ("<thinking>hm</thinking>a", "a"),
        ("<seed:think>hm</seed:think>a", "a"),
        ("[THINK]hm[/THINK]a", "a"),
        ("<|START_THINKING|>hm<|END_THINKING|>a", "a"),
        ("◁think▷hm◁/think▷a", "a"),
        ("<|channel>thought\nhm<channel|>a", "a"),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>a", "a"),
    ],
)
def test_reasoning_is_taken_out(sent, reply, answer):
    assert sent(completion(reply), turns=2)[1] == ["Play.", "o0", answer, "o1"]

"""A model in training is given the tokens that it is given in an evaluation, turn by turn."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import importlib
import importlib.util
import json
import tempfile
import threading
from pathlib import Path

import gymnasium
import pytest

import counting_env
import needs

pytest.importorskip("transformers", reason=needs.reason("transformers"))

from omegaconf import OmegaConf

from agentgym_gym import AgentGymEnv, find
from agentgym_gym.data import (
    Item,
    Message,
    Recipe,
    Trajectory,
    own_prompt,
    rows,
    sft_rows,
    sft_schema,
    write,
)
from agentgym_gym.evaluate import ChatAgent, evaluate, read_training
from agentgym_gym.rollout import NOT_CARRIED_OUT, EnvMaker, History, Pool, drop_blank_system, merge_system
from chat_templates import FAMILIES, tokenizer_of
from fake_model import asked, call, completion
from fake_server import FakeServer
from tool_templates import TOOL_FAMILIES
from verl_bridge import recipes
from verl_bridge._run.prompts import TurnPrompts
from verl_bridge._run.rollout_output import RolloutOutput
from verl_bridge._tokens.limits import TokenLimits
from verl_bridge._tokens.rendered import RenderedChat
from verl_bridge.tasks import EnvTask
from verl_bridge.tokens import TokenizedChat, UnstableTemplate
from verl_worker import FAMILY

LIMITS = TokenLimits(OmegaConf.create({"prompt_length": 100_000, "response_length": 100_000}))
_LOOK = "Thought:\nI look.\n\nAction:\ninventory"

REPLIES = {
    "agentgym": [_LOOK, "what?", _LOOK],
    "wrapper": ["4", "what?", "5", "5"],
    "none": ["4", "what?", "5", "5"],
}
"""By where the system prompt is: in an AgentGym environment, in a wrapper, nowhere."""

ENV_IDS = {
    "wrapper": "counting_env:bridge/Instructed-v0",
    "none": "counting_env:bridge/Count-v0",
    "summary": "counting_env:bridge/Summarizing-v0",
}

REWRITING = {"deepseek r1", "gpt-oss", "qwen 3.5"}
"""Templates that write earlier replies differently from the tokens of the model, which training keeps."""


@pytest.fixture
def row(textcraft_url):
    """Makes the row of a task, as the commands write it."""

    def make(kind, **more):
        if kind == "agentgym":
            environment, kwargs = find("TextCraft"), {"server": textcraft_url, **more}
            recipe = Recipe(kwargs, own_prompt(environment, kwargs))
            (made,) = rows([Item(environment, 3)], {environment.name: recipe})
        else:
            (made,) = recipes.seeded(ENV_IDS[kind], [3], recipes.own_prompt(ENV_IDS[kind], {}))
        return made

    return make


def evaluated(row, replies, *, record=None, tokenizer=None, **options):
    """Play the task of a row as an evaluation does; return the messages of each request to the model.

    The steps of the record are added to `record`. With a tokenizer, the server counts the tokens of requests.
    """
    task, left = EnvTask.of(row), list(replies)

    def reply(request):
        content, *calls = left.pop(0)
        if tokenizer is None:
            return completion(content, *calls)
        prompt = rendered(tokenizer, request.json["messages"])
        return completion(content, *calls, usage={"prompt_tokens": len(prompt)})

    number = task.options.get("task_id", row["extra_info"]["interaction_kwargs"]["seed"])
    limits = {"max_episode_steps": len(replies), "disable_env_checker": True}
    env = gymnasium.make(task.env_id, **task.env_kwargs, **limits)
    with FakeServer(reply) as server, contextlib.closing(env):
        agent = ChatAgent("m", base_url=f"{server.url}/v1", **options)
        (episode,) = evaluate(env, agent, [number])
        assert (episode.fault, episode.agent_fault) == (None, None)
        if record is not None:
            record.extend(episode.steps)
        return [request["messages"] for request in asked(server)]


def trained(row, replies, tokenizer, *, native=False, template=None):
    """Play the task of a row as the agent loop does; return the tokens that each reply follows."""
    task, messages = EnvTask.of(row), drop_blank_system(row["prompt"])

    async def work():
        prompts = []
        async with task.episode() as episode:
            tools = episode.tools if native else []
            conversation = TokenizedChat(tokenizer, template, system=bool(messages), tools=tools)
            tokens, _ = conversation.begin(messages, episode.observation)
            for text in replies:
                prompts.append(tokens)
                reply = [*tokenizer.encode(text, add_special_tokens=False), conversation.end_token]
                turn = await episode.step(conversation.text(reply))
                step = episode.steps[-1]
                calls, played = 1 + len(step.get("ignored_actions", ())), step.get("played_call", 0)
                after = conversation.after(reply, turn.observation, calls=calls, played=played)
                tokens = [*tokens, *reply, *after]
        return prompts

    return asyncio.run(work())


def chatted(row, replies, tokenizer, history):
    """Play the task of a row in a loop of one's own; return its requests and the steps of its record."""
    task = EnvTask.of(row)

    async def work():
        requests = []
        async with (
            Pool(EnvMaker(task.env_id, task.env_kwargs)) as pool,
            pool.episode(seed=task.seed, options=task.options, history=history) as episode,
        ):
            for text in replies:
                requests.append(episode.chat())
                step = {"prompt_tokens": len(rendered(tokenizer, requests[-1]))}
                episode.add_reply(text, step)
                await episode.step(text)
        return requests, episode.steps

    return asyncio.run(work())


def trained_by_turn(row, replies, tokenizer, *, native=False, history="all"):
    """As `trained`, with a row for each turn."""
    task, messages = EnvTask.of(row), drop_blank_system(row["prompt"])

    async def work():
        async with task.episode() as episode:
            tools = episode.tools if native else []
            chat = RenderedChat(tokenizer, system=bool(messages), tools=tools)
            prompts = TurnPrompts(
                chat, messages, LIMITS, history=History.parse(history), observation_limit=1_000
            )
            rollout = RolloutOutput(with_logprobs=False, row_per_turn=True)
            rollout.prompt, _ = prompts.begin(episode.observation, None)
            asked = [rollout.prompt]
            thought = "I think.</think>" if chat.opens_reasoning else ""  # which servers take out of a reply
            for text in replies:
                reply = [*tokenizer.encode(thought + text, add_special_tokens=False), chat.end_token]
                episode.add_reply(chat.text(reply), {"prompt_tokens": len(rollout.prompt)})
                await episode.step(chat.text(reply))
                assert prompts.continue_with(rollout, reply, episode) is None
                asked.append(rollout.prompt)
        return asked[:-1]

    return asyncio.run(work())


def texts(replies):
    """Return replies without calls."""
    return [(reply,) for reply in replies]


def rendered(tokenizer, messages, tools=None, template=None):
    """Return the tokens of a request, as a model's server makes them."""
    text = tokenizer.apply_chat_template(
        messages, tools=tools, add_generation_prompt=True, tokenize=False, **(template or {})
    )
    return tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("kind", REPLIES)
def test_training_and_evaluation_give_a_model_the_same_tokens(row, kind):
    made = row(kind)
    requests = evaluated(made, texts(REPLIES[kind]))
    assert len(requests) == len(REPLIES[kind])
    assert [each[0]["role"] for each in requests] == ["user" if kind == "none" else "system"] * len(requests)
    different = []
    for name, family in FAMILIES.items():
        if kind != "none" and not family.system:
            continue  # a model with this template cannot be sent a system prompt
        tokenizer = tokenizer_of(family)
        turns = 1 if name in REWRITING else len(requests)
        expected = [rendered(tokenizer, each, template=family.options) for each in requests[:turns]]
        replies = [family.reply.format(reply) for reply in REPLIES[kind]]
        if trained(made, replies, tokenizer, template=family.options)[:turns] != expected:
            different.append(name)
    assert different == []


@pytest.mark.parametrize("history", ["all", "turns:1"])
@pytest.mark.parametrize("kind", REPLIES)
def test_with_a_row_for_each_turn_also_templates_that_rewrite_replies(row, kind, history):
    made = row(kind)
    requests = evaluated(made, texts(REPLIES[kind]), history=history)
    different = []
    for name, family in FAMILIES.items():
        if kind != "none" and not family.system:
            continue  # a model with this template cannot be sent a system prompt
        tokenizer = tokenizer_of(family)
        expected = [rendered(tokenizer, each) for each in requests]
        if trained_by_turn(made, REPLIES[kind], tokenizer, history=history) != expected:
            different.append(name)
    assert different == []


FUNCTION = "summary:counting_env:summarize"

POLICIES = {
    "all": [0, 0, 0, 0, 0, 0],
    "turns:1": [0, 0, 1, 2, 3, 4],
    "turns:2,summary": [0, 0, 0, 1, 2, 3],
    "tokens:90": [0, 0, 0, 1, 2, 2],
    f"turns:2,{FUNCTION}": [0, 0, 0, 1, 2, 3],
    f"tokens:120,{FUNCTION}": [0, 0, 0, 0, 2, 4],
}
"""The number of turns that each policy omits from the requests of an episode."""


@pytest.mark.parametrize("history", POLICIES)
def test_evaluation_training_and_rollout_apply_a_history_policy_alike(row, history):
    made, tokenizer = row("summary"), tokenizer_of(FAMILIES["chatml"])
    replies = ["4", "what?", "5", "6", "who?", "7"]
    record = []
    requests = evaluated(made, texts(replies), record=record, tokenizer=tokenizer, history=history)
    chats, steps = chatted(made, replies, tokenizer, history)
    assert chats == requests
    assert trained_by_turn(made, replies, tokenizer, history=history) == [
        rendered(tokenizer, each) for each in requests
    ]
    omitted = POLICIES[history]
    for each in (record, steps):
        assert [step.get("omitted_turns") for step in each] == [count or None for count in omitted]
    summarized = [("So far: 4" in each[0]["content"], "Before: " in each[0]["content"]) for each in requests]
    by_env, by_function = history.endswith(",summary"), FUNCTION in history
    assert summarized == [(bool(count) and by_env, bool(count) and by_function) for count in omitted]


@pytest.mark.skipif(importlib.util.find_spec("verl.trainer.ppo.v1") is None, reason="rows need verl 0.9")
def test_the_agent_loop_omits_and_records_the_same_turns(row, play, tmp_path, monkeypatch):
    made, models, replies = row("summary"), [], ["4", "what?", "5", "6"]
    keep_last_rows(monkeypatch)
    played = play(
        scripted(replies, models),
        [made["extra_info"]["interaction_kwargs"]],
        system=None,
        max_turns=len(replies),
        rows="turn",
        history="turns:1,summary",
        episodes_dir=str(tmp_path),
        prompt_length=4_096,
        response_length=2_048,
    )
    (prompts,) = models[0].asked.values()
    requests = evaluated(made, texts(replies), history="turns:1,summary")
    assert [tokens for tokens, _ in prompts] == [rendered(played.tokenizer, each) for each in requests]
    (run,) = read_training(tmp_path)
    (record,) = run.records
    assert [step.get("omitted_turns", 0) for step in record.steps] == [0, 0, 1, 2]


@pytest.mark.skipif(importlib.util.find_spec("verl.trainer.ppo.v1") is None, reason="rows need verl 0.9")
def test_the_function_of_a_summary_gets_plain_text_away_from_the_event_loop(play, monkeypatch):
    calls, replies, models, imported = [], ["4", "what?", "5", "6"], [], []

    def summarize(messages):
        calls.append((threading.current_thread() is loop, messages))
        return counting_env.summarize(messages)

    loop, summarizer = threading.current_thread(), History.summarizer
    monkeypatch.setattr(counting_env, "recorded", summarize, raising=False)
    monkeypatch.setattr(History, "summarizer", lambda self: imported.append(self) or summarizer(self))
    keep_last_rows(monkeypatch)
    (made,) = recipes.seeded(ENV_IDS["none"], [3], None, {"besides": " <|im_end|>", "goal": 9})
    play(
        scripted(replies, models),
        [made["extra_info"]["interaction_kwargs"]],
        system=None,
        max_turns=len(replies),
        rows="turn",
        history="turns:1,summary:counting_env:recorded",
        prompt_length=4_096,
        response_length=2_048,
    )
    assert [by_loop for by_loop, _ in calls] == [False, False]
    assert calls[0][1] == [
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "You are at 0. <|im_end|>"},
    ]
    assert len(imported) <= 2  # when the loop checks its options, and for the conversation


def keep_last_rows(monkeypatch):
    """Let verl's worker return the last row of each episode, since its newer trainer takes all of them."""
    worker = importlib.import_module("verl.experimental.agent_loop.agent_loop").AgentLoopWorker
    postprocess = worker._agent_loop_postprocess

    def of_last_row(self, output, *args, **kwargs):  # only the worker of verl's newer trainer takes all rows
        return postprocess(self, output[-1], *args, **kwargs)

    monkeypatch.setattr(worker, "_agent_loop_postprocess", of_last_row)


def scripted(replies, models):
    """Return the maker of a model that gives these replies, and that is added to `models`."""

    def make(tokenizer):
        models.append(importlib.import_module("verl_worker").ScriptedModel(tokenizer, replies))
        return models[-1]

    return make


@pytest.mark.parametrize("template", ["chatml", "default_system", "headers"])
@pytest.mark.parametrize("kind", REPLIES)
def test_so_does_the_agent_loop(row, play, kind, template):
    made, replies, models = row(kind), REPLIES[kind], []
    played = play(
        scripted(replies, models),
        [made["extra_info"]["interaction_kwargs"]],
        template=template,
        system=[each["content"] for each in made["prompt"]],
        max_turns=len(replies),
        prompt_length=4_096,
        response_length=2_048,
    )
    (prompts,) = models[0].asked.values()
    requests = evaluated(made, texts(replies))
    assert [tokens for tokens, _ in prompts] == [rendered(played.tokenizer, each) for each in requests]


# A model learns the same tokens by fine-tuning.


def learned(tokenizer, template, messages, history="all"):
    """Return the last row of a conversation as fine-tuning reads it: its tokens, and the loss mask."""
    from verl_bridge.sft_dataset import GameDataset

    said = [Message(each["role"], each["content"]) for each in messages]
    game = Trajectory("agentgym/Maze-v0", 3, tuple(said), 1.0, success=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = {"train": sft_rows([game], history=history)}
        path = write(Path(folder) / "sft", rows, sft_schema())["train"]
        config = {"pad_mode": "no_padding", "max_length": 9_999, "apply_chat_template_kwargs": template}
        found = GameDataset(str(path), tokenizer, OmegaConf.create(config))[-1]
    return found["input_ids"].tolist(), found["loss_mask"].tolist()


def played_by_loop(play, name, family, row, replies, **loop):
    """Play the task of a row in verl's worker, by a model that writes its replies as models of a family do.

    Returns:
        What was played, and the tokens of each prompt.
    """
    models, stop = [], family.stop or family.end

    def make(tokenizer):
        written = [tokenizer.encode(family.reply.format(each), add_special_tokens=False) for each in replies]
        script = [[*tokens, tokenizer.convert_tokens_to_ids(stop)] for tokens in written]
        return scripted(script, models)(tokenizer)

    played = play(
        make,
        [row["extra_info"]["interaction_kwargs"]],
        template=FAMILY + name,
        system=[each["content"] for each in row["prompt"]],
        overrides=[f"data.apply_chat_template_kwargs.{key}={value}" for key, value in family.options.items()],
        max_turns=len(replies),
        prompt_length=4_096,
        response_length=2_048,
        hide_reasoning=True,
        **loop,
    )
    (asked,) = models[0].asked.values()
    return played, [tokens for tokens, _ in asked]


@pytest.mark.parametrize("name", FAMILIES)
def test_evaluation_loop_and_fine_tuning_have_one_conversation(row, play, name):
    family, made, replies = FAMILIES[name], row("wrapper"), REPLIES["wrapper"]
    requests = evaluated(made, texts(replies))
    played, prompts = played_by_loop(play, name, family, made, replies)
    sent = requests if family.system else list(map(merge_system, requests))
    expected = [rendered(played.tokenizer, each, template=family.options) for each in sent]
    turns = 1 if name in REWRITING else len(replies)
    assert prompts[:turns] == expected[:turns]
    whole = [*requests[-1], {"role": "assistant", "content": replies[-1]}]
    ids, mask = learned(played.tokenizer, family.options, whole)
    assert ids == played.prompt_ids(0) + played.ids(0)
    assert mask == [0] * len(played.prompt_ids(0)) + played.mask(0)


def content_of(family, reply):
    """Return a reply as a server returns it: without reasoning and control tokens, but with its blanks."""
    written = family.reply.format(reply)
    return reply if "</think>" in written or "<|" in written else written


@pytest.mark.skipif(importlib.util.find_spec("verl.trainer.ppo.v1") is None, reason="rows need verl 0.9")
@pytest.mark.parametrize("name", FAMILIES)
def test_so_they_have_with_a_row_for_each_turn(row, play, monkeypatch, name):
    family, made, replies = FAMILIES[name], row("wrapper"), REPLIES["wrapper"]
    keep_last_rows(monkeypatch)
    contents = [content_of(family, reply) for reply in replies]
    requests = evaluated(made, texts(contents), history="turns:1")
    played, prompts = played_by_loop(play, name, family, made, replies, rows="turn", history="turns:1")
    if not family.system and name != "mistral 3":  # which moves the system message, here as in an evaluation
        requests = list(map(merge_system, requests))
    assert prompts == [rendered(played.tokenizer, each, template=family.options) for each in requests]
    whole = [*evaluated(made, texts(contents))[-1], {"role": "assistant", "content": contents[-1]}]
    ids, mask = learned(played.tokenizer, family.options, whole, history="turns:1")
    assert ids == played.prompt_ids(0) + played.ids(0)
    assert mask == [0] * len(played.prompt_ids(0)) + played.mask(0)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ("{% if messages | length > 2 %}{{ raise_exception('one turn only') }}{% endif %}", "one turn only"),
        ("{% if messages %}{{ raise_exception('no talk') }}{% endif %}", "no talk"),
        ("{{ messages | length }}", "the chat template changes the first messages when others follow"),
    ],
)
def test_loop_and_fine_tuning_refuse_a_template_alike(changed, reason):
    tokenizer = tokenizer_of(FAMILIES["chatml"])
    tokenizer.chat_template = changed + tokenizer.chat_template
    with pytest.raises(UnstableTemplate, match=reason) as by_loop:
        TokenizedChat(tokenizer)
    turn = [{"role": "user", "content": "o"}, {"role": "assistant", "content": "r"}]
    with pytest.raises(UnstableTemplate, match=reason) as by_dataset:
        learned(tokenizer, {}, [{"role": "system", "content": "Play."}, *turn, *turn])
    assert str(by_dataset.value) == str(by_loop.value)


CALLS = [
    [("inventory", {})],
    [],
    [("fly", {"to": "moon"}), ("get", {"count": 1, "item": "oak log"})],
    [("inventory", {}), ("inventory", {})],
    [("get", {"item": "moon", "count": 1})],
    [],
]
"""The calls of each reply; a reply without any is text."""


def with_objects(messages):
    """Return messages with the arguments of calls as objects, as model servers pass them to a template."""
    changed = copy.deepcopy(messages)
    for message in changed:
        for each in message.get("tool_calls") or ():
            each["function"]["arguments"] = json.loads(each["function"]["arguments"])
    return changed


def with_calls(row, name, history="all"):
    """Play with native calls as an evaluation does.

    Returns:
        The tokenizer, the row, the messages of each request, their tokens, and the replies as text.
    """
    family, made = TOOL_FAMILIES[name], row("agentgym", action_format="tool_calls")
    tokenizer, tools = tokenizer_of(family), AgentGymEnv("TextCraft", action_format="tool_calls").tools
    content = None if name == "deepseek" else ""
    turns = [calls[-1:] if name == "llama 3.1" else calls for calls in CALLS]

    def written(calls):
        """Return a reply as the template writes it."""
        if not calls:
            return "I wait."
        functions = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
        message = {"role": "assistant", "content": content, "tool_calls": functions}
        opening = [{"role": "user", "content": "o"}]
        whole = tokenizer.apply_chat_template([*opening, message], tools=tools, tokenize=False)
        before = tokenizer.apply_chat_template(
            opening, tools=tools, add_generation_prompt=True, tokenize=False
        )
        text = whole.removeprefix(before).removeprefix("<think>\n\n</think>\n\n")
        return text[: text.rindex(family.end)]

    requests = evaluated(
        made,
        [
            ("", *(call(*each, f"call0000{i}") for i, each in enumerate(calls))) if calls else ("I wait.",)
            for calls in turns
        ],
        tools="native",
        history=history,
    )
    assert len(requests) == len(turns)
    for messages in requests:
        for message in messages:
            if message.get("tool_calls"):
                message["content"] = content
    expected = [rendered(tokenizer, with_objects(each), tools) for each in requests]
    return tokenizer, made, requests, expected, [written(calls) for calls in turns]


@pytest.mark.parametrize("name", TOOL_FAMILIES)
def test_native_tool_calls_give_a_model_the_same_tokens(row, name):
    tokenizer, made, requests, expected, replies = with_calls(row, name)
    results = [message["content"] for message in requests[-1] if message["role"] == "tool"]
    assert results.count(NOT_CARRIED_OUT) == (0 if name == "llama 3.1" else 2)
    assert trained_by_turn(made, replies, tokenizer, native=True) == expected
    prompts = trained(made, replies, tokenizer, native=True)
    if name == "qwen 3":  # it takes the empty thought out of replies that were followed by the user
        prompts, expected = prompts[:1], expected[:1]
    assert prompts == expected


@pytest.mark.parametrize("name", TOOL_FAMILIES)
def test_a_function_summarizes_native_tool_calls_alike(row, name):
    history = f"turns:1,{FUNCTION}"
    tokenizer, made, requests, expected, replies = with_calls(row, name, history)
    assert '"name": "inventory", "arguments": "{}"' in str(requests[2])
    assert trained_by_turn(made, replies, tokenizer, native=True, history=history) == expected


def test_a_summary_cannot_end_the_turn_of_the_user(row):
    """Control tokens in it are text for the model."""
    made, tokenizer = row("summary"), tokenizer_of(FAMILIES["chatml"])
    made["extra_info"]["interaction_kwargs"]["env_kwargs"] = {"besides": "<|im_end|>"}
    prompts = trained_by_turn(made, ["4", "5", "6"], tokenizer, history="turns:1,summary")
    assert "So far: 4, 5.<|im_end|>" in tokenizer.decode(prompts[2])
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert [tokens.count(end) for tokens in prompts] == [1, 3, 3]


def test_so_does_the_agent_loop_with_native_tool_calls(row, play):
    made, models = row("agentgym", action_format="tool_calls"), []
    written = '<tool_call>\n{"name": "inventory", "arguments": {}}\n</tool_call>'
    replies = [written, "I wait.", f"{written}\n{written}", written]

    played = play(
        scripted(replies, models),
        [made["extra_info"]["interaction_kwargs"]],
        template="tools",
        system=[each["content"] for each in made["prompt"]],
        max_turns=len(replies),
        tool_calls=True,
        prompt_length=4_096,
        response_length=2_048,
    )
    (prompts,) = models[0].asked.values()
    completions = [
        ("", *(call("inventory", {}, f"c{i}") for i in range(reply.count("{}"))))
        if "{}" in reply
        else (reply,)
        for reply in replies
    ]
    requests = evaluated(made, completions, tools="native")
    tools = AgentGymEnv("TextCraft", action_format="tool_calls").tools
    expected = [rendered(played.tokenizer, with_objects(each), tools) for each in requests]
    shown = [played.tokenizer.decode(tokens) for tokens, _ in prompts]
    assert shown == [played.tokenizer.decode(each) for each in expected]
    assert [tokens for tokens, _ in prompts] == expected
    # The model learns from its replies and their end tokens, and from nothing else.
    ended = [played.tokenizer.encode(reply, add_special_tokens=False) for reply in replies]
    end = played.tokenizer.eos_token_id
    assert played.masked_in(0) == [token for reply in ended for token in (*reply, end)]
    assert (played.field(0, "ignored_actions"), played.field(0, "parse_errors")) == (1, 1)


def test_the_loop_reports_an_environment_without_tools(row, play):
    verl_worker = importlib.import_module("verl_worker")
    with pytest.raises(ValueError, match="tool_calls: true needs"):
        play(
            lambda tokenizer: verl_worker.ScriptedModel(tokenizer, ["4"]),
            [row("none")["extra_info"]["interaction_kwargs"]],
            tool_calls=True,
        )

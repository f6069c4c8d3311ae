"""AgentGym's Evaluator plays every local server: our oracles' replies, and a model of random weights.

Its `Agent` has a real tokenizer, ChatML, and a limit of 4,096 tokens, as in AgentGym's own evaluations. Its
`APIAgent` sends real requests to a chat server.
"""

from __future__ import annotations

import pytest

import needs
from agentgym_checkout import import_or_skip
from agentgym_pair import NAMES, address_of, is_full_score, sample, stem_of, winning_replies
from fake_model import completion
from fake_server import FakeServer, as_json, in_turn
from verl_bridge.cpu.tiny import make_tiny

controller = import_or_skip("agentenv.controller")
envs = import_or_skip("agentenv.envs")

import torch  # noqa: E402 - is installed where the modules above were imported
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig  # noqa: E402

MAX_LENGTH = 4096
# Winning episodes of these are longer than 4,096 tokens on any server.
LONG_TEXTS = {"Sheet": 8192, "WebArena": 131_072}
GAMES = 3


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The folder of a tiny model whose tokenizer has the prompts of AgentGym's clients in its vocabulary."""
    prompts = []
    for name in NAMES:
        client = getattr(envs, f"{stem_of(name)}EnvClient")
        start = getattr(client, "conversation_start", ())
        prompts += [message["value"] for message in start]
    return make_tiny(tmp_path_factory.mktemp("tiny"), prompts, vocabulary=4096, context=2 * MAX_LENGTH)


@pytest.fixture(scope="module")
def tokenizer(tiny):
    return AutoTokenizer.from_pretrained(tiny)


@pytest.fixture(scope="module")
def model(tiny):
    return AutoModelForCausalLM.from_pretrained(tiny).eval()


class WrittenModel:
    """A model that generates given replies, one after another.

    Attributes:
        device: Where it expects its input.
        lengths: The lengths of its inputs, in tokens.
    """

    def __init__(self, tokenizer, replies):
        self.device = torch.device("cpu")
        self.lengths = []
        self._tokenizer = tokenizer
        self._replies = iter(replies)

    def generate(self, inputs, generation_config):
        reply = self._tokenizer.encode(next(self._replies), add_special_tokens=False)
        self.lengths.append(inputs.shape[1])
        return torch.cat([inputs, torch.tensor([[*reply, self._tokenizer.eos_token_id]])], dim=1)


def task_of(name, url):
    """AgentGym's task of an environment, with one client on the server."""
    task = getattr(envs, f"{stem_of(name)}Task")
    return task(client_args={"env_server_base": address_of(name, url), "data_len": 1}, n_clients=1)


def agent_of(model, tokenizer):
    return controller.Agent(model, tokenizer, controller.ChatMLTemplate())


def replayed(both, task, texts):
    """Play the replies of a conversation, and compare its observations; return the last reward.

    Args:
        both: The pair; only our environment plays.
        task: The task.
        texts: The texts of the conversation, from the first observation on.
    """
    both.reset(task)
    reward = 0
    for reply, state in zip(texts[1::2], texts[2::2], strict=True):
        observation, _, terminated, _, info = both.env.step(reply)
        assert observation == state
        reward = info["agentgym_score"]
    return reward, terminated


@pytest.mark.parametrize("name", needs.with_needs(NAMES))
def test_their_evaluator_wins_with_our_oracles_replies(name, pair, urls, tokenizer, report_at_end):
    both, longest = pair(name), 0
    evaluator_task = task_of(name, urls(name))
    for task in sample(name, GAMES):
        winning = winning_replies(both.env, task)
        model = WrittenModel(tokenizer, winning)
        evaluator = controller.Evaluator(agent_of(model, tokenizer), [evaluator_task])
        config = GenerationConfig(max_length=LONG_TEXTS.get(name, MAX_LENGTH))
        output = evaluator.eval(generation_config=config, max_rounds=len(winning), idxs=[task])
        (experience,) = output.experiences
        written = [message["value"] for message in experience.conversation if message["from"] == "gpt"]
        assert written[1:] == winning
        assert output.score == experience.reward
        assert is_full_score(name, output.score)
        assert output.success == 1 or name == "BabyAI"
        longest = max(longest, *model.lengths)
    report_at_end(f"{name}: AgentGym's Evaluator won {GAMES} games; the longest prompt had {longest} tokens")


@pytest.mark.parametrize("name", needs.with_needs(NAMES))
def test_a_model_of_random_weights_is_paid_as_here(name, pair, urls, model, tokenizer):
    """Such a model writes junk, and its replies give the same observations and reward here."""
    both = pair(name)
    (task,) = sample(name, 1)
    evaluator = controller.Evaluator(agent_of(model, tokenizer), [task_of(name, urls(name))])
    torch.manual_seed(0)
    config = GenerationConfig(max_length=MAX_LENGTH, max_new_tokens=24, do_sample=True)
    output = evaluator.eval(generation_config=config, max_rounds=3, idxs=[task])
    (experience,) = output.experiences
    texts = [message["value"] for message in experience.conversation[2:]]
    assert len(texts) > 2, "the model was never called"
    reward, terminated = replayed(both, task, texts)
    assert reward == output.score
    assert terminated or len(texts) == 7


@pytest.mark.parametrize("name", needs.with_needs(NAMES))
def test_their_agent_of_a_chat_server_wins(name, pair, urls, started):
    both = pair(name)
    (task,) = sample(name, 1)
    winning = winning_replies(both.env, task)
    server = started(FakeServer(in_turn(*(as_json(completion(reply)) for reply in winning))))
    agent = controller.APIAgent(api_key="none", base_url=f"{server.url}/v1", model="m")
    evaluator = controller.Evaluator(agent, [task_of(name, urls(name))])
    output = evaluator.eval(max_rounds=len(winning), idxs=[task])
    agent.client.close()
    (experience,) = output.experiences
    texts = [message["content"] for message in experience.conversation[2:]]
    assert texts[1::2] == winning
    assert replayed(both, task, texts) == (output.score, True)
    assert is_full_score(name, output.score)
    assert output.success == 1 or name == "BabyAI"
    assert len(server.requests) == len(winning)

"""The parts of verl on a CPU, each in this process: no Ray is started."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch
from hydra import compose, initialize_config_module
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, LlamaConfig

from verl_bridge.cpu import _cache as growing
from verl_bridge.cpu import _rollout
from verl_bridge.cpu import _shims as shims
from verl_bridge.cpu._rollout import CpuServer, WeightSender
from verl_bridge.cpu.generator import Generator, Request
from verl_bridge.cpu.overrides import PPO, SEPARATE, SFT, cpu_overrides, sft_overrides
from verl_bridge.cpu.sampling import Sampling, draw, log_distribution
from verl_bridge.cpu.tiny import make_tiny

PHRASES = ["Guess a digit from 1 to 9.", "It is higher.", "you said: "]
PROMPTS = [(5, 6, 7), (9,), (11, 12, 13, 14, 15, 16, 17, 18), (5, 6, 7)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("tiny"), ["Guess a digit. The digit is high."] * 20, PHRASES)


@pytest.fixture
def model(tiny):
    return AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)


@pytest.fixture
def generator(model):
    return Generator(model)


@pytest.fixture
def server(tiny):
    return CpuServer(str(tiny), response_length=6, context=40, batch=64, seed=1)


def ask(server, prompts, **params):
    async def all_at_once():
        return await asyncio.gather(
            *(server.generate(str(i), prompt, params) for i, prompt in enumerate(prompts))
        )

    return asyncio.run(all_at_once())


def resident():
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def plain_log_probs(model, prompt, reply, temperature=1.0):
    """By one forward pass over prompt and reply: no padding, no cache."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *reply]])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits / temperature, dim=-1)


class TestGenerator:
    @pytest.mark.parametrize("room", [0, 1, 4, 64])
    def test_log_probs_equal_a_plain_forward_pass(self, room, generator, model, monkeypatch):
        monkeypatch.setattr(growing, "ROOM", room)  # replies end at different times, in a room and between
        requests = [
            Request(prompt, Sampling(temperature=0.7, max_tokens=3 * place + 2), place)
            for place, prompt in enumerate(PROMPTS)
        ]
        for request, reply in zip(requests, generator.generate(requests), strict=True):
            plain = plain_log_probs(model, request.prompt, reply.token_ids, 0.7)
            taken = plain.gather(-1, torch.tensor(reply.token_ids)[:, None])[:, 0]
            assert reply.log_probs == pytest.approx(taken.tolist(), abs=1e-5)

    def test_a_reply_does_not_depend_on_who_else_is_in_the_batch(self, generator):
        requests = [Request(prompt, Sampling(max_tokens=9), seed) for seed, prompt in enumerate(PROMPTS)]
        together = generator.generate(requests)
        alone = [generator.generate([request])[0] for request in requests]
        assert [reply.token_ids for reply in together] == [reply.token_ids for reply in alone]

    def test_a_prompt_that_continues_a_reply_is_read_from_its_end(self, generator, model):
        first = [Request(prompt, Sampling(max_tokens=4), seed) for seed, prompt in enumerate(PROMPTS)]
        for turn in range(3):
            replies = generator.generate(first)
            lengths = []
            plain_forward = model.forward
            first = [
                Request(
                    (*request.prompt, *reply.token_ids, 21 + turn, 22), Sampling(max_tokens=4), seed + turn
                )
                for seed, (request, reply) in enumerate(zip(first, replies, strict=True))
            ]

            def counted(input_ids, forward=plain_forward, lengths=lengths, **named):
                lengths.append(input_ids.shape[1])
                return forward(input_ids=input_ids, **named)

            model.forward = counted
            continued = generator.generate(first)
            model.forward = plain_forward
            # One pass over the last token of the reply and the two after it, then the new reply.
            assert lengths[0] == 3
            assert set(lengths[1:]) <= {1}
            for request, reply in zip(first, continued, strict=True):
                plain = plain_log_probs(model, request.prompt, reply.token_ids)
                taken = plain.gather(-1, torch.tensor(reply.token_ids)[:, None])[:, 0]
                assert reply.log_probs == pytest.approx(taken.tolist(), abs=1e-5)

    @pytest.mark.parametrize("groups", [1, 2, 4])
    def test_heads_that_share_keys_give_the_same_log_probs(self, groups, tmp_path):
        config = LlamaConfig(
            vocab_size=40,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=groups,
        )
        AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
        plain_model = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager")
        requests = [Request(prompt, Sampling(max_tokens=6), seed) for seed, prompt in enumerate(PROMPTS)]
        for request, reply in zip(requests, Generator.load(str(tmp_path)).generate(requests), strict=True):
            plain = plain_log_probs(plain_model, request.prompt, reply.token_ids)
            taken = plain.gather(-1, torch.tensor(reply.token_ids)[:, None])[:, 0]
            assert reply.log_probs == pytest.approx(taken.tolist(), abs=1e-5)

    def test_new_weights_read_everything_again(self, generator, model):
        (reply,) = generator.generate([Request(PROMPTS[2], Sampling(max_tokens=4), 0)])
        weights = {name: tensor * 1.1 for name, tensor in model.state_dict().items()}
        generator.load_weights(weights)
        request = Request((*PROMPTS[2], *reply.token_ids, 21), Sampling(max_tokens=4), 1)
        (continued,) = generator.generate([request])
        plain = plain_log_probs(model, request.prompt, continued.token_ids)
        taken = plain.gather(-1, torch.tensor(continued.token_ids)[:, None])[:, 0]
        assert continued.log_probs == pytest.approx(taken.tolist(), abs=1e-5)

    def test_temperature_nought_takes_the_likeliest(self, generator, model):
        (reply,) = generator.generate([Request(PROMPTS[0], Sampling(temperature=0, max_tokens=5), 0)])
        plain = plain_log_probs(model, PROMPTS[0], reply.token_ids)
        assert reply.token_ids == plain.argmax(dim=-1).tolist()
        assert reply.log_probs == pytest.approx(plain.max(dim=-1).values.tolist(), abs=1e-5)

    def test_every_eos_of_the_generation_config_ends_a_reply(self, generator, tiny):
        tokenizer = AutoTokenizer.from_pretrained(tiny)
        assert generator.stop_ids == {tokenizer.eos_token_id, tokenizer.pad_token_id}
        for stop in generator.stop_ids:
            self._force(generator, stop)
            (reply,) = generator.generate([Request(PROMPTS[0], Sampling(max_tokens=5), 0)])
            assert reply.token_ids == [stop]

    def test_the_ids_of_a_request_end_it_too(self, generator):
        self._force(generator, 33)
        ended, other = generator.generate(
            [
                Request(PROMPTS[0], Sampling(max_tokens=3, stop_token_ids=frozenset({33})), 0),
                Request(PROMPTS[1], Sampling(max_tokens=3), 0),
            ]
        )
        assert (ended.token_ids, other.token_ids) == ([33], [33, 33, 33])

    @staticmethod
    def _force(generator, token):
        """Make the model say one token, whatever it is asked."""
        model = generator._model
        with torch.no_grad():
            model.model.norm.weight.zero_()
        model.lm_head = torch.nn.Linear(model.config.hidden_size, model.config.vocab_size)
        with torch.no_grad():
            model.lm_head.bias.zero_()
            model.lm_head.bias[token] = 100.0

    def test_weights_are_taken_whole_or_refused(self, generator):
        weights = {name: tensor.clone() for name, tensor in generator._model.state_dict().items()}
        name = "model.layers.0.mlp.up_proj.weight"
        assert generator.load_weights(weights) == 0
        weights[name][3, 4] += 0.5
        assert generator.load_weights(weights) == pytest.approx(0.5, rel=1e-4)
        with pytest.raises(ValueError, match=r"not sent: model\.layers\.0\.mlp"):
            generator.load_weights({key: value for key, value in weights.items() if key != name})
        with pytest.raises(ValueError, match="does not have: other"):
            generator.load_weights({**weights, "other": torch.zeros(1)})
        with pytest.raises(ValueError, match=r"up_proj.weight has the shape \(1,\)"):
            generator.load_weights({**weights, name: torch.zeros(1)})


class TestSampling:
    LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0]])

    def shares(self, **params):
        return log_distribution(self.LOGITS, [Sampling.of(params)])[0].exp().tolist()

    def test_all_tokens_at_temperature(self):
        assert self.shares(temperature=0.5) == pytest.approx((self.LOGITS[0] / 0.5).softmax(-1).tolist())

    def test_top_k_and_top_p_keep_the_likeliest_and_share_the_rest(self):
        both = self.LOGITS[0, :2].softmax(-1).tolist()
        assert self.shares(top_k=2) == pytest.approx([*both, 0, 0])
        assert self.shares(top_p=0.7) == pytest.approx([*both, 0, 0])  # 0.64 alone is not 0.7
        assert self.shares(top_p=0.6) == [1, 0, 0, 0]
        assert self.shares(top_k=2, top_p=0.7) == [1, 0, 0, 0]  # 0.73 of the two that top_k keeps

    def test_rows_have_their_own(self):
        rows = log_distribution(
            self.LOGITS.repeat(3, 1), [Sampling(), Sampling(top_k=1), Sampling(temperature=0)]
        )
        plain = self.LOGITS[0].log_softmax(-1).tolist()
        assert rows.tolist() == [pytest.approx(plain), [0, *[-torch.inf] * 3], pytest.approx(plain)]

    def test_tokens_are_drawn_as_often_as_they_are_likely(self):
        draws = 4000
        logs = log_distribution(self.LOGITS, [Sampling(top_k=3)]).repeat(draws, 1)
        dice = [torch.Generator().manual_seed(seed) for seed in range(draws)]
        counts = draw(logs, [Sampling(top_k=3)] * draws, dice).bincount(minlength=4)
        assert (counts / draws).tolist() == pytest.approx(logs[0].exp().tolist(), abs=0.03)
        assert counts[3] == 0

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"repetition_penalty": 1.1}, "does not support repetition_penalty=1.1"),
            ({"stop": ["\n"]}, "does not support stop="),
            ({"n": 2}, "does not support n=2"),
            ({"beam_width": 4}, "does not support beam_width=4"),
            ({"temperature": -1}, "temperature must be 0 or more"),
            ({"temperature": float("nan")}, "temperature must be 0 or more"),
            ({"top_p": 0}, "top_p must be above 0"),
            ({"max_tokens": 0}, "max_tokens must be 1 or more"),
        ],
    )
    def test_unsupported_parameters_are_refused_by_name(self, params, message):
        with pytest.raises(ValueError, match=message):
            Sampling.of(params)

    def test_requests_of_verl_are_read(self):
        sent = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}
        assert Sampling.of(sent) == Sampling(logprobs=True)
        assert Sampling.of({"max_new_tokens": 7, "logprobs": 0}) == Sampling(max_tokens=7, logprobs=True)
        assert not Sampling.of({"logprobs": False}).logprobs


class TestServer:
    def test_requests_that_wait_are_one_batch(self, server, monkeypatch):
        sizes = []
        generate = server._generator.generate
        monkeypatch.setattr(
            server._generator,
            "generate",
            lambda requests, aborting: sizes.append(len(requests)) or generate(requests),
        )
        replies = ask(server, PROMPTS * 20, logprobs=True)
        assert sum(sizes) == len(replies) == 80
        assert max(sizes) == 64
        assert all(1 <= len(reply.token_ids) == len(reply.log_probs) <= 6 for reply in replies)

    def test_limits(self, server):
        assert len(ask(server, [(5,)], max_tokens=2)[0].token_ids) <= 2
        assert len(ask(server, [(5,) * 39])[0].token_ids) == 1  # the context is 40
        with pytest.raises(ValueError, match="a prompt of 40 tokens leaves no room"):
            ask(server, [(5,) * 40])
        with pytest.raises(ValueError, match="only text"):
            asyncio.run(server.generate("x", (5,), {}, image_data=["a picture"]))

    def test_a_request_that_is_refused_harms_no_other(self, server):
        async def both():
            bad = server.generate("bad", (5,), {"beam_width": 2})
            return await asyncio.gather(bad, server.generate("good", (5,), {}), return_exceptions=True)

        bad, good = asyncio.run(both())
        assert isinstance(bad, ValueError)
        assert good.token_ids

    def test_an_error_in_a_batch_is_raised_to_all_waiters(self, server, monkeypatch):
        with monkeypatch.context() as broken:
            broken.setattr(server._generator, "generate", lambda requests, aborting: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                ask(server, PROMPTS)
        assert len(ask(server, PROMPTS)) == len(PROMPTS)

    def test_a_run_is_reproducible_and_a_repeated_prompt_draws_again(self, server, tiny):
        again = CpuServer(str(tiny), response_length=6, context=40, batch=64, seed=1)
        other = CpuServer(str(tiny), response_length=6, context=40, batch=64, seed=2)
        first, second, third = (
            [reply.token_ids for reply in ask(which, [(5, 6)] * 8)] for which in (server, again, other)
        )
        assert first == second != third
        assert len({tuple(reply) for reply in first}) > 1

    def test_replies_contain_the_version_of_their_weights(self, server, capfd):
        weights = {name: tensor + 0.25 for name, tensor in server._generator._model.state_dict().items()}

        async def play():
            before = await server.generate("a", (5,), {})
            await server.load_weights(weights, 7)
            return before, await server.generate("b", (5,), {})

        before, after = asyncio.run(play())
        assert (before.extra_fields, after.extra_fields) == ({"global_steps": None}, {"global_steps": 7})
        printed = f"weights of step 7 loaded, {len(weights)} tensors, largest change 2.500e-01"
        assert printed in capfd.readouterr().out

    def test_lora_and_deltas_are_refused(self):
        sender = object.__new__(WeightSender)
        for extra in ({"peft_config": {"r": 8}}, {"wire_format": "delta_flush"}):
            with pytest.raises(NotImplementedError, match="no LoRA, no deltas"):
                asyncio.run(sender.update_weights([], **extra))


def test_an_idle_server_returns_free_memory(server, monkeypatch):
    returned = threading.Event()
    monkeypatch.setattr(_rollout, "IDLE_S", 0.01)
    monkeypatch.setattr(_rollout, "return_free_memory", returned.set)

    async def play():
        await server.generate("0", PROMPTS[0], {})
        assert await asyncio.to_thread(returned.wait, 60)

    asyncio.run(play())


@pytest.mark.parametrize("rejects", [False, True])
def test_aborted_requests_return_what_they_have(server, rejects, capfd):
    """Those in a batch and those that wait; later ones wait for the gate to open, or are rejected."""

    async def play():
        started = asyncio.Event()
        generate, loop = server._generator.generate, asyncio.get_running_loop()

        def late(requests, aborting):  # the second token is drawn after the abort
            count = iter(range(99))

            def aborted():
                if next(count) == 1:
                    loop.call_soon_threadsafe(started.set)
                    while not aborting():
                        time.sleep(0.001)
                return aborting()

            return generate(requests, aborted)

        server._generator.generate = late
        asked = [
            asyncio.ensure_future(server.generate(str(i), (5, i), {"logprobs": True})) for i in range(70)
        ]
        await started.wait()
        await server.abort_all_requests(reject_request=rejects)
        aborted = await asyncio.gather(*asked)
        server._generator.generate = generate
        later = asyncio.ensure_future(server.generate("later", (5,), {}))
        await asyncio.sleep(0.05)
        waits = not later.done()
        await server.resume_generation()
        return aborted, waits, await later

    aborted, waits, later = asyncio.run(play())
    stopped = [reply for reply in aborted if reply.stop_reason == "aborted"]
    assert {len(reply.token_ids) for reply in stopped} == {0, 1}  # of two batches
    assert all(len(reply.log_probs) == len(reply.token_ids) for reply in stopped)
    assert f"verl_bridge.cpu: {len(stopped)} requests aborted" in capfd.readouterr().out
    assert waits is not rejects
    assert (later.stop_reason, later.token_ids == []) == (
        ("aborted", True) if rejects else ("completed", False)
    )


@pytest.mark.skipif(metadata.version("verl") < "0.9", reason="it has no checkpoint engines")
def test_a_separate_server_gets_the_weights():
    from verl_bridge.cpu._transfer import StoreTransfer

    weights = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.ones(1, dtype=torch.bfloat16)}
    sides = StoreTransfer(1, is_master=True), StoreTransfer(1)
    trainer, server = StoreTransfer.build_topology(1, 1, [side.prepare() for side in sides])
    for side, arguments in zip(sides, (trainer, server), strict=True):
        side.init_process_group(**{name: value for name, (value,) in arguments.items()})
    asyncio.run(sides[0].send_weights(iter(weights.items())))
    received = dict(sides[1].receive_weights())
    assert received.keys() == weights.keys()
    assert all(torch.equal(received[name], tensor) for name, tensor in weights.items())
    for side in sides:
        side.finalize()


class TestShims:
    def test_memory_calls(self):
        shims.add_memory_calls()
        assert torch.cpu.memory_allocated() == 0
        torch.cpu.empty_cache()
        state = torch.cpu.get_rng_state()
        first = torch.rand(3)
        torch.cpu.set_rng_state(state)
        assert torch.equal(torch.rand(3), first)

    @pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library is not glibc")
    def test_free_memory_is_returned(self):
        tensors = [torch.ones(4096) for _ in range(8_000)]  # 16 KiB each, so from malloc's heap
        between = tensors[::50]  # malloc itself returns only the top of its heap
        before = resident()
        tensors.clear()
        kept = resident()
        shims.add_memory_calls()
        torch.cpu.empty_cache()
        assert before - resident() > 100_000_000 > before - kept
        assert len(between) == 160

    def test_functions_of_torch_are_unchanged(self, monkeypatch):
        def own():
            return "torch's own"

        monkeypatch.setattr(torch.cpu, "memory_allocated", own, raising=False)
        shims.add_memory_calls()
        assert torch.cpu.memory_allocated is own

    def test_padding_there_and_back(self):
        mask = torch.tensor([[0, 1, 1], [1, 1, 1], [0, 0, 1]])
        values = torch.arange(18.0).reshape(3, 3, 2)
        tokens, indices, starts, longest, used = shims.unpad_input(values, mask)
        assert tokens.tolist() == values[mask.bool()].tolist()
        assert (starts.tolist(), longest, used.tolist()) == ([0, 2, 5, 6], 3, [2, 3, 1])
        assert torch.equal(shims.pad_input(tokens, indices, 3, 3), values * mask[..., None])
        assert torch.equal(shims.index_first_axis(values.flatten(0, 1), indices), tokens)

    @pytest.mark.skipif(importlib.util.find_spec("flash_attn") is not None, reason="flash-attn is installed")
    def test_flash_attn_itself_stays_missing(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "flash_attn.bert_padding", raising=False)
        shims.replace_flash_attn()
        from flash_attn.bert_padding import pad_input

        assert pad_input is shims.pad_input
        assert importlib.util.find_spec("flash_attn") is None
        with pytest.raises(ImportError):
            from flash_attn import flash_attn_func  # noqa: F401


class TestEngines:
    @pytest.fixture
    def engines(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # verl warns of each engine that is not installed
            return importlib.import_module("verl_bridge.cpu._engines")

    def test_a_critic_has_one_value_per_token_and_the_requested_attention(self, tiny, engines):
        config = AutoConfig.from_pretrained(tiny, num_labels=1)
        model = engines.load_value_model(
            "eager", local_path=tiny, torch_dtype=torch.float32, model_config=config, trust_remote_code=False
        )
        assert model.config._attn_implementation == "eager"
        assert model(torch.tensor([[5, 6, 7]])).logits.shape == (1, 3, 1)

    def test_no_memory_is_pinned(self, engines):
        assert not engines.without_pinning(pin_memory=True).pin_memory

    def test_patches_are_reverted(self, engines):
        module = SimpleNamespace(there=1)
        with contextlib.suppress(ZeroDivisionError), engines.replaced(module, "there", 2):
            assert module.there == 2
            raise ZeroDivisionError
        assert module.there == 1
        with engines.replaced(module, "missing", 2):
            assert vars(module) == {"there": 1}


class TestPlugin:
    def run(self, code, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VERL_")}
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, "PYTHONPATH": str(Path(__file__).parents[2]), **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def test_importing_the_overrides_loads_no_library(self):
        code = "import sys, verl_bridge.cpu.overrides; print({'torch', 'verl', 'ray'} & set(sys.modules))"
        assert self.run(code).stdout == "set()\n"

    def test_it_is_in_place_once_verl_is_imported(self):
        code = (
            "import verl\n"
            "from verl.utils.device import get_device_name\n"
            "from verl.workers.engine import EngineRegistry\n"
            "from verl.workers.rollout.base import get_rollout_class\n"
            "from verl.workers.rollout.replica import get_rollout_replica_class\n"
            "print(get_device_name(), EngineRegistry.get_engine_cls('language_model', 'fsdp2').__name__)\n"
            "print(EngineRegistry.get_engine_cls('value_model', 'fsdp2').__name__)\n"
            "print(get_rollout_class('transformers').__name__)\n"
            "print(get_rollout_replica_class('transformers').__name__)\n"
        )
        done = self.run(code, VERL_USE_EXTERNAL_MODULES="verl_bridge.cpu")
        assert done.stdout == "cpu CpuEngine\nCpuValueEngine\nWeightSender\nCpuReplica\n", done.stderr

    @pytest.mark.skipif(
        not metadata.version("verl").startswith("0.9."), reason="platforms came with verl 0.9"
    )
    def test_another_platform_is_not_overruled(self):
        done = self.run("import verl", VERL_USE_EXTERNAL_MODULES="verl_bridge.cpu", VERL_PLATFORM="nvidia")
        assert "VERL_PLATFORM=nvidia selects another platform: unset one of the two" in done.stderr


class TestOverrides:
    @pytest.mark.parametrize(
        ("config", "overrides"), [("ppo_trainer", cpu_overrides), ("sft_trainer_engine", sft_overrides)]
    )
    def test_they_compose_with_the_verl_that_is_installed(self, config, overrides):
        with initialize_config_module("verl.trainer.config", version_base=None):
            composed = compose(config, overrides())
        assert composed.trainer.n_gpus_per_node == 1

    @pytest.mark.skipif(metadata.version("verl") < "0.9", reason="it has no asynchronous trainers")
    def test_the_separate_trainer_has_its_own_server(self):
        mode = "trainer.v1.trainer_mode=separate_async"
        with initialize_config_module("verl.trainer.config", version_base=None):
            composed = compose("ppo_trainer", [*cpu_overrides(trainer="separate_async"), mode])
        rollout = composed.actor_rollout_ref.rollout
        assert composed.ray_kwargs.ray_init.num_gpus == rollout.n_gpus_per_node + 1 == 2
        assert (rollout.nnodes, rollout.checkpoint_engine.backend) == (1, "transformers")

    def test_an_unknown_trainer_is_refused(self):
        with pytest.raises(ValueError, match="trainer='async'"):
            cpu_overrides("0.9.1", trainer="async")

    def test_each_has_a_reason_and_one_line(self):
        assert all(override.reason for override in (*PPO, *SFT, *SEPARATE))
        for version in ("0.7.1", "0.8.0", "0.9.1"):
            keys = [line.split("=")[0] for line in cpu_overrides(version)]
            assert len(keys) == len(set(keys))

    def test_an_unknown_version_is_refused(self):
        with pytest.raises(ValueError, match=r"no settings for verl 0\.6\.0"):
            cpu_overrides("0.6.0")


class TestTiny:
    def test_phrases_are_one_token_and_nothing_is_lost(self, tiny):
        tokenizer = AutoTokenizer.from_pretrained(tiny)
        for phrase in PHRASES:
            assert len(tokenizer(phrase)["input_ids"]) == 1
        text = "It is higher. you said: 7, naïve\n\n  Größe 12 ✓"
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text

    def test_every_loader_reads_the_same_ids(self, tiny):
        """transformers 5 loads a Qwen2 folder by a class of its own, which brings its own pre-tokenizer."""
        from tokenizers import Tokenizer

        text = "Guess a digit. The digit is high. 12 times, it's\n\nIt is higher."
        ids = AutoTokenizer.from_pretrained(tiny)(text)["input_ids"]
        assert ids == Tokenizer.from_file(str(tiny / "tokenizer.json")).encode(text).ids

    def test_saved_names_are_known_to_transformers_4_and_5(self, tiny):
        config = json.loads((tiny / "tokenizer_config.json").read_text())
        assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
        assert "extra_special_tokens" not in config
        special = AutoTokenizer.from_pretrained(tiny).all_special_tokens
        assert {"<|im_start|>", "<|im_end|>"} <= set(special)

    def test_words_of_the_texts_are_one_token(self, tiny):
        tokenizer = AutoTokenizer.from_pretrained(tiny)
        assert [len(tokenizer(word)["input_ids"]) for word in ("Guess", " digit", " high")] == [1, 1, 1]

    def test_chatml(self, tiny):
        messages = [{"role": "user", "content": " hello\n"}]
        text = AutoTokenizer.from_pretrained(tiny).apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        assert text == "<|im_start|>user\n hello\n<|im_end|>\n<|im_start|>assistant\n"

    def test_the_same_seed_makes_the_same_weights(self, tmp_path):
        def weights(name, seed):
            folder = make_tiny(tmp_path / name, ["a b c"], hidden=16, layers=1, seed=seed)
            return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).lm_head.weight

        assert torch.equal(weights("a", 1), weights("b", 1))
        assert not torch.equal(weights("a", 1), weights("c", 2))

    def test_a_phrase_that_cannot_be_one_token_is_named(self, tmp_path):
        with pytest.raises(ValueError, match="vocabulary=100 must be 259 or more"):
            make_tiny(tmp_path, ["a"], vocabulary=100)

"""Engines: what they are started by, how they fail, and that none of their processes is left."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

import fake_engine
import inside
import programs
from agentgym_gym.errors import BadOption, SetupError
from agentgym_gym.evaluate import Engine, checkpoints
from process_tree import alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at the processes in /proc")

NAME = "--served-model-name"
COMMANDS = {
    "sglang": f"-m sglang.launch_server --x 1 --model-path MODEL {NAME} NAME --host 127.0.0.1 --port PORT",
    "vllm": (f"-m vllm.entrypoints.cli.main serve MODEL --x 1 --host 127.0.0.1 --port PORT {NAME} MODEL"),
    "transformers": ("-m transformers.cli.transformers serve MODEL --x 1 --host 127.0.0.1 --port PORT"),
}
PORTS = range(20_000, 32_768)  # those below are for other programs, and those above for clients


def within(seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.fixture
def model(tmp_path) -> str:
    return str(save_model(tmp_path / "model"))


def save_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").touch()
    return folder


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Engines of this Python that run the fake program; at the end, none of their processes is left."""
    packages, pids = tmp_path / "packages", tmp_path / "pids"
    pids.touch()
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.setenv("FAKE_ENGINE_PIDS", str(pids))
    monkeypatch.setenv("FAKE_ENGINE_SEEN", str(tmp_path / "seen"))
    inside.limit_engine(monkeypatch, grace=0.3, poll=0.02)

    class Fake:
        started = staticmethod(lambda: [int(line) for line in pids.read_text().split()])
        seen = staticmethod(lambda: json.loads((tmp_path / "seen").read_text()))
        install = staticmethod(lambda kind, **given: fake_engine.install(packages, kind, **given))

        @staticmethod
        def behaves(how, kind="vllm"):
            monkeypatch.setenv("FAKE_ENGINE", how)
            fake_engine.install(packages, kind)

    yield Fake
    assert alive(Fake.started()) == set()


# --- what is started ---


@pytest.mark.slow
def test_a_build_of_vllm_under_another_name_is_started_by_its_server_module(fake, model):
    fake.install("vllm", version="")
    with Engine("vllm", model, arguments=["--x", "1"]) as engine:
        assert engine.command[1:7] == [
            *("-m", "vllm.entrypoints.openai.api_server"),
            *("--model", model),
            *("--x", "1"),
        ]


@pytest.mark.parametrize(
    "kind", ["vllm", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("sglang", "transformers"))]
)
def test_an_engine_starts_answers_and_stops(kind, fake, tmp_path, monkeypatch):
    model = str(save_model(tmp_path / "m:1"))
    name = model.replace(":", "_") if kind == "sglang" else model
    fake.behaves("serve", kind)
    monkeypatch.setenv("VLLM_API_KEY", "a key that would be asked for")
    monkeypatch.setenv("MINE", "goes through")
    with Engine(kind, model, arguments=["--x", "1"]) as engine:
        port = int(engine.base_url.removeprefix("http://127.0.0.1:").removesuffix("/v1"))
        assert port in PORTS
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/v1/models")
        assert connection.getresponse().status == 200
        connection.close()
        assert engine.is_alive()
        assert engine.start() == engine.base_url  # and nothing else
        version = fake_engine.VERSIONS[kind]
        assert engine.describe() == {"engine": kind, "version": version, "command": engine.command}
        assert engine.model == name
        assert engine.log_tail() == "loading the model"
    assert not engine.is_alive()
    assert engine.log_tail() == "loading the model"
    values = {"MODEL": model, "NAME": name, "PORT": str(port)}
    expected = [values.get(word, word) for word in COMMANDS[kind].split()]
    assert engine.command == [sys.executable, *expected]
    seen = fake.seen()
    assert seen["arguments"] == engine.command[3:]
    assert seen["stdin"] == ""
    assert seen["variables"]["MINE"] == "goes through"
    assert "VLLM_API_KEY" not in seen["variables"]
    assert len(fake.started()) == 1
    engine.stop()


# --- what is refused before anything starts ---


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "ollama"}, "kind='ollama' should be one of"),
        ({"model_path": "no/such"}, "there is no 'no/such'.*hf download"),
        ({"arguments": ["--port", "1"]}, "'--port' is reserved for vllm"),
        ({"arguments": ["--served_model_name=x"]}, "'--served-model-name' is reserved"),
        ({"arguments": ["--api-key=abc"]}, "'--api-key' is reserved for vllm"),
        ({"arguments": ["--hf-t", "abc"]}, "'--hf-t' is reserved .*HF_TOKEN"),
        ({"arguments": "--dtype float16"}, "a list of texts"),
        ({"start_seconds": 0}, "start_seconds=0 should be above 0"),
        ({"python": "/no/such/python"}, "python='/no/such/python' cannot"),
        ({"kind": "transformers", "model_path": "a@b"}, "'a@b' after an '@'"),
    ],
)
def test_an_engine_that_cannot_start_is_refused_at_once(given, message, fake, model):
    with pytest.raises(BadOption, match=message):
        Engine(**{"kind": "vllm", "model_path": model, **given})
    assert fake.started() == []


def test_an_engine_that_is_not_installed_is_named_with_what_to_install(fake, model):
    engine = Engine("transformers", model)
    with pytest.raises(SetupError, match=r"lacks transformers, .*\[serving\]'"):
        engine.start()
    with pytest.raises(SetupError, match="has not been started"):
        engine.base_url  # noqa: B018
    fake.install("transformers", version="5.4.1")
    with pytest.raises(SetupError, match=r"5\.4\.1 is .* 5\.5 or newer"):
        engine.start()
    with pytest.raises(SetupError, match="/bin/true does not run"):
        Engine("vllm", model, python="/bin/true").start()
    assert fake.started() == []


# --- what fails ---


def test_an_engine_that_ends_shows_the_end_of_its_log_without_secrets(fake, model, tmp_path, monkeypatch):
    fake.behaves("fail")
    monkeypatch.setenv("MINE_API_KEY", "sk-12345678")
    log = tmp_path / "logs" / "engine.log"
    log.parent.mkdir()
    log.write_text("of an earlier start\n")
    engine = Engine("vllm", model, log=log)
    with pytest.raises(SetupError) as raised:
        engine.start()
    head, *said = str(raised.value).splitlines()
    assert (" vllm ended with status 3 " in head, head.endswith(f"({log}):")) == (True, True), head
    assert said == ["loading the model", "boom at http://***@there, key ***"]
    assert "boom" in log.read_text()
    assert not engine.is_alive()


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["hang", "loading", "drip"])
def test_an_engine_that_does_not_answer_in_time_is_stopped(behaviour, fake, model):
    fake.behaves(behaviour)
    with pytest.raises(SetupError, match=r"within 4 s\. .*\nloading the model"):
        Engine("vllm", model, start_seconds=4).start()  # the time that Python needs on a busy machine
    assert len(fake.started()) == 1


@pytest.mark.slow
def test_an_engine_that_was_killed_leaves_none_of_its_processes(fake, model):
    fake.behaves("killed")
    with pytest.raises(SetupError, match="ended with status 137"):
        Engine("vllm", model).start()
    assert len(fake.started()) == 3


@pytest.mark.slow
def test_a_port_that_was_taken_meanwhile_is_replaced(fake, model):
    fake.behaves("taken once")
    with Engine("vllm", model) as engine:
        assert engine.is_alive()
    assert len(fake.started()) == 2


def answer_once(listener):
    with listener.accept()[0] as connection:
        fake_engine.ready(connection)


def test_another_program_on_the_port_is_not_taken_for_the_engine(fake, model, monkeypatch):
    fake.behaves("serve")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = listener.getsockname()[1]
        answer = threading.Thread(target=lambda: answer_once(listener))
        answer.start()
        inside.choose_engine_port(monkeypatch, other)
        with Engine("vllm", model) as engine:
            assert engine.base_url != f"http://127.0.0.1:{other}/v1"
        answer.join()


def test_a_log_that_cannot_be_written_is_named(fake, model, tmp_path):
    fake.behaves("serve")
    with pytest.raises(BadOption, match=r"config\.json/log' cannot be written"):
        Engine("vllm", model, log=Path(model, "config.json", "log")).start()
    assert fake.started() == []


# --- how it ends ---


def test_all_that_it_started_ends_with_it(fake, model):
    """Also a process that ignores SIGTERM, and one with its own session."""
    fake.behaves("stubborn")
    with Engine("vllm", model):
        assert within(20, lambda: len(fake.started()) == 3)
        assert alive(fake.started()) == set(fake.started())


def test_ctrl_c_while_it_loads_stops_it(fake, model, monkeypatch):
    fake.behaves("hang")
    # Ctrl-C comes between two health checks: an interrupted one may leave a socket to the garbage collector.
    inside.limit_engine(monkeypatch, grace=0.3, poll=2)
    engine = Engine("vllm", model)

    def press_ctrl_c():
        within(20, fake.started)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press_ctrl_c)
    with programs.default_sigint():
        pressing.start()
        with pytest.raises(KeyboardInterrupt):
            engine.start()
    pressing.join()
    assert not engine.is_alive()


@pytest.mark.slow
def test_it_ends_if_the_process_between_is_killed(fake, model):
    fake.behaves("stubborn")
    with Engine("vllm", model) as engine:
        assert within(20, lambda: len(fake.started()) == 3)
        between = os.getpgid(fake.started()[0])
        in_group = [pid for pid in fake.started() if os.getpgid(pid) == between]
        assert len(in_group) == 2
        os.kill(between, signal.SIGKILL)
        assert within(20, lambda: not engine.is_alive())
        engine.stop()
        assert within(20, lambda: not alive(in_group))
        for pid in set(fake.started()) - set(in_group):  # orphans in sessions of their own are out of reach
            os.kill(pid, signal.SIGKILL)
            assert within(20, lambda pid=pid: not alive({pid}))


PARENT = """
import os, sys, time
import inside, pytest
from agentgym_gym.evaluate import Engine
inside.limit_engine(pytest.MonkeyPatch(), grace=0.3, poll=0.02)
engine = Engine("vllm", sys.argv[1])
engine.start()
if os.fork() == 0:  # lives on, and holds copies of all that its parent had open
    assert not engine.is_alive()
    engine.stop()
    os.close(1)
    os.close(2)
    time.sleep(4)
    os._exit(0)
print("started", flush=True)
exec(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("then", "status"),
    [
        ("os.kill(os.getpid(), 9)", -9),
        ("pass", 0),
        ("os.kill(os.getpid(), 15)", -15),
    ],
)
@pytest.mark.slow  # a separate program
def test_it_ends_with_the_process_that_started_it(then, status, fake, model):
    fake.behaves("stubborn")
    variables = programs.environment()
    variables["PYTHONPATH"] = os.pathsep.join([os.environ["PYTHONPATH"], variables["PYTHONPATH"]])
    run = programs.run(
        [sys.executable, "-c", PARENT, model, then], env=variables, capture_output=True, text=True, timeout=60
    )
    assert (run.returncode, run.stdout, run.stderr) == (status, "started\n", "")
    assert len(fake.started()) == 3
    assert within(20, lambda: not alive(fake.started()))


# --- checkpoints ---


def test_checkpoints_come_in_natural_order(tmp_path, monkeypatch):
    for step in (10, 2, 1):
        save_model(tmp_path / f"ckpts/step_{step}")
    (tmp_path / "ckpts/latest.txt").write_text("10")
    (tmp_path / "ckpts/latest").symlink_to(tmp_path / "ckpts/step_10")
    monkeypatch.chdir(tmp_path)
    assert checkpoints("ckpts/*") == ["ckpts/step_1", "ckpts/step_2", "ckpts/step_10"]
    assert checkpoints("ckpts/step_1") == ["ckpts/step_1"]
    save_model(tmp_path / "ckpts [1]")
    assert checkpoints("ckpts [1]") == ["ckpts [1]"]


@pytest.mark.parametrize("below", ["actor/huggingface", "actor/model/huggingface", "huggingface"])
def test_a_model_that_verl_saved_is_found(below, tmp_path):
    for step in (100, 20):
        save_model(tmp_path / f"global_step_{step}" / below)
        (tmp_path / f"global_step_{step}/data.pt").touch()
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("100")
    found = [str(tmp_path / f"global_step_{step}" / below) for step in (20, 100)]
    assert checkpoints(f"{tmp_path}/*") == found
    assert Engine("vllm", str(tmp_path / "global_step_20")).model == found[0]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], r"no config\.json, and it is empty"),
        (["a.txt", "b/c"], r"no config\.json, and it contains a\.txt, b/"),
        ([f"shard_{i}" for i in range(12)], "shard_1, .*shard_7 and 4 more"),
        (["config.json"], r"has a config\.json, but no weights"),
        (["adapter_config.json", "adapter_model.safetensors"], "it is an adapter"),
        (
            ["actor/huggingface/config.json", "actor/model_world_size_1_rank_0.pt"],
            "merge .*--target_dir .*/actor/huggingf",
        ),
    ],
)
def test_a_folder_without_a_checkpoint_is_reported_with_its_contents(files, message, tmp_path):
    save_model(tmp_path / "ckpts/step_1")
    folder = tmp_path / "ckpts/step_2"
    folder.mkdir()
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    with pytest.raises(BadOption, match=message):
        checkpoints(str(tmp_path / "ckpts/*"))


def test_a_pattern_that_matches_nothing_is_an_error_that_lists_the_folder(tmp_path):
    (tmp_path / "ckpts").mkdir()
    (tmp_path / "ckpts/notes.txt").touch()
    with pytest.raises(BadOption, match=r"/ckpts', it contains notes\.txt"):
        checkpoints(str(tmp_path / "ckpts/step_*"))
    with pytest.raises(BadOption, match=r"only files, such as .*notes\.txt"):
        checkpoints(str(tmp_path / "ckpts/*"))

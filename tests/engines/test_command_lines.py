"""The command lines of sglang and vLLM, read by their own parsers, which need no GPU: see noxfile.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fake_engine
import needs
from agentgym_gym.evaluate import Engine

SGLANG = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser(allow_abbrev=False)
ServerArgs.add_cli_args(parser)
print(json.dumps(vars(parser.parse_args(sys.argv[1:])), default=repr))
"""

# Without a GPU vLLM finds no device; on a CPU its own `vllm bench` continues.
VLLM = """
import json, sys
from vllm import platforms
from vllm.platforms.cpu import CpuPlatform
platforms.current_platform = CpuPlatform()
from vllm.entrypoints.common.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
print(json.dumps(vars(parser.parse_args(sys.argv[1:])), default=repr))
"""


def parsed(program: str, arguments: list[str]) -> dict:
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=240
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def command_of(kind: str, folder: Path, arguments: list[str]) -> tuple[str, str, list[str]]:
    """Return a checkpoint, the port, and the command line by which a program in place of the engine ran."""
    model = folder / "step:2"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").touch()
    fake_engine.install(folder / "packages", kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder / "packages"))
        patch.setenv("FAKE_ENGINE_PIDS", str(folder / "pids"))
        patch.setenv("FAKE_ENGINE_SEEN", str(folder / "seen"))
        with Engine(kind, str(model), arguments=arguments) as engine:
            port = engine.base_url.removesuffix("/v1").rpartition(":")[2]
    return str(model), port, engine.command


def test_sglang_reads_its_command_line(tmp_path):
    needs.skip_without("sglang")
    extra = ["--random-seed", "7", "--chat-template", "chatml", "--enable-deterministic-inference"]
    model, port, command = command_of("sglang", tmp_path, extra)
    assert command[1:3] == ["-m", "sglang.launch_server"]
    read = parsed(SGLANG, command[3:])
    assert (read["model_path"], read["served_model_name"]) == (model, model.replace(":", "_"))
    assert (read["host"], read["port"]) == ("127.0.0.1", int(port))
    assert (read["random_seed"], read["chat_template"]) == (7, "chatml")
    assert read["enable_deterministic_inference"] is True
    assert read["api_key"] is None


def test_vllm_reads_its_command_line(tmp_path):
    needs.skip_without("vllm")
    extra = ["--seed", "7", "--chat-template", "chat.jinja", "--max-model-len", "4096"]
    model, port, command = command_of("vllm", tmp_path, extra)
    assert command[1:4] == ["-m", "vllm.entrypoints.cli.main", "serve"]
    read = parsed(VLLM, command[4:])
    assert (read["model_tag"], read["served_model_name"]) == (model, [model])
    assert (read["host"], read["port"]) == ("127.0.0.1", int(port))
    assert (read["seed"], read["chat_template"], read["max_model_len"]) == (7, "chat.jinja", 4096)
    assert read["api_key"] is None

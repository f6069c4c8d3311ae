"""The command lines of sglang and vLLM, read by their own parsers, which need no GPU: see noxfile.py."""

from __future__ import annotations

import json
import subprocess
import sys

import needs
from agentgym_gym.evaluate._engines.commands import command_line

SGLANG = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser(allow_abbrev=False)
ServerArgs.add_cli_args(parser)
print(json.dumps(vars(parser.parse_args(sys.argv[1:])), default=repr))
"""

# Without a GPU vLLM knows no device; as a CPU its own `vllm bench` goes on.
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


def parsed(kind: str, program: str, arguments: list[str]) -> dict:
    needs.skip_without(kind)
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=240
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def test_sglang_reads_its_command_line():
    extra = ["--random-seed", "7", "--chat-template", "chatml", "--enable-deterministic-inference"]
    command = command_line("sglang", "ckpts/step:2", 23456, extra)
    assert command[:3] == ["python", "-m", "sglang.launch_server"]
    read = parsed("sglang", SGLANG, command[3:])
    assert read["model_path"] == "ckpts/step:2"
    assert read["served_model_name"] == "ckpts/step_2"
    assert (read["host"], read["port"]) == ("127.0.0.1", 23456)
    assert (read["random_seed"], read["chat_template"]) == (7, "chatml")
    assert read["enable_deterministic_inference"] is True
    assert read["api_key"] is None


def test_vllm_reads_its_command_line():
    extra = ["--seed", "7", "--chat-template", "chat.jinja", "--max-model-len", "4096"]
    command = command_line("vllm", "ckpts/step:2", 23456, extra)
    assert command[:4] == ["python", "-m", "vllm.entrypoints.cli.main", "serve"]
    read = parsed("vllm", VLLM, command[4:])
    assert read["model_tag"] == "ckpts/step:2"
    assert read["served_model_name"] == ["ckpts/step:2"]
    assert (read["host"], read["port"]) == ("127.0.0.1", 23456)
    assert (read["seed"], read["chat_template"], read["max_model_len"]) == (7, "chat.jinja", 4096)
    assert read["api_key"] is None

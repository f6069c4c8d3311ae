"""The files of deploy/: what their formats allow, and that their commands start."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import pytest
import yaml

import needs
import programs

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
SCRIPTS = Path(sysconfig.get_path("scripts"))


def run(*command):
    done = subprocess.run(
        [SCRIPTS / command[0], *command[1:]], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dockerfile_is_valid():
    run("hadolint", DEPLOY / "Dockerfile")


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="check-jsonschema needs Python 3.11")
def test_the_compose_file_is_valid():
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_all_that_the_image_copies_is_there_and_sent():
    copied = [
        name for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]
    ]
    assert copied
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in sent


@pytest.mark.slow
def test_the_command_of_the_image_starts_and_is_healthy():
    (entry,), (command,), (health,) = (
        re.findall(rf"^{word}(?: --\S+ CMD)? \[(.*)\]$", DOCKERFILE, re.MULTILINE)
        for word in ("ENTRYPOINT", "CMD", "HEALTHCHECK")
    )
    words = re.findall(r'"([^"]*)"', f"{entry}, {command}")
    assert words[0] == "agentgym"
    here = {"0.0.0.0": "127.0.0.1", "36000": "0"}  # noqa: S104 - what the image has
    words = [here.get(word, word) for word in words[1:]]
    with subprocess.Popen(
        [sys.executable, "-m", "agentgym_gym", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=programs.environment(),
    ) as server:
        try:
            url = next(iter(server.stdout)).split()[-1]
            (check,) = re.findall(r"\"(import .*)\"$", health)
            assert "http://127.0.0.1:36000/" in check
            check = check.replace("http://127.0.0.1:36000/", url)
            subprocess.run([sys.executable, "-c", check], check=True, timeout=100)
            with urllib.request.urlopen(url) as reply:  # noqa: S310 - our own server
                assert b"textcraft" in reply.read()
        finally:
            server.terminate()
        assert server.wait(60) == 0


@pytest.mark.needs("systemd-analyze")
def test_the_unit_is_valid(tmp_path):
    program = needs.path_of("systemd-analyze")
    text = (DEPLOY / "agentgym@.service").read_text("utf-8")
    assert "/opt/agentgym/bin/agentgym serve" in text
    unit = tmp_path / "agentgym@.service"
    unit.write_text(text.replace("/opt/agentgym/bin/agentgym", str(SCRIPTS / "agentgym")))
    done = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_pod_has_the_name_that_clients_use():
    service, pods = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))
    assert service["spec"]["clusterIP"] == "None"
    assert pods["spec"]["serviceName"] == service["metadata"]["name"]
    assert (
        service["spec"]["selector"]
        == pods["spec"]["selector"]["matchLabels"]
        == pods["spec"]["template"]["metadata"]["labels"]
    )
    port = service["spec"]["ports"][0]["port"]
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    assert container["ports"][0]["containerPort"] == port
    assert f"EXPOSE {port}" in DOCKERFILE
    names = [
        f"http://{pods['metadata']['name']}-{number}.{service['metadata']['name']}:{port}/textcraft"
        for number in range(pods["spec"]["replicas"])
    ]
    assert f"AGENTGYM_TEXTCRAFT_URL={','.join(names)}" in (ROOT / "docs" / "cluster.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.needs("engine")
def test_the_image_is_built():
    command = [
        needs.path_of("engine"),
        "build",
        "--file",
        DEPLOY / "Dockerfile",
        "--tag",
        "agentgym-servers-test",
        ROOT,
    ]
    subprocess.run(command, check=True, timeout=1200)

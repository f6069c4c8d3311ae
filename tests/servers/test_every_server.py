"""What holds of every local server: by real HTTP, and through the library as its users have it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import gymnasium
import httpx
import pytest
from gymnasium.utils.env_checker import check_env

import command_line
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, environments, errors
from agentgym_gym.evaluate import NullAgent, RandomAgent, evaluate, evaluate_async, load_oracle
from agentgym_gym.local_servers import LocalServer, available, servers
from needs import OTHER_PROGRAMS, with_needs
from ports import reserved_ports

LOCAL = [each for each in environments() if each.local_server is not None]
AT_ONCE = 16
ROOT = Path(__file__).parents[2]
JSON = {"Content-Type": "application/json"}
ONE_WORLD = {"TextCraft", "Maze", "SciWorld", "MiniWoB"}
EVERY_NUMBER_IS_A_TASK = {"TextCraft", "Wordle"}

each_environment = pytest.mark.parametrize("environment", with_needs(LOCAL), ids=lambda e: e.name)
each_that_plays_much = pytest.mark.parametrize(
    "environment", with_needs(LOCAL, slow=True), ids=lambda e: e.name
)

each_slow = pytest.mark.parametrize(
    "environment",
    [
        pytest.param(
            *each.values,
            marks=[
                *each.marks,
                pytest.mark.exhaustive if each.values[0].name.lower() in OTHER_PROGRAMS else pytest.mark.slow,
            ],
        )
        for each in with_needs(LOCAL)
    ],
    ids=lambda e: e.name,
)


@pytest.fixture
def url(environment, local_url):
    return local_url(environment.name.lower())


@pytest.fixture
def env(environment, url):
    with contextlib.closing(AgentGymEnv(environment.name, server=url)) as env:
        yield env


def some_tasks(environment, count):
    """Return tasks from all parts of each split."""
    ids = [tasks[len(tasks) * n // count] for tasks in environment.splits.values() for n in range(count)]
    return sorted(set(ids))[:: len(environment.splits)]


def test_each_server_is_of_an_environment():
    assert {each.name.lower(): each.local_server for each in LOCAL} == servers()
    assert all(each.oracle and each.local_quirks for each in LOCAL)


@each_environment
def test_the_splits_share_out_the_tasks_that_can_be_won(environment):
    parts = [frozenset(tasks) for name, tasks in environment.splits.items() if name != "all"]
    shared = frozenset().union(*parts)
    assert len(parts) >= 2
    assert sum(map(len, parts)) == len(shared)
    everything = frozenset(environment.task_ids)
    assert shared <= everything
    assert shared.isdisjoint(environment.unwinnable)
    assert environment.unwinnable.keys() <= everything
    # Some more are not in `test`, as they are like training tasks.
    repeated = everything - shared - environment.unwinnable.keys()
    assert len(repeated) == {"BabyAI": 7, "MiniWoB": 226}.get(environment.name, 0)


@each_slow
def test_gymnasium_has_no_complaint(environment, url):
    with contextlib.closing(gymnasium.make(environment.id, server=url, disable_env_checker=True)) as env:
        check_env(env.unwrapped)


@each_that_plays_much
def test_the_oracle_wins_and_doing_nothing_does_not(environment, env):
    tasks = some_tasks(environment, 2)
    for record in evaluate(env, load_oracle(environment), tasks):
        assert (record.fault, record.agent_fault, record.success) == (None, None, True), record
        assert 0 < record.score <= environment.score_range[1]
        assert record.turns <= environment.max_turns
    for record in evaluate(env, NullAgent(), tasks):
        assert (record.fault, record.agent_fault, record.success) == (None, None, False), record
        assert record.score <= 0


@each_that_plays_much
def test_each_server_identifies_itself(environment, env, url):
    _, info = env.reset(options={"task_id": 0})
    assert info["served_by"] == httpx.get(url).headers["agentgym-server"]
    world = "" if environment.name in ONE_WORLD else ", seed 0"
    assert re.fullmatch(rf"agentgym-servers/3 \({environment.name}{world}\)", info["served_by"])
    assert env.step("nothing that is an action")[4]["served_by"] == info["served_by"]


@pytest.mark.slow
@each_environment
def test_invalid_requests_get_an_error_message(environment, url):
    """None of it ends the server, and none is a page or a traceback."""
    routes = httpx.get(f"{url}/openapi.json").json()["paths"]
    posts = [path for path, methods in routes.items() if "post" in methods]
    gets = [path for path, methods in routes.items() if "get" in methods]
    numbers = (-1, 10**9, 2**63, -(2**70), 10**400)
    bodies = [{"id": number, "env_idx": number} for number in numbers]
    bodies += [{**body, "action": "x" * 100_000} for body in bodies[:2]]
    with httpx.Client(base_url=url, timeout=60) as client:
        for path in posts:
            if path.endswith("/create"):
                continue
            for body in bodies:
                reply = client.post(path, content=json.dumps(body), headers=JSON)
                assert reply.status_code in {200, 422, 500}, (path, body)
                assert reply.status_code != 200 or reply.json() is False or "error" in reply.json()
            for content in WRONG:
                reply = client.post(path, content=content, headers=JSON)
                assert reply.status_code in {400, 422}, (path, content[:9], reply.text)
                assert list(reply.json()) == ["detail"]
                if reply.status_code == 422:
                    assert all({"type", "loc", "msg"} <= set(each) for each in reply.json()["detail"])
            assert client.post(path, content=b"x" * 1_048_577).status_code == 413
            assert client.get(path).status_code in {405, 200}
        for path in gets:
            for number in numbers:
                reply = client.get(path, params={"id": number, "env_idx": number})
                assert reply.status_code in {200, 422, 500}, (path, number)
                assert reply.status_code != 500 or reply.text == "Internal Server Error"
        assert client.get("/nowhere").status_code == client.post("/nowhere").status_code == 404
        assert [client.get(path).status_code for path in ("/docs", "/redoc")] == [404, 404]
        greeting = client.get("/")
        found = greeting.text if environment.wire.plain_greeting else greeting.json()
        assert found == environment.wire.greeting


WRONG = (
    *(b"", b"{", b"[]", b"{}", b"null", b"\xff", b"[" * 100_000, b'["\\ud800"]'),
    b'{"id": NaN, "env_idx": NaN, "action": NaN}',
    b'{"id": 0.5, "env_idx": 0.5, "action": ""}',
    b'{"id": null, "env_idx": null, "action": null}',
    b'{"id": "\\ud800", "env_idx": "\\ud800", "action": ""}',
    b'{"id": [0], "env_idx": [0], "action": [""]}',
)


@pytest.mark.slow
@each_environment
def test_any_text_is_answered_and_a_refused_reset_leaves_the_task_as_it_was(environment, url):
    with httpx.Client(base_url=url + prefix(environment), timeout=60) as client:
        made = client.post("/create", json={"id": 1}).json()
        made = made if isinstance(made, dict) else {"env_idx": made}
        its = {name: made[name] for name in ("id", "env_idx") if name in made}
        assert client.post("/reset", json=task_of(its, 1)).status_code == 200
        before = client.get("/observation", params=its).json()
        if environment.name not in EVERY_NUMBER_IS_A_TASK:
            reply = client.post("/reset", json=task_of(its, 10**30))
            assert (
                reply.status_code == 500 or list(reply.json()) == ["error"] or FAILED in reply.json().values()
            )
            assert client.get("/observation", params=its).json() == before
        for action in TEXTS:
            reply = client.post("/step", content=json.dumps({**its, "action": action}), headers=JSON)
            assert reply.status_code == 200, action[:9]
            assert len(reply.content) < 100_000 + len(json.dumps(action)), action[:9]  # some repeat it
            reply = reply.json()
            done = reply.get("done", reply.get("terminated"))
            assert "error" in reply or (reply["reward"], isinstance(done, bool)) == (0, True)


TEXTS = (
    *("", "\0", "\ud800", "a\ud800b", "{}", "%s{0}", "DROP TABLE courses", "x" * 10_000, "9" * 1_000_000),
    *("\n" * 1_000, "[" * 900_000, "Action: " * 100_000, "the " * 250_000, "<search>" * 100_000),
)
FAILED = "TimeoutError"  # what WebArena's server has for each reset that fails


def task_of(its, task):
    """Return the body of a reset: the field of the task has another name on each server."""
    names = ("data_idx", "game", "seed") if "id" in its else ("session_id", "item_id", "idx", "seed", "id")
    return its | dict.fromkeys(names, task) | {"world_type": "Text"}  # the last is ALFWorld's


@each_environment
def test_an_oracle_of_one_world_plays_no_other(environment):
    oracle = load_oracle(environment)
    if environment.name in {"TextCraft", "Maze", "MiniWoB"}:  # whose oracles see only observations
        return
    others = ["agentgym-servers/3 (Maze)", f"agentgym-servers/3 ({environment.name}, data)"]
    for served_by in others if environment.name == "Wordle" else [None, *others]:
        with pytest.raises(errors.BadOption, match=f"agentgym serve {environment.name.lower()}"):
            oracle.reset(None, "", {"task_id": 0, "served_by": served_by})


@pytest.mark.slow
def test_the_oracles_need_nothing_of_the_servers():
    program = """if True:
        import sys
        absent = ["fastapi", "uvicorn", "bm25s", "rapidfuzz", "minigrid", "playwright"]
        sys.modules.update(dict.fromkeys(absent))
        import agentgym_gym
        from agentgym_gym.evaluate import load_oracle
        for environment in agentgym_gym.environments():
            if environment.local_server:
                print(load_oracle(environment).name, environment.name)
    """
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == [f"oracle {each.name}" for each in LOCAL]


@each_that_plays_much
def test_a_missing_task_is_a_fault(environment, env):
    last = max(max(tasks) for tasks in environment.splits.values())
    env.reset(options={"task_id": last})
    for task in (-1, last + 1, 10**12):
        with pytest.raises(errors.BadOption, match=f"task_id={task} should be a task of"):
            env.reset(options={"task_id": task})


@each_slow
def test_many_at_once_are_as_one_by_one(environment, url):
    """Half of the clients are the oracle, half draw: no transcript depends on what others do.

    On the servers that start another program it takes minutes; their own tests play a few episodes at once.
    """
    each = (10 if environment.name.lower() in OTHER_PROGRAMS else AT_ONCE) // 2  # eight play at once there
    tasks = list(itertools.islice(itertools.cycle(some_tasks(environment, AT_ONCE // 4)[:each]), each))

    async def played(make_agent, concurrency):
        env = partial(AsyncAgentGymEnv, environment.name, server=url, max_turns=4)
        records = await evaluate_async(env, make_agent, tasks, concurrency=concurrency)
        assert [record.fault or record.agent_fault for record in records] == [None] * len(tasks)
        return [(record.messages, record.rewards, record.success) for record in records]

    async def all_at_once():
        return await asyncio.gather(*(played(agent, len(tasks)) for agent in agents))

    agents = (partial(RandomAgent, 3), partial(load_oracle, environment))
    at_once, alone = asyncio.run(all_at_once()), [asyncio.run(played(agent, 1)) for agent in agents]
    # One value at a time: of whole lists, a failure would show the end, seldom with the difference.
    for one, other in zip(itertools.chain(*at_once), itertools.chain(*alone), strict=True):
        for message, expected in zip(one[0], other[0], strict=False):
            assert message == expected
        assert one == other


@pytest.mark.slow
def test_killed_and_restarted_they_play_the_same():
    """Environments that start another program are in the tests of their servers."""
    with contextlib.ExitStack() as stack:
        (port,) = stack.enter_context(reserved_ports(1))
        server = LocalServer("all", port=port)
        stack.callback(server.stop)
        server.start()
        played = []
        for environment in LOCAL:
            if environment.name.lower() in OTHER_PROGRAMS:
                continue
            url = f"{server.url}/{environment.name.lower()}"
            env = stack.enter_context(contextlib.closing(AgentGymEnv(environment.name, server=url)))
            task = some_tasks(environment, 3)[1]
            played.append((environment, env, task, env.reset(options={"task_id": task})[0]))
        server.process.kill()
        server.process.wait()
        for environment, env, _, _ in played:
            _, reward, terminated, truncated, info = env.step(environment.grammar.examples[0])
            assert (reward, terminated, truncated) == (0.0, False, True), environment.name
            assert info["fault"]["kind"] in {"ConnectionLost", "ServerUnreachable", "LeaseLost"}
        server.start()
        for environment, env, task, first in played:
            assert env.reset(options={"task_id": task})[0] == first, environment.name
            (record,) = evaluate(env, load_oracle(environment), [task])
            assert record.success, environment.name


@pytest.mark.exhaustive
@pytest.mark.may_use(*OTHER_PROGRAMS.values())
def test_one_command_evaluates_all_of_them_and_the_readme_shows_it(tmp_path):
    here = [each for each in LOCAL if available(each.name) is None]
    text = (ROOT / "examples" / "local_servers.toml").read_text("utf-8")
    for environment in LOCAL:
        entry = f'[[environments]]\nid = "{environment.name}"\n\n'
        assert text.count(entry) == 1
        text = text if environment in here else text.replace(entry, "")
    plan, runs = tmp_path / "plan.toml", tmp_path / "runs"
    plan.write_text(text, "utf-8")
    command = ["agentgym_gym", "eval", str(plan), "--out", str(runs)]
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True, capture_output=True, timeout=900)
    rows = []
    for environment in here:
        (folder,) = runs.glob(f"{environment.name}-v0-oracle")
        summary = json.loads((folder / "summary.json").read_bytes())
        success = f"{summary['success_rate']:.2f}".removeprefix("0")
        rows.append(f"| {environment.name} | {success} | {summary['mean_turns']:.2f} |")
    page = (ROOT / "README.md").read_text("utf-8")
    assert set(rows) <= set(page.splitlines())


@each_slow
def test_a_sample_of_its_tasks_is_validated(environment, url):
    """`make validate` does so with all."""
    each = 1 if environment.name.lower() in OTHER_PROGRAMS else 4
    tasks = sorted({*some_tasks(environment, each), *sorted(environment.unwinnable)[::7]})
    ids = ",".join(map(str, tasks))
    ended = command_line.run("validate", environment.name, "--server", url, "--json", "--tasks", ids)
    found = json.loads(ended.stdout)
    assert (ended.exit_code, found["passed"]) == (0, True), found
    assert found["impossible"] == [task for task in tasks if task in environment.unwinnable]
    assert found["gold"]["won"] == len(tasks) - len(found["impossible"]) > 0
    assert found["null"]["not_won"] == len(tasks)


@pytest.mark.slow
@each_environment
def test_a_thousand_episodes_leak_nothing(environment, local_server, url, report_at_end):
    if environment.name.lower() in OTHER_PROGRAMS:
        pytest.skip("each reset takes long: the tests of its own server play fewer episodes")
    tasks = some_tasks(environment, 5)
    base = f"/{environment.name.lower()}{prefix(environment)}"
    action = str(environment.grammar.examples[0])
    if " with Action Input: " in action:
        action = f"Action: {action}"

    def play(episodes):
        for _ in range(0, episodes, 10):
            if not made or environment.wire.closes:
                (reply,) = post_at_once(address, (f"{base}/create", {"id": 0}))
                made.append({"id": reply["id"]} if isinstance(reply, dict) else {"env_idx": reply})
            calls = [
                call
                for task in tasks * 2
                for call in (("reset", task_of(made[-1], task)), ("step", {**made[-1], "action": action}))
            ]
            calls += [("close", made[-1])] if environment.wire.closes else []
            replies = post_at_once(address, *((f"{base}/{route}", body) for route, body in calls))
            assert not any("error" in reply for reply in replies if isinstance(reply, dict))
        return resident(local_server.process.pid)

    made = []
    address = httpx.URL(local_server.url)
    before, after = play(200), play(800)
    listed = httpx.get(f"{url}{prefix(environment) if environment.name == 'Maze' else ''}/list_envs").json()
    left = [its for its in made if next(iter(its.values())) in listed]
    assert left == ([] if environment.wire.closes else made)
    report_at_end(
        f"the {environment.name} server: {before:.0f} MB after 200 episodes, {after:.0f} after 1,000"
    )
    assert after - before < 10


def post_at_once(address, *calls):
    """Send all requests before any reply is read, so that neither side waits for the other each time."""
    with (
        socket.create_connection((address.host, address.port)) as connection,
        connection.makefile("rwb") as file,
    ):
        for path, body in calls:
            content = json.dumps(body).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            file.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        file.flush()
        replies = []
        for path, body in calls:
            assert file.readline().split()[1] == b"200", (path, body)
            heads = dict(line.lower().split(b": ", 1) for line in iter(file.readline, b"\r\n"))
            replies.append(json.loads(file.read(int(heads[b"content-length"]))))
        return replies


def prefix(environment):
    return f"/{environment.name.lower()}" if environment.wire.greeting.endswith("LMRL-Gym.") else ""


def resident(pid):
    """Return the memory that a process holds, in MB."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

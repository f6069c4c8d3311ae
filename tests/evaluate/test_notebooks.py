"""Runs in a notebook: the one of the docs, a kernel that is interrupted, and what cells show."""

from __future__ import annotations

import queue
import re
import sys

import pytest

import needs
from agentgym_gym import errors
from agentgym_gym.evaluate import Run, play, read_run, write_report
from agentgym_gym.testing import ScriptedAgent

MARKUP = "<script>alert(1)</script> & $x$ </pre><b>"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def kernel(tmp_path):
    """A real kernel in the test's folder, and a client of it."""
    pytest.importorskip("nbclient", reason=needs.reason("nbclient"))
    pytest.importorskip("ipykernel", reason=needs.reason("ipykernel"))
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(startup_timeout=120, cwd=str(tmp_path))
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def cell(client, code, note=None):
    """Execute a cell; return its texts, and the name of its error. Each shown text goes to `note`."""
    request, texts, error = client.execute(code), [], None
    while True:
        message = client.get_iopub_msg(timeout=120)
        content = message["content"]
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            return texts, error
        if message["msg_type"] == "error":
            error = content["ename"]
        text = content.get("data", {}).get("text/plain") or content.get("text")
        if text is not None:
            texts.append(text)
            if note is not None:
                note(text)


@pytest.mark.slow
def test_the_notebook_of_the_docs_has_the_outputs_of_its_cells(tmp_path):
    pytest.importorskip("nbclient", reason=needs.reason("nbclient"))
    pytest.importorskip("ipykernel", reason=needs.reason("ipykernel"))
    pytest.importorskip("matplotlib", reason=needs.reason("matplotlib"))
    import nbformat
    import notebook

    written = nbformat.read(notebook.NOTEBOOK, as_version=4)
    again = notebook.executed(nbformat.read(notebook.NOTEBOOK, as_version=4), tmp_path)
    for before, after in zip(written.cells, again.cells, strict=True):
        if before.cell_type == "code":
            assert shown(after) == shown(before), "python docs/notebook.py executes it again"
    text = notebook.NOTEBOOK.read_text("utf-8")
    assert str(tmp_path) not in text
    assert not re.search(r"\d\d:\d\d:\d\d", text)
    assert notebook.NOTEBOOK.stat().st_size < 60_000


def shown(code):
    """Return the outputs of a cell; of an image, that there is one."""
    return [
        {kind: "image" if kind == "image/png" else value for kind, value in output.get("data", {}).items()}
        for output in code.outputs
    ]


@pytest.mark.slow
def test_an_interrupted_kernel_leaves_a_run_that_resumes(kernel):
    manager, client = kernel
    _, error = cell(
        client,
        "from agentgym_gym.evaluate import Run, play_async\nrun = Run('TextCraft', 'oracle', tasks='0:400')",
    )
    assert error is None
    interrupts = queue.SimpleQueue()

    def note(text):
        if not text.startswith("0 of") and interrupts.empty():
            interrupts.put(text)
            manager.interrupt_kernel()

    texts, error = cell(client, "await play_async(run, out='run')", note)
    assert error in {"CancelledError", "KeyboardInterrupt"}
    assert texts[-1].endswith("stopped: resume=True continues")
    kept = read_run("run")
    assert 0 < len(kept.records) < 400
    assert (kept.finished, kept.stopped) == (False, "interrupted")
    assert "(stopped: interrupted)" in kept._repr_html_()
    texts, error = cell(
        client, "(result,) = await play_async(run, out='run', resume=True)\nlen(result.episodes)"
    )
    assert error is None
    assert texts[0].startswith(f"{len(kept.records)} of 400 episodes")
    assert texts[-2:] == ["400 of 400 episodes, success 1.00", "400"]


@pytest.mark.slow
def test_a_cell_without_await_is_an_error_that_names_it(kernel):
    _, client = kernel
    code = "from agentgym_gym.evaluate import Run, play\nplay(Run('TextCraft', 'oracle', limit=1))"
    assert cell(client, code)[1] == "BadOption"


def test_an_episode_shows_its_turns_without_markup(textcraft_url):
    replies = [MARKUP, "Thought:\nI look.\n\nAction:\ninventory"]
    run = Run("TextCraft", lambda: ScriptedAgent(*replies, name=MARKUP), limit=1, server=textcraft_url)
    (result,) = play(run)
    (episode,) = result.episodes
    html = episode._repr_html_()
    assert re.findall(r"<summary>(.*?)</summary>", html) == [
        "First observation",
        "Turn 1, reward 0: NoAction",
        "Turn 2, reward 0: inventory",
    ]
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; $x$ &lt;/pre&gt;&lt;b&gt;" in html
    for text in (html, result._repr_html_()):
        assert {*re.findall(r"<(\w+)", text)} <= TAGS
        assert "mathjax_ignore" in text


TAGS = {"div", "p", "details", "summary", "pre", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_fault_shows_its_kind_and_message(textcraft_url):
    class Broken(ScriptedAgent):
        def act(self, observation, info):
            raise RuntimeError(MARKUP)

    (result,) = play(Run("TextCraft", lambda: Broken(name="broken"), limit=1, server=textcraft_url))
    html = result.episodes[0]._repr_html_()
    assert "not scored" in html
    assert "&lt;script&gt;" in html
    assert "<script" not in html


def test_a_report_shows_a_link_to_its_file(textcraft_url):
    (result,) = play(Run("TextCraft", "oracle", limit=1, server=textcraft_url))
    report = write_report([str(result.path)], 'a "<b>" report.html')
    html = report._repr_html_()
    assert '<a href="a%20%22%3Cb%3E%22%20report.html">a &quot;&lt;b&gt;&quot; report.html</a>' in html
    assert "1 runs, 1 episodes" not in html
    assert "1 run, 1 episode" in html


def test_a_program_prints_its_progress_where_it_is_told_to(textcraft_url, capsys):
    run = Run("TextCraft", "oracle", limit=2, server=textcraft_url, folder="run")
    play(run)
    assert capsys.readouterr().err == ""
    play(run, resume=True, progress=True)
    assert capsys.readouterr().err == "2 of 2 episodes, success 1.00\n"


def test_a_plot_without_matplotlib_names_what_to_install(textcraft_url, monkeypatch):
    results = play(Run("TextCraft", "oracle", limit=1, server=textcraft_url))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(errors.MissingExtra, match=r"matplotlib.*\[plots\]"):
        results.plot()


def test_a_plot_has_a_point_and_an_interval_for_each_run(textcraft_url):
    matplotlib = pytest.importorskip("matplotlib", reason=needs.reason("matplotlib"))
    matplotlib.use("agg")
    runs = [
        Run("TextCraft", "oracle", limit=4, server=textcraft_url, name="$x_$ {"),
        Run("TextCraft", "random", limit=4, server=textcraft_url, max_turns=1),
    ]
    results = play(*runs)
    axes = results.plot()
    axes.figure.canvas.draw()  # a name is no formula
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [result.label for result in results]
    (points, _, (bars,)) = axes.containers[0]
    assert points.get_xdata().tolist() == [1.0, 0.0]
    low, high = results[0].summary.success_interval
    assert bars.get_segments()[0][:, 0].tolist() == pytest.approx([low, high])
    assert results.plot("score", axes=axes) is axes
    with pytest.raises(errors.BadOption, match="metric"):
        results.plot("speed")

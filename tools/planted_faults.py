"""Plant faults by hand, one at a time, where scores and records are decided; print which no test notices.

Each fault is of a kind that a user would notice: a boundary, the last step, the second item, the second
sample, a fault that counts as 0, a mean over the wrong number. They are planted in a copy of the repository.
Run ``python tools/planted_faults.py``, with words of the faults to try only these.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from mutants.copies import copy_tree, replaced

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / "build" / "planted_faults"

JUDGES = "tests/scores/test_judges.py"
RECORDS = "tests/scores/test_records.py"
CREDIT = "tests/scores/test_credit.py"


class Fault(NamedTuple):
    """A fault.

    Attributes:
        file: The file.
        before: The text of the file that it replaces; the file has it once.
        after: The text that replaces it.
        notice: The effect, as a user would notice it.
        tests: The quick tests that should fail, as words of pytest.
    """

    file: str
    before: str
    after: str
    notice: str
    tests: str


FAULTS = [
    # --- judges ---
    Fault(
        "agentgym_servers/textcraft/_game.py",
        "held >= ingredient.count",
        "held > ingredient.count",
        "who holds exactly what a recipe needs cannot craft",
        f"{JUDGES} -k TextCraft",
    ),
    Fault(
        "agentgym_servers/textcraft/_game.py",
        "return not unused",
        "return True",
        "a recipe takes items that it does not need",
        f"{JUDGES} -k TextCraft",
    ),
    Fault(
        "agentgym_servers/textcraft/_game.py",
        "all(self._holds(each) for each in inputs)",
        "self._holds(inputs[0])",
        "only the first item of a recipe has to be held",
        f"{JUDGES} -k TextCraft",
    ),
    Fault(
        "agentgym_servers/maze/_game.py",
        "if self._steps == MAX_STEPS:",
        "if self._steps == MAX_STEPS - 1:",
        "the goal is not reached by the last step",
        f"{JUDGES} -k Maze",
    ),
    Fault(
        "agentgym_servers/wordle/_game.py",
        "last_try = self._tries == MAX_TRIES",
        "last_try = self._tries > MAX_TRIES",
        "a game has a seventh guess",
        f"{JUDGES} -k Wordle",
    ),
    Fault(
        "agentgym_servers/wordle/_game.py",
        "reward=1 if won else 0",
        "reward=1 if won and not last_try else 0",
        "the hidden word in the last guess scores 0",
        f"{JUDGES} -k Wordle",
    ),
    Fault(
        "agentgym_servers/wordle/_game.py",
        'GameTurn("invalid word", reward=0.0, done=last_try)',
        'GameTurn("invalid word", reward=0.0)',
        "an unknown word as the last guess does not end the game",
        f"{JUDGES} -k Wordle",
    ),
    Fault(
        "agentgym_servers/babyai/_game.py",
        "reward, ended or truncated)",
        "reward, ended)",
        "a game continues when its moves are used up",
        f"{JUDGES} -k BabyAI",
    ),
    Fault(
        "agentgym_servers/babyai/_game.py",
        "if truncated or (self._image == before).all():",
        "if (self._image == before).all():",
        "a thing is picked up after the last move",
        f"{JUDGES} -k BabyAI",
    ),
    Fault(
        "agentgym_servers/alfworld/_game.py",
        "float(won), done)",
        "float(won and self._steps < MAX_STEPS), done)",
        "a task done by the last action scores 0",
        f"{JUDGES} -k alfworld",
    ),
    Fault(
        "agentgym_servers/alfworld/_game.py",
        "self._steps >= MAX_STEPS",
        "self._steps > MAX_STEPS",
        "a game has one action more",
        f"{JUDGES} -k alfworld",
    ),
    Fault(
        "agentgym_servers/alfworld/_goals.py",
        "any(count >= self.count for count in Counter(self._done(house, state)).values())",
        "sum(Counter(self._done(house, state)).values()) >= self.count",
        "two objects in two receptacles count as together",
        f"{JUDGES} -k alfworld",
    ),
    Fault(
        "agentgym_servers/alfworld/_goals.py",
        "and not lamps.isdisjoint(here)",
        "and bool(lamps)",
        "an object is looked at under a lamp that is elsewhere",
        f"{JUDGES} -k alfworld",
    ),
    Fault(
        "agentgym_servers/alfworld/_goals.py",
        "(not self.mark or (name, self.mark) in state.marks)",
        "(not self.mark or any(name == each for each, _ in state.marks))",
        "a heated object counts as a cooled one",
        f"{JUDGES} -k alfworld",
    ),
    Fault(
        "agentgym_servers/webshop/_reward.py",
        "bought.price_with(chosen) <= goal.price_limit",
        "bought.price_with(chosen) < goal.price_limit",
        "a price of exactly the limit is too high",
        f"{JUDGES} -k webshop",
    ),
    Fault(
        "agentgym_servers/webshop/_reward.py",
        "any(_alike(value, text) for value in values)",
        "any(_alike(value, text) for value in values[:1])",
        "only the first chosen option counts",
        f"{JUDGES} -k webshop",
    ),
    Fault(
        "agentgym_servers/webshop/_session.py",
        "self._chosen[names[-1]] = item",
        "self._chosen.setdefault(names[-1], item)",
        "an option that was chosen cannot be changed",
        f"{JUDGES} -k webshop",
    ),
    Fault(
        "agentgym_servers/webshop/_session.py",
        "if self._paid is None or self._twin:",
        "if True:",
        "a second purchase is paid, too",
        f"{JUDGES} -k webshop",
    ),
    Fault(
        "agentgym_servers/searchqa/_game.py",
        'for piece in reversed(action.split("</answer>")[:-1]):',
        'for piece in action.split("</answer>")[:-1]:',
        "the first of two answers is scored",
        f"{JUDGES} -k searchqa",
    ),
    Fault(
        "agentgym_servers/searchqa/_game.py",
        "frozenset(map(normalize, question.answers))",
        "frozenset(map(normalize, question.answers[:1]))",
        "only the first of several right answers is right",
        f"{JUDGES} -k searchqa",
    ),
    Fault(
        "agentgym_servers/sqlgym/_statement_runner.py",
        "texts = {repr(tuple(map(_whole, row))) for row in rows}",
        "texts = [repr(tuple(map(_whole, row))) for row in rows]",
        "rows that repeat make a right result wrong",
        f"{JUDGES} -k sqlgym",
    ),
    Fault(
        "agentgym_servers/sqlgym/_statement_runner.py",
        "return int(value) if isinstance(value, float) and value.is_integer() else value",
        "return value",
        "90.0 is another result than 90",
        f"{JUDGES} -k sqlgym",
    ),
    Fault(
        "agentgym_servers/sqlgym/_server.py",
        "reward = 1.0 if judged.right and first else 0.0",
        "reward = 1.0 if judged.right else 0.0",
        "a second attempt scores",
        f"{JUDGES} -k sqlgym",
    ),
    Fault(
        "agentgym_servers/_frame/tools.py",
        "return len(one) == len(other) and all(map(_equal, one, other))",
        "return all(map(_equal, one, other))",
        "a list that lacks its last items is right",
        f"{JUDGES} -k tools",
    ),
    Fault(
        "agentgym_servers/_frame/tools.py",
        "            if not self._done:\n",
        "            if True:\n",
        "a second answer replaces the first",
        f"{JUDGES} -k trial",
    ),
    Fault(
        "agentgym_servers/weather/_service.py",
        "abs(number - self.answer) <= _TOLERANCE",
        "number - self.answer <= _TOLERANCE",
        "every smaller number is right",
        f"{JUDGES} -k tools",
    ),
    Fault(
        "agentgym_servers/todolist/_server.py",
        "super().judge(answer) if self._account.state == self._task.end else 0.0",
        "super().judge(answer)",
        "a task is done by the word done",
        f"{JUDGES} -k todolist",
    ),
    Fault(
        "agentgym_servers/sheet/_world.py",
        "height = max(len(values), len(right))",
        "height = len(right)",
        "rows too many cost nothing",
        f"{JUDGES} -k sheet",
    ),
    Fault(
        "agentgym_servers/textcraft/_game.py",
        "won = item_id == self._goal",
        "won = item_id == self._goal and count == 1",
        "a recipe that makes several items does not win",
        f"{JUDGES} -k TextCraft",
    ),
    Fault(
        "agentgym_servers/textcraft/_game.py",
        "self._held[ingredient.name] -= ingredient.count",
        "self._held[ingredient.name] -= 1",
        "a recipe takes only one of each item",
        f"{JUDGES} -k TextCraft",
    ),
    Fault(
        "agentgym_servers/searchqa/_game.py",
        "reward = 0.0 if self._answered else 1.0",
        "reward = 1.0",
        "a right answer is paid twice",
        f"{JUDGES} -k searchqa",
    ),
    Fault(
        "agentgym_servers/sqlgym/_statement_runner.py",
        '_fingerprint(rows) if has_statement else ""',
        "_fingerprint(rows)",
        "a comment is right where no row is",
        f"{JUDGES} -k sqlgym",
    ),
    Fault(
        "agentgym_servers/_frame/tools.py",
        "return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)",
        "return bool(one == other)",
        "True is right for 1",
        f"{JUDGES} -k tools",
    ),
    Fault(
        "agentgym_servers/sheet/_world.py",
        "width = max(max(map(len, values), default=0), max(map(len, right), default=0))",
        "width = max(map(len, right), default=0)",
        "columns too many cost nothing",
        f"{JUDGES} -k sheet",
    ),
    Fault(
        "agentgym_servers/webshop/_reward.py",
        "score < _OTHER_TITLE",
        "score <= _OTHER_TITLE",
        "a title with a tenth of the words is of another kind",
        f"{JUDGES} -k webshop",
    ),
    Fault(
        "agentgym_servers/webshop/_reward.py",
        "or score > _SAME_TITLE else 0.5",
        "or score >= _SAME_TITLE else 0.5",
        "a title with a fifth of the words is of the same kind",
        f"{JUDGES} -k webshop",
    ),
    # --- the client's rules ---
    Fault(
        "agentgym_gym/envs/_tools.py",
        "best >= 1",
        "best > 0",
        "a part of a sheet counts as success",
        f"{JUDGES} -k rule",
    ),
    Fault(
        "agentgym_gym/envs/sciworld.py",
        "max(gained, -1.0)",
        "max(gained, 0.0)",
        "a failed task scores 0",
        f"{JUDGES} -k rule",
    ),
    Fault(
        "agentgym_gym/envs/searchqa.py",
        "outcome.done or (self.answers is not None and _answers(action))",
        "outcome.done",
        "an agent guesses until it is right",
        f"{JUDGES} -k 'rule or searchqa'",
    ),
    Fault(
        "agentgym_gym/envs/webshop.py",
        "outcome.reward == 1.0",
        "outcome.reward > 0",
        "any purchase counts as success",
        f"{JUDGES} -k rule",
    ),
    Fault(
        "agentgym_gym/envs/maze.py",
        "outcome.reward if outcome.done else score",
        "max(outcome.reward, 0.0) if outcome.done else score",
        "a maze that is failed by the server scores 0",
        f"{JUDGES} -k rule",
    ),
    Fault(
        "agentgym_gym/_remote_episode.py",
        "self._turn >= self.max_turns",
        "self._turn > self.max_turns",
        "an episode has a turn more than its limit",
        f"{RECORDS} -k limit",
    ),
    Fault(
        "agentgym_gym/_remote_episode.py",
        "truncated = not done and self.max_turns is not None",
        "truncated = self.max_turns is not None",
        "a win in the last turn is truncated, too",
        f"{RECORDS} -k limit",
    ),
    Fault(
        "agentgym_gym/envs/sciworld.py",
        "now == _FULL",
        "now > 0",
        "any progress counts as success",
        f"{JUDGES} -k rule",
    ),
    Fault(
        "agentgym_gym/wire.py",
        "success = outcome.done and outcome.reward > 0",
        "success = outcome.reward > 0",
        "a reward before the end counts as success",
        f"{JUDGES} -k rule",
    ),
    Fault(
        "agentgym_gym/envs/_tools.py",
        "best = max(score, outcome.reward) if counts else score",
        "best = outcome.reward if counts else score",
        "progress is lost again",
        f"{JUDGES} -k rule",
    ),
    Fault(
        "agentgym_gym/_remote_episode.py",
        "self._turn, self._score, self._agentgym_score, self._ignored = 0, 0.0, 0.0, ()",
        "self._turn, self._agentgym_score, self._ignored = 0, 0.0, ()",
        "the second episode of an environment begins with the score of the first",
        f"{RECORDS} -k 'limit or progress or step'",
    ),
    Fault(
        "agentgym_gym/_remote_episode.py",
        "reward = score_now.score - self._score",
        "reward = score_now.score",
        "progress is paid again in each turn",
        f"{RECORDS} -k progress",
    ),
    # --- episodes and their records ---
    Fault(
        "agentgym_gym/rollout/_episode.py",
        "score=returned if scored else None",
        "score=returned if scored else 0.0",
        "a fault counts as 0",
        f"{RECORDS} -k fault",
    ),
    Fault(
        "agentgym_gym/rollout/_episode.py",
        "success=self.success if scored else None",
        "success=self.success",
        "success stays after a fault of the agent",
        f"{RECORDS} -k fault",
    ),
    Fault(
        "agentgym_gym/rollout/_episode.py",
        "        if self.fault is not None:\n            return None\n        stated",
        "        stated",
        "success stays after a fault, in what verl gets",
        f"{RECORDS} -k verl",
    ),
    Fault(
        "agentgym_gym/rollout/_episode.py",
        "math.fsum(self.rewards) >= at",
        "math.fsum(self.rewards) > at",
        "a return of exactly the threshold is no success",
        f"{RECORDS} -k success",
    ),
    Fault(
        "agentgym_gym/rollout/_episode.py",
        "len(self.rewards) >= self._max_turns and not terminated",
        "len(self.rewards) >= self._max_turns",
        "a win in the last turn of a rollout is truncated, too",
        f"{RECORDS} -k rollout",
    ),
    Fault(
        "agentgym_gym/evaluate/_runner.py",
        "for sample in range(samples) for task_id in tasks]",
        "for sample in range(samples) for task_id in tasks[sample and 1 :]]",
        "the first task has one sample only",
        f"{RECORDS} -k sample",
    ),
    Fault(
        "agentgym_gym/evaluate/_folder.py",
        "return [episode for episode in episodes if episode not in played]",
        "return [episode for episode in episodes if episode[0] not in dict(played)]",
        "a resume forgets the other samples",
        f"{RECORDS} -k 'killed or resume'",
    ),
    Fault(
        "agentgym_gym/evaluate/_folder.py",
        "if record.scored or not retry_faulted",
        "if record.scored or retry_faulted",
        "a resume retries faulted episodes unasked",
        f"{RECORDS} -k 'retried or resume'",
    ),
    Fault(
        "agentgym_gym/evaluate/_folder.py",
        "        os.truncate(self._episodes, whole)\n",
        "",
        "after a resume, a torn line spoils the next episode",
        f"{RECORDS} -k killed",
    ),
    Fault(
        "agentgym_gym/evaluate/_folder.py",
        "finished = error_type is None if self._planned is None else not self.remaining(self._planned)",
        "finished = error_type is None",
        "a run with episodes left is finished, and one that was whole before an error is not",
        f"{RECORDS} -k finished",
    ),
    Fault(
        "agentgym_gym/evaluate/_folder.py",
        '_SAME = ("env_id", "protocol", "agent", "seed", "options")',
        '_SAME = ("env_id", "protocol", "agent", "options")',
        "a run is resumed with another seed",
        f"{RECORDS} -k fact",
    ),
    Fault(
        "agentgym_gym/evaluate/_runs.py",
        "if record.scored or key not in kept or not kept[key].scored:",
        "if True:",
        "a later fault replaces a score",
        f"{RECORDS} -k attempts",
    ),
    Fault(
        "agentgym_gym/evaluate/_runs.py",
        "if record.scored or key not in kept or not kept[key].scored:",
        "if key not in kept or not kept[key].scored:",
        "the first of two scores counts",
        f"{RECORDS} -k attempts",
    ),
    Fault(
        "agentgym_gym/evaluate/_runs.py",
        "key = record.task_id, record.sample",
        "key = record.task_id, 0",
        "only one sample of a task counts",
        f"{RECORDS} -k 'attempts or resume'",
    ),
    Fault(
        "agentgym_gym/rollout/_records.py",
        'whole = content.rfind(b"\\n") + 1 if torn_end else len(content)',
        "whole = len(content)",
        "a run that was killed within a line cannot be read",
        f"{RECORDS} -k killed",
    ),
    Fault(
        "agentgym_gym/evaluate/_runner.py",
        "            self._count = 0\n            return",
        "            return",
        "faults of the agent end a run although episodes between them went well",
        f"{RECORDS} -k twentieth",
    ),
    Fault(
        "agentgym_gym/evaluate/_runner.py",
        "if self._count >= self._most",
        "if self._count > self._most",
        "a run continues after the twentieth fault of the agent in a row",
        f"{RECORDS} -k twentieth",
    ),
    Fault(
        "agentgym_gym/evaluate/_folder.py",
        "if error_type is not None and not self.records:",
        "if error_type is not None:",
        "an error deletes the episodes that were played",
        f"{RECORDS} -k 'finished or interrupted'",
    ),
    Fault(
        "agentgym_gym/evaluate/_folder.py",
        "summarise(counting(records), self._price)",
        "summarise(records, self._price)",
        "a retried episode counts twice",
        f"{RECORDS} -k retried",
    ),
    Fault(
        "agentgym_gym/rollout/_episode.py",
        '        if info.get("fault"):\n            return self._stated_fault(info)\n        if not obs',
        "        if not obs",
        "a fault that an environment states counts as a score",
        f"{RECORDS} -k fault",
    ),
    Fault(
        "agentgym_gym/rollout/_episode.py",
        "self._fail(error)\n        self.rewards.append(0.0)\n",
        "self._fail(error)\n",
        "the turn of a fault is not counted",
        f"{RECORDS} -k fault",
    ),
    Fault(
        "agentgym_gym/rollout/_episode.py",
        'if "parse_error" in facts or info.get("invalid_action"):',
        'if info.get("invalid_action"):',
        "a reply without an action is no invalid action of a training",
        f"{RECORDS} -k verl",
    ),
    # --- metrics ---
    Fault(
        "agentgym_gym/evaluate/_figures/metrics.py",
        "    for record in scored:\n        parse_errors",
        "    for record in records:\n        parse_errors",
        "parse errors of faulted episodes count",
        f"{RECORDS} -k averages",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/metrics.py",
        "turns = sum(record.turns for record in scored)",
        "turns = sum(record.turns for record in records)",
        "the share of parse errors is over the turns of faulted episodes, too",
        f"{RECORDS} -k averages",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/metrics.py",
        "all(task.known == samples for task in tasks)",
        "all(task.known <= samples for task in tasks)",
        "avg@k counts fewer than k episodes of a task",
        f"{RECORDS} -k 'averages or pass_at or second_sample'",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/by_task.py",
        "known=len(outcomes)",
        "known=len(records)",
        "a fault counts as a failure",
        f"{RECORDS} -k averages",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/by_task.py",
        "tasks.setdefault((record.env_id, record.task_id), [])",
        "tasks.setdefault((record.env_id, record.task_id + 100 * record.sample), [])",
        "averages are over episodes, not tasks",
        f"{RECORDS} -k averages",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/pass_at.py",
        "    if episodes < k:\n",
        "    if episodes <= k:\n",
        "there is no pass@k of k samples",
        f"{RECORDS} -k pass_at",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/pass_at.py",
        "return known if known and len(known) == len(values) else None",
        "return known or None",
        "pass@k leaves out the tasks with a fault",
        f"{RECORDS} -k pass_at",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/pass_at.py",
        "return comb(solved, k) / comb(episodes, k)",
        "return (solved / episodes) ** k",
        "pass^k is not that of the subsets",
        f"{RECORDS} -k pass_at",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/intervals.py",
        "spread = successes / trials, _Z**2 / trials",
        "spread = successes / trials, _Z / trials",
        "the interval of a success rate is too narrow",
        f"{RECORDS} -k interval",
    ),
    Fault(
        "agentgym_gym/evaluate/_compare.py",
        "2 * task.solved >= task.known",
        "2 * task.solved > task.known",
        "a task that half of its samples solve is unsolved",
        f"{RECORDS} -k 'two_runs'",
    ),
    Fault(
        "agentgym_gym/evaluate/_compare.py",
        "[0.0 if isclose(x, y) else y - x for x, y in values]",
        "[y - x for x, y in values]",
        "equal means that differ by rounding are no tie",
        f"{RECORDS} -k two_runs",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/p_values.py",
        "min(1.0, 2 * below / (1 << number))",
        "min(1.0, below / (1 << number))",
        "a test is one-sided, and finds what is not there",
        f"{RECORDS} -k sign_test",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/p_values.py",
        "largest = max(largest, min(1.0, p * (len(tests) - rank)))",
        "largest = min(1.0, p * (len(tests) - rank))",
        "of two comparisons, the weaker one may look stronger",
        "tests/evaluate/test_figures.py -k holm",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/failures.py",
        "if same >= length * (_TIMES - 1)",
        "if same > length * (_TIMES - 1)",
        "an action that is repeated three times is no repeated action",
        f"{RECORDS} -k failures",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/metrics.py",
        "mean_turns=mean(record.turns for record in scored)",
        "mean_turns=mean(record.turns for record in records)",
        "the turns of faulted episodes are averaged, too",
        f"{RECORDS} -k averages",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/metrics.py",
        "tokens = count_tokens(records)",
        "tokens = count_tokens(scored)",
        "faulted episodes cost nothing",
        f"{RECORDS} -k tokens",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/prices.py",
        "cached = min(cached or 0, prompt)",
        "cached = 0",
        "cached tokens cost as much as others",
        f"{RECORDS} -k tokens",
    ),
    Fault(
        "agentgym_gym/evaluate/_compare.py",
        "if a.goal is not None and b.goal is not None and a.goal != b.goal:",
        "if False:",
        "tasks with different goals are compared",
        f"{RECORDS} -k lacks",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/p_values.py",
        "(np.abs(_all_sums(sizes)) >= least)",
        "(np.abs(_all_sums(sizes)) > least + 1e-6)",
        "the p-value of a comparison is too small",
        f"{RECORDS} -k permutation",
    ),
    Fault(
        "agentgym_gym/evaluate/_figures/intervals.py",
        " or min(values) == max(values):",
        ":",
        "an interval of equal shares is missing",
        f"{RECORDS} -k interval",
    ),
    # --- rescored runs and trainings ---
    Fault(
        "agentgym_gym/evaluate/_rescore.py",
        "for turn in range(record.turns) if was[turn].text != now[turn].text]",
        "for turn in range(record.turns - 1) if was[turn].text != now[turn].text]",
        "a last reply that is read otherwise keeps its score",
        f"{RECORDS} -k diverges",
    ),
    Fault(
        "agentgym_gym/evaluate/_rescore.py",
        "    if not record.scored:\n        return record\n",
        "",
        "a score rule scores episodes that a fault ended",
        f"{RECORDS} -k rule",
    ),
    Fault(
        "agentgym_gym/evaluate/_rescore.py",
        "rewards = record.rewards[:turns]",
        "rewards = record.rewards[: turns + 1]",
        "an episode keeps the reward of the turn that is read otherwise",
        f"{RECORDS} -k diverges",
    ),
    Fault(
        "agentgym_gym/evaluate/_trainings.py",
        "return record.step < until",
        "return record.step <= until",
        "a resumed training counts its first step twice",
        f"{RECORDS} -k training",
    ),
    Fault(
        "agentgym_gym/evaluate/_trainings.py",
        "key = record.step, record.task_id",
        "key = record.task_id",
        "the samples of a task are numbered over all steps",
        f"{RECORDS} -k numbered",
    ),
    Fault(
        "agentgym_gym/evaluate/_rescore.py",
        "record.scored:\n                records.append(record)",
        "record.scored and not record.rewards:\n                records.append(record)",
        "an episode that a fault ended is cut by a reading",
        f"{RECORDS} -k diverges",
    ),
    Fault(
        "agentgym_gym/evaluate/_rescore.py",
        "episodes = len(known) + self.diverged",
        "episodes = len(self.records)",
        "faulted episodes count as failures in the bounds of a rescored run",
        f"{RECORDS} -k diverges",
    ),
    # --- verl ---
    Fault(
        "verl_bridge/reward.py",
        'getattr(scores[-1], "record", None)',
        'getattr(scores[0], "record", None)',
        "a row is rewarded by its first turn",
        f"{RECORDS} -k row",
    ),
    Fault(
        "verl_bridge/numbers.py",
        "math.fsum(episode.rewards) if valid else 0.0",
        "math.fsum(episode.rewards)",
        "a faulted episode is paid for what it had",
        f"{RECORDS} -k verl",
    ),
    Fault(
        "verl_bridge/horizon.py",
        "max(step - 1, 0) // self.every",
        "step // self.every",
        "a stage of the horizon ends a step too early",
        CREDIT,
    ),
    Fault(
        "verl_bridge/_credit/gigpo.py",
        "/ (len(values) - 1)",
        "/ len(values)",
        "advantages are too large",
        CREDIT,
    ),
    Fault(
        "verl_bridge/_credit/gigpo.py",
        "of_state[group, state].append((episode, turn))",
        "of_state[state].append((episode, turn))",
        "turns of different tasks are compared",
        CREDIT,
    ),
    Fault(
        "verl_bridge/_run/metrics.py",
        'played = [record for record in own if not record.get("fault")]',
        "played = own",
        "faulted episodes count as zeros in the training log",
        "tests/bridge/test_metrics.py",
    ),
    Fault(
        "verl_bridge/_run/episode_log.py",
        "fault=shown, score=None, success=None,",
        "fault=shown, score=0.0, success=None,",
        "an excluded episode of a training is logged with the score 0",
        CREDIT,
    ),
    Fault(
        "verl_bridge/_run/metrics.py",
        'all(record.get("fault") for record in records)',
        'any(record.get("fault") for record in records)',
        "a step with one fault ends the training",
        "tests/bridge/test_metrics.py",
    ),
    Fault(
        "verl_bridge/_run/metrics.py",
        "if isinstance(value, Real) and not math.isnan(value):\n                numbers",
        "if isinstance(value, Real):\n                numbers",
        "one unknown success makes the success of a step unknown",
        "tests/bridge/test_metrics.py",
    ),
    Fault(
        "verl_bridge/_run/run_checks.py",
        "self._count > MOST_FAILED",
        "self._count >= MOST_FAILED",
        "a training ends a group too early",
        "tests/bridge/test_failed_groups.py",
    ),
    Fault(
        "verl_bridge/_credit/gigpo.py",
        "        ahead = reward + gamma * ahead",
        "        ahead = gamma * (reward + ahead)",
        "returns are discounted once too often",
        CREDIT,
    ),
    Fault(
        "verl_bridge/_credit/gigpo.py",
        "if len(episodes) > 1:",
        "if len(episodes) > 2:",
        "two episodes are not compared",
        CREDIT,
    ),
]


def main() -> int:
    """Try each fault; return the exit status: 1 if a fault was not noticed."""
    faults = [fault for fault in FAULTS if all(word in f"{fault}" for word in sys.argv[1:])]
    copy_tree(ROOT, TREE)
    stale = [fault for fault in faults if (TREE / fault.file).read_text("utf-8").count(fault.before) != 1]
    if stale:
        print("The files do not have these texts once:", *stale, sep="\n  ")
        return 2
    failing = [file for file in sorted({fault.tests.split()[0] for fault in faults}) if _fails(file)]
    if failing:
        print("These fail without a fault:", *failing, sep="\n  ")
        return 2
    alive = 0
    for fault in faults:
        file = TREE / fault.file
        with replaced(file, file.read_text("utf-8").replace(fault.before, fault.after).encode()):
            caught = _fails(fault.tests)
        alive += not caught
        print("caught" if caught else "ALIVE ", fault.file, fault.notice, sep="  ", flush=True)
    print(f"{len(faults) - alive} of {len(faults)} faults were caught.")
    return int(bool(alive))


def _fails(tests: str) -> bool:
    """Return whether a test fails in the copy.

    Raises:
        RuntimeError: The tests do not run.
    """
    command = [sys.executable, "-m", "pytest", "-qx", "-n0", "-p", "no:cacheprovider", *shlex.split(tests)]
    environment = {**os.environ, "PYTHONPATH": str(TREE)}
    run = subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):
        raise RuntimeError(f"{shlex.join(command)}\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return run.returncode == 1


if __name__ == "__main__":
    sys.exit(main())

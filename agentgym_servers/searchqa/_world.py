"""The world of a seed: documents about invented things, and a question for each task.

Comparison questions are not stored but counted, and generated on request.
"""

from __future__ import annotations

import math
from functools import lru_cache

from agentgym_servers._frame.draw import Draw
from agentgym_servers.searchqa._entities import make_entities
from agentgym_servers.searchqa._game import SearchQuestion
from agentgym_servers.searchqa._questions import SearchPlan, SearchTask, comparisons, single_entity_tasks

__all__ = ["TASKS", "SearchWorld", "world_of"]

TASKS = 221_328
"""The number of tasks: the same as on AgentGym's server."""

PARTNERS = 4
"""The number of partners with which a thing is compared in each form of question."""


class SearchWorld:
    """The documents and questions of a seed, the same on every machine.

    Args:
        seed: The seed of the world.

    Attributes:
        documents: The documents: a title in quotes, a line break, and a text.
    """

    def __init__(self, seed: int) -> None:
        entities = make_entities(seed)
        draw = Draw("searchqa", seed, "questions")
        self.documents = [
            each.document for each in draw.shuffled([e for kind in entities.values() for e in kind])
        ]
        self._single = single_entity_tasks(entities)
        # Pairs of a form and a thing; each has one task per partner.
        self._comparisons = [
            (form, index) for form in comparisons(entities, draw) for index in range(len(form.things))
        ]
        self._count = len(self._single) + len(self._comparisons) * PARTNERS
        if self._count < TASKS:
            raise ValueError(f"a world of {self._count} questions is too small for {TASKS} tasks")
        # The ids are spread over all questions with a step near the golden section, so that every range of
        # ids has questions of all forms.
        self._first = draw.below(self._count)
        self._step = self._count * 618_034 // 1_000_000
        while math.gcd(self._step, self._count) > 1:
            self._step += 1

    def question(self, task_id: int) -> SearchQuestion:
        """Return the question of a task.

        Raises:
            LookupError: There is no such task.
        """
        task = self._task(task_id)
        return SearchQuestion(task.question, (task.solution.answer,))

    def solution(self, task_id: int) -> SearchPlan:
        """Return the searches and the answer of a task's question.

        Raises:
            LookupError: There is no such task.
        """
        return self._task(task_id).solution

    def _task(self, task_id: int) -> SearchTask:
        if task_id not in range(TASKS):
            raise LookupError(f"there is no task {task_id}: task ids are 0 to {TASKS - 1}")
        number = (self._first + task_id * self._step) % self._count
        if number < len(self._single):
            return self._single[number].task()
        pair, partner = divmod(number - len(self._single), PARTNERS)
        form, index = self._comparisons[pair]
        return form.task(index, partner)


@lru_cache(maxsize=2)
def world_of(seed: int) -> SearchWorld:
    """Return the world of a seed; cached."""
    return SearchWorld(seed)

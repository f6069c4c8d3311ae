"""Spaces of text.

``gymnasium.spaces.Text`` needs a maximal length and a set of characters, and vector environments batch it
through shared memory as fixed-width arrays. An observation of these environments is any text of any
length, so the spaces here are plain :class:`gymnasium.Space` objects over ``str``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium
from gymnasium.vector.utils import create_shared_memory

from agentgym_gym._tool_calls import takes
from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    import numpy as np

    from agentgym_gym.actions import Grammar
    from agentgym_gym.formats import Format

__all__ = ["ReplySpace", "TextSpace"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MAX_WORDS = 12
_MAX_LETTERS = 9


class TextSpace(gymnasium.Space[str]):
    """All strings.

    Samples are short lower-case sentences: enough to try a program, unlike real text.

    Args:
        seed: Seed of the samples, as in :class:`gymnasium.Space`.
    """

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: text has no fixed-size array."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Return a random sentence.

        Raises:
            ValueError: A mask or a probability is given; text has neither.
        """
        _no_mask(mask, probability)
        rng = self.np_random
        lengths = rng.integers(1, _MAX_LETTERS, size=int(rng.integers(1, _MAX_WORDS)), endpoint=True)
        return " ".join("".join(rng.choice(list(_LETTERS), size=int(length))) for length in lengths)

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a string."""
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ReplySpace(TextSpace):
    """What ``env.step`` takes. Samples are well-formed replies of text with a random action.

    Members are any text, the grammar's typed actions, and function calls, whatever their name and arguments.

    Args:
        action_format: How a reply wraps its action.
        grammar: What the actions are.
        seed: Seed of the samples.
    """

    def __init__(
        self, action_format: Format, grammar: Grammar, seed: int | np.random.Generator | None = None
    ) -> None:
        super().__init__(seed)
        self.action_format = action_format
        self.grammar = grammar

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Return a well-formed reply holding a random action.

        Raises:
            ValueError: A mask or a probability is given; text has neither.
        """
        _no_mask(mask, probability)
        return self.action_format.render(self.grammar.sample(self.np_random))

    def contains(self, x: Any) -> bool:
        """Return whether ``env.step`` takes ``x``, whatever it then says of it."""
        return takes(x, self.grammar)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ReplySpace)
            and other.action_format.name == self.action_format.name
            and other.grammar == self.grammar
        )

    def __hash__(self) -> int:
        return hash((type(self), self.action_format.name, self.grammar))

    def __repr__(self) -> str:
        return f"ReplySpace({self.action_format.name!r}, {self.grammar!r})"


def _no_mask(mask: Any | None, probability: Any | None) -> None:
    if mask is not None or probability is not None:
        raise ValueError("a space of text takes neither a mask nor a probability")


@create_shared_memory.register(TextSpace)
def _share(_space: TextSpace, *_: Any, **__: Any) -> NoReturn:
    """Refuse shared memory, which gymnasium's own `AsyncVectorEnv` uses unless it is told not to.

    Raises:
        BadOption: Always. The message says what does work.
    """
    raise BadOption(
        "text of any length cannot lie in shared memory. Leave out vectorization_mode, and "
        "gymnasium.make_vec makes environments that step at once in one process. For gymnasium's own "
        "AsyncVectorEnv pass shared_memory=False; to make_vec as vector_kwargs={'shared_memory': False}"
    )

"""The space of all strings, without the actions and formats of AgentGym's environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium
from gymnasium.vector.utils import create_shared_memory
from gymnasium.wrappers.utils import create_zero_array

from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    import numpy as np

__all__ = ["TextSpace", "refuse_mask"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MAX_WORDS = 12
_MAX_LETTERS = 9


class TextSpace(gymnasium.Space[str]):
    """All strings.

    Samples are short lower-case sentences: enough to test a program, but unlike real text.

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
            ValueError: A mask or a probability is passed; text supports neither.
        """
        refuse_mask(mask, probability)
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


def refuse_mask(mask: Any | None, probability: Any | None) -> None:
    """Raise ValueError if a mask or a probability is passed for a sample of text."""
    if mask is not None or probability is not None:
        raise ValueError("a space of text takes neither a mask nor a probability")


@create_shared_memory.register(TextSpace)
def _share(_space: TextSpace, *_: Any, **__: Any) -> NoReturn:
    """Reject shared memory, the default of gymnasium's own `AsyncVectorEnv`.

    Raises:
        BadOption: Always. The message lists alternatives.
    """
    raise BadOption(
        "text of any length cannot lie in shared memory. Leave out vectorization_mode, and "
        "gymnasium.make_vec makes environments that step at once in one process. For gymnasium's own "
        "AsyncVectorEnv pass shared_memory=False; to make_vec as vector_kwargs={'shared_memory': False}"
    )


@create_zero_array.register(TextSpace)
def _empty_text(_space: TextSpace) -> str:  # type: ignore[misc]  # of a generic function
    """Return the padding for wrappers that stack or delay observations."""
    return ""

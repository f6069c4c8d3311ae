"""Spaces of text.

``gymnasium.spaces.Text`` needs a maximum length and a character set, and vector environments store it in
shared memory as fixed-width arrays. Observations of these environments are texts of any length, so these
spaces are plain :class:`gymnasium.Space` objects over ``str``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym._text_space import TextSpace, refuse_mask
from agentgym_gym._tool_calls import accepts

if TYPE_CHECKING:
    import numpy as np

    from agentgym_gym.actions import Grammar
    from agentgym_gym.formats import Format

__all__ = ["ReplySpace", "TextSpace"]


class ReplySpace(TextSpace):
    """Arguments of ``env.step``. Samples are well-formed text replies with a random action.

    Members are any text, the grammar's typed actions, and function calls with any name and arguments.

    Args:
        action_format: The format of replies.
        grammar: The actions.
        seed: Seed of the samples.
    """

    def __init__(
        self, action_format: Format, grammar: Grammar, seed: int | np.random.Generator | None = None
    ) -> None:
        super().__init__(seed)
        self.action_format = action_format
        self.grammar = grammar

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Return a well-formed reply with a random action.

        Raises:
            ValueError: A mask or a probability is passed; text supports neither.
        """
        refuse_mask(mask, probability)
        return self.action_format.render(self.grammar.sample(self.np_random))

    def contains(self, x: Any) -> bool:
        """Return whether ``env.step`` accepts ``x``, even if it is not a valid action."""
        return accepts(x, self.grammar)

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

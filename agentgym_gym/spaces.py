"""Spaces of text.

``gymnasium.spaces.Text`` needs a maximal length and a set of characters, and vector environments batch it
through shared memory as fixed-width arrays. An observation of these environments is any text of any
length, so the spaces here are plain :class:`gymnasium.Space` objects over ``str``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym._text_space import TextSpace, refuse_mask
from agentgym_gym._tool_calls import takes

if TYPE_CHECKING:
    import numpy as np

    from agentgym_gym.actions import Grammar
    from agentgym_gym.formats import Format

__all__ = ["ReplySpace", "TextSpace"]


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
        refuse_mask(mask, probability)
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

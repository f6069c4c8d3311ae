"""A reply in words, and the one action that is marked in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from agentgym_gym.actions import Action, Grammar
from agentgym_gym.errors import ActionError, ManyActions, NoAction, UnknownAction
from agentgym_gym.formats._answer import answer_of
from agentgym_gym.formats._blocks import read_block
from agentgym_gym.formats._context import (
    check_meant,
    check_not_taken_back,
    check_tag_ends_sentence,
    doubted,
    said_beside,
)
from agentgym_gym.formats._labels import (
    ANSWERED,
    end_of_turn,
    first_section,
    folded,
    inline_labels,
    labels,
    section_end,
    tags,
)
from agentgym_gym.formats._pieces import PieceReader, is_sentence

__all__ = ["Block", "Reply"]

_CUT_TAG = re.compile(r"<[/\\]?[a-z_]{0,12}\Z", re.IGNORECASE)  # a closing tag that breaks off
_LONGEST_TAG = 16
_STRUCK = re.compile(r"(?<!~)~~(?![~\s])[^\n~]{1,200}(?<!\s)~~(?!~)")
_MOST_TAGS, _MOST_BLOCKS = 200, 40  # that are looked at; a reply that repeats one of them has more
_PROMPT = re.compile(r"\n[ \t]*>")
_ENDS_OF_PIECES = frozenset("`>}")
_ONE_FENCE = 2  # it opens and it closes


class Block(NamedTuple):
    """A part of a reply that is marked as its action.

    Attributes:
        mark: Where the mark begins.
        start: Where what it marks begins.
        end: Where that ends.
        behind: Where the closing mark ends, if there is one.
    """

    mark: int
    start: int
    end: int
    behind: int


class Reply:
    """A reply in words.

    Args:
        reply: All that the model wrote.
        grammar: The actions it may name.

    Raises:
        NoAction: It holds only thinking.
    """

    def __init__(self, reply: str, grammar: Grammar) -> None:
        self.text = answer_of(reply)
        if "<!--" in self.text:
            self.text = _without_comments(self.text)
        if "~~" in self.text and grammar.style.lines:
            self.text = _STRUCK.sub(lambda found: " " * len(found[0]), self.text)
        self.shape = folded(self.text)
        self.reader = PieceReader(grammar)
        self.style = grammar.style
        self.opening: int | None = None

    def labelled(self, *, inline: bool = True) -> Action | None:
        """Return the action behind its labels; None where there is no label.

        Args:
            inline: Whether a label inside a line counts where none begins one.
        """
        shape, found = self.shape, labels(self.shape)
        if len(found) == 1 and (action := self._alone(*found[0])) is not None:  # as most replies are
            return action
        if found:
            ends = [mark.start for mark in found[1:]] + [len(shape)]
            ends = [section_end(shape, mark.end, end) for mark, end in zip(found, ends, strict=True)]
        else:
            found = inline_labels(shape) if inline else []
            starts = [*(mark.start for mark in found), len(shape)][1:]
            ends = [
                min(_end_of_line(shape, mark.end), start) for mark, start in zip(found, starts, strict=True)
            ]
        blocks = [Block(*mark, end, end) for mark, end in zip(found, ends, strict=True)]
        return self.one_of(blocks) if blocks else None

    def _alone(self, label: int, start: int) -> Action | None:
        """Return the action that stands behind the only label, with nothing behind it; None for all else."""
        line, style = self.text[start:].strip(), self.style
        if style.pieces is not None and line[-1:] in _ENDS_OF_PIECES:
            if style.places(line) != [(0, len(line))] or line.count("```") > _ONE_FENCE:
                return None
        elif "\n" in line:
            return None
        shape = self.shape
        if doubted(shape, label) or (
            not shape.startswith("Thought") and doubted(shape, min(first_section(shape), label))
        ):
            return None
        read = self.reader.read(line)
        return read if isinstance(read, Action) else None

    def tagged(self) -> Action | None:
        """Return the action between its tags; None where there is no tag."""
        found = []
        for mark, end, behind in islice(tags(self.shape), _MOST_TAGS):
            cut = _CUT_TAG.search(self.shape, max(mark.end, end - _LONGEST_TAG), end)
            said = cut.start() if cut else end
            inside = labels(self.shape[mark.end : said])
            start = mark.end + inside[-1].end if inside else mark.end  # a whole reply stands between the tags
            found.append(Block(mark.start, start, said, behind))
        return self.one_of(found, tagged=True) if found else None

    def unmarked(self, *, only_marked: bool) -> Action:
        """Return the action of a reply without a mark.

        Args:
            only_marked: Whether only what shows by itself that it is an action counts.

        Raises:
            ActionError: There is none, more than one, or one that is only spoken of.
        """
        end = self._end_of_game() if self.style.lines and not only_marked else len(self.text)
        found = read_block(self.text, self.shape, 0, end, self.reader, marked=False, only_marked=only_marked)
        check_not_taken_back(self.shape, found.end, complete=self.style.marked)
        return found.action

    def _end_of_game(self) -> int:
        """Return where an imagined game goes on: behind its action come an answer and the next command."""
        first = _end_of_line(self.shape, 0)
        if not ANSWERED.match(self.shape, first) or not isinstance(
            self.reader.read(self.text[:first]), Action
        ):
            return len(self.text)
        return first if _PROMPT.search(self.shape, first) else len(self.text)

    def rewrite(self, text: str) -> None:
        """Go on with another text."""
        self.text, self.shape = text, folded(text)

    def one_of(self, blocks: Sequence[Block], *, tagged: bool = False) -> Action:
        """Return the one action of several marked blocks, all of which may say the same.

        Blocks behind the place where the model imagines what its action leads to do not count.

        Args:
            blocks: The blocks, in order.
            tagged: Whether they stand between tags.

        Raises:
            ActionError: There is none, more than one, or one that is only spoken of or taken back.
        """
        action: Action | None = None
        problem: ActionError | None = None
        meant = False  # whether a block that cannot be read was meant as an action
        spoken_of: list[Action] = []
        stop, end, said, tried = len(self.shape), 0, "", 0
        for block, content in self._filled(blocks):
            if block.mark >= stop:
                break
            if content == said:
                end = block.behind if tagged else block.start + len(content)
                continue
            tried += 1
            if tried > _MOST_BLOCKS:
                raise ManyActions("there is more than one action in the reply; write only the first")
            try:
                found = read_block(self.text, self.shape, block.start, block.end, self.reader, marked=True)
                spoken_of.append(found.action)
                self._check_mark(block, tagged=tagged)
            except ActionError as error:
                mention = self._is_mention(error, block, content, tagged=tagged)
                if action is not None and not (mention and tagged):
                    raise ManyActions(
                        "there is more than one action in the reply; write only the first"
                    ) from None
                if problem is None or (not mention and not meant):
                    problem = error
                meant = meant or not mention
                continue
            if meant or any(other != found.action for other in spoken_of):
                raise ManyActions("there is more than one action in the reply; write only the first")
            action, said = found.action, content
            end = block.behind if tagged else found.end
            stop = end_of_turn(self.shape, end)
        if action is None:
            raise problem or NoAction("the place for the action is empty")
        check_not_taken_back(self.shape, end, stop)
        return action

    def _filled(self, blocks: Sequence[Block]) -> Iterator[tuple[Block, str]]:
        """Yield the blocks that say something, with what they say."""
        for block in blocks:
            content = self.text[block.start : block.end].strip()
            if content.strip("*_`#\n "):
                yield block, content

    def _check_mark(self, block: Block, *, tagged: bool) -> None:
        """Check that a mark is not in a sentence, or below one, that makes it an example."""
        if tagged and said_beside(self.shape, block.mark):
            check_meant(self.shape, block.mark, block.behind)
        elif doubted(self.shape, block.mark) or doubted(self.shape, self._first_section(block.mark)):
            raise NoAction("the reply only shows an example of an action")
        elif tagged and self.shape[block.end : block.behind].strip():
            check_tag_ends_sentence(self.shape, block.behind)

    def _first_section(self, end: int) -> int:
        """Return where the reply's first label of any kind stands, such as ``Thought:``."""
        if self.opening is None:
            self.opening = first_section(self.shape)
        return min(self.opening, end)

    def _is_mention(self, error: ActionError, block: Block, content: str, *, tagged: bool) -> bool:
        """Return whether a block that cannot be read only speaks of the mark, or of what it does not do."""
        if isinstance(error, UnknownAction):
            return bool(said_beside(self.shape, block.mark)) if tagged else is_sentence(content)
        return isinstance(error, NoAction)


def _without_comments(text: str) -> str:
    """Return a text with blanks in place of the comments of HTML; one without an end is none."""
    kept, position = [], 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept += [text[position:start], " " * (end + 3 - start)]
        position = end + 3
    return "".join([*kept, text[position:]])


def _end_of_line(shape: str, start: int) -> int:
    end = shape.find("\n", start)
    return len(shape) if end < 0 else end

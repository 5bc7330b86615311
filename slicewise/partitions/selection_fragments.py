"""Texts inside a selection, which know their position for errors."""

from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from slicewise.errors import SelectionError


class SelectionText(NamedTuple):
    """A text inside the selection, with its position in the whole selection."""

    text: str
    position: int
    whole: str

    def refuse(self, reason: str) -> NoReturn:
        """Raise a SelectionError that points at this text."""
        raise SelectionError(reason, self.whole, self.position)

    def strip(self) -> "SelectionText":
        """Return the text without surrounding blanks."""
        blanks = len(self.text) - len(self.text.lstrip())
        return SelectionText(self.text.strip(), self.position + blanks, self.whole)

    def split(self, separator: str) -> Iterator["SelectionText"]:
        """Return the texts between separators, without blanks; an empty text is an error."""
        position = self.position
        for text in self.text.split(separator):
            fragment = SelectionText(text, position, self.whole).strip()
            if not fragment.text:
                fragment.refuse("a key or range is missing here")
            yield fragment
            position += len(text) + len(separator)

    def between(self, start: int, end: int) -> "SelectionText":
        """Return the text from start to end, without surrounding blanks."""
        return SelectionText(self.text[start:end], self.position + start, self.whole).strip()

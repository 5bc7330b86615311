"""The log of a run, as messages for the worker."""

import codecs
from collections.abc import Iterator

from slicewise.runner.wire import Message


class LogText:
    """The bytes of a log as messages of text, up to a limit, with a note at the cut."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room = limit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_cut = False

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the text of more bytes; a character may go on in the next bytes."""
        if self._is_cut:
            return
        text = self._decoder.decode(data[: self._room])
        self._room -= len(data)
        if text:
            yield {"type": "log", "text": text}
        if self._room < 0:
            self._is_cut = True
            note = f"\n[the log is cut here: its limit is {self._limit} bytes]\n"
            yield {"type": "log", "text": note}

    def finish(self) -> Iterator[Message]:
        """Yield the rest of the last character."""
        rest = "" if self._is_cut else self._decoder.decode(b"", final=True)
        if rest:
            yield {"type": "log", "text": rest}

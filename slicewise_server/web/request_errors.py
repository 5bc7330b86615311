"""Errors that services raise for requests that cannot be granted.

Each caller (page, API, command) answers an error in a form of its own.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType

from django.http.multipartparser import MultiPartParserError


class InvalidRequest(ValueError):
    """A wrong request: per field, sentences that name the mistake and the correction.

    The field ``""`` stands for the request as a whole. An API answers 400, a command exits with 2.
    """

    def __init__(self, errors: Mapping[str, str | Sequence[str]]) -> None:
        self.errors: dict[str, list[str]] = {
            field: [messages] if isinstance(messages, str) else list(messages)
            for field, messages in errors.items()
        }
        super().__init__(
            "; ".join(sentence for messages in self.errors.values() for sentence in messages)
        )


class FieldErrors:
    """Errors of several fields of one request, so that all are reported at once.

    ``with errors:`` notes an InvalidRequest that is raised inside, and goes on after the block.
    """

    def __init__(self) -> None:
        self.messages: dict[str, list[str]] = {}

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, InvalidRequest):
            return False
        for field, messages in error.errors.items():
            self.add(field, *messages)
        return True

    def add(self, field: str, *messages: str) -> None:
        """Note sentences about a field."""
        self.messages.setdefault(field, []).extend(messages)


class ConflictingRequest(InvalidRequest):
    """A well-formed request that contradicts the present state: 409."""


class FilesRefused(MultiPartParserError):
    """A form that holds a file: 415. For Django the base class means that the body ends here."""

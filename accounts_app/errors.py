"""What a service raises when a request cannot be granted.

Every door (page, API, command) turns it into its own answer.
"""

from collections.abc import Mapping, Sequence

from django.http.multipartparser import MultiPartParserError


class InvalidRequest(ValueError):
    """The request is wrong: per field, sentences that say what was wrong and what would be right.

    The field ``""`` stands for the request as a whole. An API answers 400, a command exits with 2.
    """

    def __init__(self, errors: Mapping[str, str | Sequence[str]]) -> None:
        self.errors: dict[str, list[str]] = {
            field: [said] if isinstance(said, str) else list(said) for field, said in errors.items()
        }
        super().__init__("; ".join(sentence for said in self.errors.values() for sentence in said))


class ConflictingRequest(InvalidRequest):
    """The request is well formed and contradicts the present state: 409."""


class FilesRefused(MultiPartParserError):
    """A form holds a file: 415. Django takes it, as its base class, for a body that ends here."""

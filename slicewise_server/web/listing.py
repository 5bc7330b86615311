"""Helpers of all lists: pages without a count of all rows, and answers to polling."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

T = TypeVar("T")
STOP_POLLING = 286
_DEEPEST = 10_000


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list; one row more than the page tells whether another page follows."""

    items: Sequence[T]
    number: int
    has_next: bool

    @property
    def has_previous(self) -> bool:
        """Whether a page comes before this page."""
        return self.number > 1

    @property
    def has_other_pages(self) -> bool:
        """Whether there is another page."""
        return self.has_next or self.has_previous

    @property
    def previous_page_number(self) -> int:
        """The number of the page before."""
        return self.number - 1

    @property
    def next_page_number(self) -> int:
        """The number of the page after."""
        return self.number + 1


def page_of_rows(request: HttpRequest, rows: QuerySet[Any], size: int = 50) -> Page[Any]:
    """Return the page that the address names; the first page if the address names no number."""
    number = page_number(request)
    first = (number - 1) * size
    items = list(rows[first : first + size + 1])
    return Page(items[:size], number, len(items) > size)


def page_number(request: HttpRequest, name: str = "page") -> int:
    """Return a page number from the address; 1 if the text is no valid number."""
    text = request.GET.get(name, "")
    return min(max(int(text), 1), _DEEPEST) if text.isdecimal() and len(text) < 9 else 1


def address_of(request: HttpRequest, names: Sequence[str]) -> str:
    """Return the query string of the list as shown: filters and page, without other parameters."""
    return urlencode({name: request.GET[name] for name in names if request.GET.get(name)})


def version_of(shown: object) -> str:
    """Return a digest of the values that a polled part of a page shows. Without the secret key, the
    digest tells nothing of a value that the page masks.
    """
    return salted_hmac("slicewise.polled", repr(shown), algorithm="sha256").hexdigest()[:16]


def unchanged(request: HttpRequest, version: str) -> HttpResponse | None:
    """Return an empty answer if the polling page has this version already; None otherwise."""
    return HttpResponse(status=204) if request.GET.get("version") == version else None

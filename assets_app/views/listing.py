"""What all lists share: pages without counting all there is, and answers to polling."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

T = TypeVar("T")
STOP_POLLING = 286
_DEEPEST = 10_000


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list; whether another follows is known from one row more."""

    items: Sequence[T]
    number: int
    has_next: bool

    @property
    def has_previous(self) -> bool:
        """Whether it is not the first."""
        return self.number > 1

    @property
    def has_other_pages(self) -> bool:
        """Whether there is anything to turn to."""
        return self.has_next or self.has_previous

    @property
    def previous_page_number(self) -> int:
        """The one before."""
        return self.number - 1

    @property
    def next_page_number(self) -> int:
        """The one after."""
        return self.number + 1


def paged(request: HttpRequest, rows: QuerySet[Any], size: int = 50) -> Page[Any]:
    """The page that the address asks for; one that is no number is the first."""
    number = page_number(request)
    first = (number - 1) * size
    found = list(rows[first : first + size + 1])
    return Page(found[:size], number, len(found) > size)


def page_number(request: HttpRequest, name: str = "page") -> int:
    """A page number from the address, 1 where it makes no sense."""
    text = request.GET.get(name, "")
    return min(max(int(text), 1), _DEEPEST) if text.isdecimal() and len(text) < 9 else 1


def address_of(request: HttpRequest, names: Sequence[str]) -> str:
    """Query string of a list as it is shown: filters and page, nothing else that was sent."""
    return urlencode({name: request.GET[name] for name in names if request.GET.get(name)})


def unchanged(request: HttpRequest, version: str) -> HttpResponse | None:
    """The short answer to whoever polls and has this version already."""
    return HttpResponse(status=204) if request.GET.get("version") == version else None

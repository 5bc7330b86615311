"""The results of the search: links with further words, in sections."""

from typing import NamedTuple

MOST_HITS = 10


class Hit(NamedTuple):
    """A result: the text of the link, the address, the state of a run or backfill, and further
    words.
    """

    label: str
    url: str
    note: str = ""
    state: str = ""


class Section(NamedTuple):
    """The results of one kind, the address of the list with all of these, and whether rows were
    left unread.
    """

    title: str
    hits: list[Hit]
    all_url: str = ""
    is_cut: bool = False

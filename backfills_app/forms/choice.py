"""The choice of assets for a backfill: the assets that a person may choose, and the assets that
were chosen: one, several, a group, or a tag.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from django import forms
from django.http import QueryDict

from accounts_app.models import User
from accounts_app.policy import Action, reach
from assets_app.models import Asset
from backfills_app.services.request.naming import named_assets
from partitions_app.rules import has_time
from slicewise_server.web.request_errors import InvalidRequest

WAYS = (
    ("asset", "One asset"),
    ("assets", "Several assets"),
    ("asset_group", "A group"),
    ("asset_tag", "A tag"),
)
# With more assets than these, the names are typed.
MOST_BOXES = 300
_MOST_SUGGESTED = 30


class Suggestion(NamedTuple):
    """A text that a field suggests, and a label: browsers compare both with the typed text."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Offered:
    """The names of the assets that a person may backfill, the assets with time among these, and the
    groups and tags of these assets.
    """

    names: Sequence[str] = ()
    timed: Sequence[str] = ()
    groups: Sequence[str] = ()
    tags: Sequence[str] = ()
    # The group of each asset that has a group.
    group_of: Mapping[str, str] = field(default_factory=dict)

    def suggested(self, text: str = "") -> list[Suggestion]:
        """Return the first assets with time that have a text in the name or the group."""
        return self._matching(self.timed, "", text)

    def suggested_next(self, text: str = "") -> list[Suggestion]:
        """Return texts that complete the last name of a text with commas between names."""
        head, comma, last = text.rpartition(",")
        typed_names = set(names_in(head))
        names = [name for name in self.names if name not in typed_names]
        return self._matching(names, f"{head}, " if comma else "", last)

    def _matching(self, names: Iterable[str], head: str, text: str) -> list[Suggestion]:
        wanted = text.strip().casefold()
        matches = (
            Suggestion(head + name, head + group if (group := self.group_of.get(name)) else "")
            for name in names
            if wanted in name.casefold() or wanted in self.group_of.get(name, "").casefold()
        )
        return list(islice(matches, _MOST_SUGGESTED))


@dataclass(frozen=True, slots=True)
class Choice:
    """The field that chooses the assets, and its value; the value is empty before the choice."""

    by: str
    value: str | list[str]

    @property
    def text(self) -> str:
        """The choice as text, to see whether dependent fields were shown for this choice or another
        one.
        """
        if isinstance(self.value, list):
            return f"{self.by}={','.join(self.value)}"
        return self.value if self.by == "asset" else f"{self.by}={self.value}"

    @property
    def assets(self) -> tuple[Asset, ...]:
        """The declared assets of the choice; none for an invalid choice."""
        try:
            return named_assets(
                **dict.fromkeys(("asset", "assets", "asset_group", "asset_tag"), "")
                | {self.by: self.value}
            ).assets
        except InvalidRequest:
            return ()


class NamesField(forms.Field):
    """Names of assets: boxes, or a text with commas between them."""

    def to_python(self, value: Any) -> list[str]:
        """Return the names in the order in which the names are given."""
        return names_in(value)


def offered_to(user: User) -> Offered:
    """Return the assets, groups and tags that this person may choose."""
    within = reach(user, Action.BACKFILL)
    if not within:
        return Offered()
    rows = Asset.objects.declared().filter(producer__current_version__isnull=False)
    assets = [asset for asset in rows.order_by("name") if within.covers(asset)]
    return Offered(
        names=[asset.name for asset in assets],
        timed=[asset.name for asset in assets if has_time(asset.definition)],
        group_of={asset.name: asset.group for asset in assets if asset.group},
        groups=sorted({asset.group for asset in assets if asset.group}),
        tags=sorted({tag for asset in assets for tag in asset.tags}),
    )


def choice_in(data: Mapping[str, Any]) -> Choice:
    """Return the choice in a form, or in a link to the form."""
    way_names = [way for way, _ in WAYS]
    by = data.get("by")
    if by not in way_names:
        by = next((way for way in way_names if data.get(way)), "asset")
    if by == "assets":
        values = data.getlist(by) if isinstance(data, QueryDict) else data.get(by)
        return Choice(by, names_in(values))
    return Choice(by, str(data.get(by) or ""))


def names_in(value: Any) -> list[str]:
    """Return names from texts with commas between them, each once."""
    texts = [value] if isinstance(value, str) else list(value or ())
    names = (name.strip() for text in texts for name in str(text).split(","))
    return list(dict.fromkeys(name for name in names if name))

"""Which assets a person may choose for a backfill, and which were chosen: one, several, a group, or
a tag.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from accounts_app.errors import InvalidRequest
from accounts_app.models import User
from accounts_app.policy import Action, reach
from assets_app.models import Asset
from backfills_app.services.naming import named_assets
from partitions_app.rules import has_time

WAYS = (
    ("asset", "One asset"),
    ("assets", "Several assets"),
    ("asset_group", "A group"),
    ("asset_tag", "A tag"),
)
# Of more assets the names are typed.
MOST_BOXES = 300


@dataclass(frozen=True, slots=True)
class Offered:
    """Names of the assets that a person may backfill, those with a past to fill among them, and
    their groups and tags.
    """

    names: Sequence[str] = ()
    timed: Sequence[str] = ()
    groups: Sequence[str] = ()
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The field that says which assets, and its value; empty where nothing was chosen yet."""

    by: str
    value: str | list[str]

    @property
    def text(self) -> str:
        """The choice as text: what depends on it was made for another one, or for this."""
        if isinstance(self.value, list):
            return f"{self.by}={','.join(self.value)}"
        return self.value if self.by == "asset" else f"{self.by}={self.value}"

    @property
    def assets(self) -> tuple[Asset, ...]:
        """The declared assets that it names; none where it names none."""
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
        """Return the names in the order in which they are given."""
        return names_in(value)


def offered_to(user: User) -> Offered:
    """Return what this person may choose."""
    within = reach(user, Action.BACKFILL)
    if not within:
        return Offered()
    rows = Asset.objects.declared().filter(producer__current_version__isnull=False)
    assets = [asset for asset in rows.order_by("name") if within.covers(asset)]
    return Offered(
        names=[asset.name for asset in assets],
        timed=[asset.name for asset in assets if has_time(asset.definition)],
        groups=sorted({asset.group for asset in assets if asset.group}),
        tags=sorted({tag for asset in assets for tag in asset.tags}),
    )


def choice_in(data: Mapping[str, Any]) -> Choice:
    """Return what was chosen in a form, or by a link to it."""
    ways = [way for way, _ in WAYS]
    by = data.get("by")
    if by not in ways:
        by = next((way for way in ways if data.get(way)), "asset")
    if by == "assets":
        sent = data.getlist(by) if isinstance(data, QueryDict) else data.get(by)
        return Choice(by, names_in(sent))
    return Choice(by, str(data.get(by) or ""))


def names_in(value: Any) -> list[str]:
    """Return names from texts with commas between them, each once."""
    texts = [value] if isinstance(value, str) else list(value or ())
    names = (name.strip() for text in texts for name in str(text).split(","))
    return list(dict.fromkeys(name for name in names if name))

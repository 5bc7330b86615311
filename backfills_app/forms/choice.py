"""The choice of assets for a backfill: the assets that a person may choose, and the assets that
were chosen: one, several, a group, or a tag.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
# With more assets than these, the asset is searched.
MOST_OPTIONS = 50


@dataclass(frozen=True, slots=True)
class Offered:
    """The names of the assets that a person may backfill, the assets with time among these, and the
    groups and tags of these assets.
    """

    names: Sequence[str] = ()
    timed: Sequence[str] = ()
    groups: Sequence[str] = ()
    tags: Sequence[str] = ()
    # The groups of the assets with time, in the order of the assets.
    timed_groups: Sequence[str] = ()

    def matching(self, text: str) -> list[str]:
        """Return the assets with time that have a text in the name or the group."""
        return [
            name
            for name, group in zip(self.timed, self.timed_groups, strict=True)
            if text in name.casefold() or text in group.casefold()
        ]


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
    timed_assets = [asset for asset in assets if has_time(asset.definition)]
    return Offered(
        names=[asset.name for asset in assets],
        timed=[asset.name for asset in timed_assets],
        timed_groups=[asset.group for asset in timed_assets],
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

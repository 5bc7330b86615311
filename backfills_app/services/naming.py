"""The assets that a request chooses: one by its name, several, those of a group or with a tag."""

from typing import NamedTuple

from accounts_app.errors import InvalidRequest
from accounts_app.storable import is_storable
from assets_app.models import Asset
from assets_app.queries.lookups import no_asset_sentence
from backfills_app.services.errors import refuse_above

_MOST_NAMED = 10


class Named(NamedTuple):
    """The assets that a request chooses, and the field that says so."""

    field: str
    assets: tuple[Asset, ...]


def named_assets(asset: object, assets: object, asset_group: object, asset_tag: object) -> Named:
    """Return the declared assets that one of these chooses, names in the order in which they are
    given, others by name.

    ``assets`` is a list of names, or a text with commas between them. InvalidRequest on the field
    that is wrong.
    """
    given = {
        "asset": asset, "assets": assets, "asset_group": asset_group, "asset_tag": asset_tag,
    }  # fmt: skip
    chosen = [name for name, value in given.items() if value not in ("", None, [], ())]
    if not chosen:
        raise InvalidRequest({"asset": "Name an asset."})
    if len(chosen) > 1:
        ways = ", ".join(given)
        raise InvalidRequest(
            {chosen[1]: f"Choose assets by one of {ways}, not by {' and '.join(chosen)}."}
        )
    field = chosen[0]
    found: tuple[Asset, ...]
    match field:
        case "asset":
            found = (_named(asset),)
        case "assets":
            found = _several(assets)
        case "asset_group":
            found = _grouped(asset_group)
        case _:
            found = _tagged(asset_tag)
    refuse_too_many_assets(len(found), field)
    return Named(field, found)


def refuse_too_many_assets(number: int, field: str) -> None:
    """Refuse more assets than one backfill may have."""
    refuse_above("MAX_ASSETS_PER_BACKFILL", number, "assets", field)


def _named(name: object) -> Asset:
    found = Asset.objects.declared().filter(name=name).first() if _is_text(name) else None
    if found is None:
        raise InvalidRequest({"asset": no_asset_sentence(name)})
    return found


def _several(names: object) -> tuple[Asset, ...]:
    if isinstance(names, str):
        names = names.split(",")
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest({"assets": f"{names!r:.200} is no list of names of assets."})
    wanted = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not wanted:
        raise InvalidRequest({"assets": "Name an asset."})
    refuse_too_many_assets(len(wanted), "assets")
    readable = [name for name in wanted if is_storable(name)]
    rows = {row.name: row for row in Asset.objects.declared().filter(name__in=readable)}
    unknown = [name for name in wanted if name not in rows]
    if unknown:
        if len(unknown) == 1:
            raise InvalidRequest({"assets": no_asset_sentence(unknown[0])})
        shown = ", ".join(repr(name) for name in unknown[:_MOST_NAMED])
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        raise InvalidRequest({"assets": f"There is no asset {shown}{more}."})
    return tuple(rows[name] for name in wanted)


def _grouped(group: object) -> tuple[Asset, ...]:
    rows = Asset.objects.declared().order_by("name")
    found = tuple(rows.filter(group=group)) if _is_text(group) else ()
    if not found:
        groups = rows.exclude(group="").order_by("group").values_list("group", flat=True)
        raise InvalidRequest(
            {"asset_group": f"No asset is in group {group!r}.{_there_are(list(groups.distinct()))}"}
        )
    return found


def _tagged(tag: object) -> tuple[Asset, ...]:
    rows = Asset.objects.declared().order_by("name")
    found = tuple(rows.filter(tags__contains=[tag])) if _is_text(tag) else ()
    if not found:
        lists = rows.exclude(tags=[]).order_by().values_list("tags", flat=True)
        tags = sorted({each for some in lists for each in some})
        raise InvalidRequest({"asset_tag": f"No asset has the tag {tag!r}.{_there_are(tags)}"})
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_storable(value)


def _there_are(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f" There are: {', '.join(names[:_MOST_NAMED])}{more}."

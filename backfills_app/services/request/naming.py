"""The choice of assets in a request: one asset by name, several by name, a group, or a tag."""

from typing import NamedTuple

from assets_app.models import Asset
from assets_app.queries.lookups import no_asset_sentence
from backfills_app.services.partitions.frozen_assets import refuse_too_many_assets
from slicewise.texts import listed
from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.storable import is_storable

_MOST_NAMED = 10


class Named(NamedTuple):
    """The assets that a request chooses, and the name of the request field that chooses
    the assets.
    """

    field: str
    assets: tuple[Asset, ...]


def named_assets(asset: object, assets: object, asset_group: object, asset_tag: object) -> Named:
    """Return the declared assets that a request chooses by exactly one of these fields.

    Assets in ``assets`` keep the order of the request; assets of a group or with a tag are ordered
    by name. ``assets`` is a list of names, or a text with commas between names. Raises
    InvalidRequest on the field that is wrong.
    """
    field_values = {
        "asset": asset, "assets": assets, "asset_group": asset_group, "asset_tag": asset_tag,
    }  # fmt: skip
    chosen_fields = [
        name for name, value in field_values.items() if value not in ("", None, [], ())
    ]
    if not chosen_fields:
        raise InvalidRequest({"asset": "Name an asset."})
    if len(chosen_fields) > 1:
        field_names = ", ".join(field_values)
        raise InvalidRequest(
            {
                chosen_fields[
                    1
                ]: f"Choose assets by one of {field_names}, not by {' and '.join(chosen_fields)}."
            }
        )
    field = chosen_fields[0]
    chosen_assets: tuple[Asset, ...]
    match field:
        case "asset":
            chosen_assets = (_by_name(asset),)
        case "assets":
            chosen_assets = _by_names(assets)
        case "asset_group":
            chosen_assets = _by_group(asset_group)
        case _:
            chosen_assets = _by_tag(asset_tag)
    refuse_too_many_assets(len(chosen_assets), field)
    return Named(field, chosen_assets)


def _by_name(name: object) -> Asset:
    asset = Asset.objects.declared().filter(name=name).first() if _is_text(name) else None
    if asset is None:
        raise InvalidRequest({"asset": no_asset_sentence(name)})
    return asset


def _by_names(names: object) -> tuple[Asset, ...]:
    if isinstance(names, str):
        names = names.split(",")
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest({"assets": f"{names!r:.200} is no list of names of assets."})
    requested_names = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not requested_names:
        raise InvalidRequest({"assets": "Name an asset."})
    refuse_too_many_assets(len(requested_names), "assets")
    readable = [name for name in requested_names if is_storable(name)]
    rows = {row.name: row for row in Asset.objects.declared().filter(name__in=readable)}
    unknown = [name for name in requested_names if name not in rows]
    if unknown:
        if len(unknown) == 1:
            raise InvalidRequest({"assets": no_asset_sentence(unknown[0])})
        shown = listed([repr(name) for name in unknown], _MOST_NAMED)
        raise InvalidRequest({"assets": f"There is no asset {shown}."})
    return tuple(rows[name] for name in requested_names)


def _by_group(group: object) -> tuple[Asset, ...]:
    rows = Asset.objects.declared().order_by("name")
    assets = tuple(rows.filter(group=group)) if _is_text(group) else ()
    if not assets:
        groups = rows.exclude(group="").order_by("group").values_list("group", flat=True)
        raise InvalidRequest(
            {"asset_group": f"No asset is in group {group!r}.{_there_are(list(groups.distinct()))}"}
        )
    return assets


def _by_tag(tag: object) -> tuple[Asset, ...]:
    rows = Asset.objects.declared().order_by("name")
    assets = tuple(rows.filter(tags__contains=[tag])) if _is_text(tag) else ()
    if not assets:
        lists = rows.exclude(tags=[]).order_by().values_list("tags", flat=True)
        tags = sorted({declared_tag for tag_list in lists for declared_tag in tag_list})
        raise InvalidRequest({"asset_tag": f"No asset has the tag {tag!r}.{_there_are(tags)}"})
    return assets


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_storable(value)


def _there_are(names: list[str]) -> str:
    return f" There are: {listed(names, _MOST_NAMED)}." if names else ""

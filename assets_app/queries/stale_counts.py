"""Numbers of stale partitions of assets: one statement for any number of assets.

A count reads rows (`outdated.py`). Where that takes long, the result is kept for a while, so that
counting takes a small share of the time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assets_app.models import Asset
from assets_app.queries.outdated import candidates_by_asset, outdated_statement, stale_candidates
from partitions_app.rules import identity_of
from slicewise_server.web.kept_counts import kept_count

# So many keys of an asset are examined; a larger count is shown as "1,000+".
MOST_COUNTED = 1000
_STALE = outdated_statement(
    "SELECT asset_id, is_shared, count(*), (array_agg(key ORDER BY key))[1:%(most)s]",
    rows="candidate GROUP BY 1, 2",
)


@dataclass(frozen=True, slots=True)
class StaleCount:
    """The number of stale partitions of an asset; at least so many where ``is_cut``."""

    number: int
    is_cut: bool = False


def stale_counts(assets: Iterable[Asset]) -> Mapping[int, StaleCount]:
    """Return the stale partitions by asset id, without assets that have none.

    The assets have their partition definitions. Partitions that a definition has lost, and
    partitions that a run holds, do not count.
    """
    by_id = {asset.pk: asset for asset in assets if asset.active}
    return _kept({pk: asset.identity for pk, asset in by_id.items()}, by_id)


def stale_counts_of_all() -> Mapping[int, StaleCount]:
    """Return the stale partitions of all declared assets by asset id, without assets that have
    none. Only assets are read that may have some.
    """
    readers = Asset.objects.filter(active=True, upstream_edges__isnull=False).distinct()
    rows = readers.order_by("pk").values_list("pk", "partition_definition__identity")
    return _kept({pk: identity or identity_of(None) for pk, identity in rows}, {})


def _kept(identities: Mapping[int, str], by_id: Mapping[int, Asset]) -> Mapping[int, StaleCount]:
    if not identities:
        return {}
    ids = ",".join(f"{pk}:{identity}" for pk, identity in sorted(identities.items()))
    rows = kept_count(f"stale {ids}", lambda: _counted(identities, by_id))
    return {pk: StaleCount(number, is_cut) for pk, number, is_cut in rows}


def _counted(
    identities: Mapping[int, str], by_id: Mapping[int, Asset]
) -> list[tuple[int, int, bool]]:
    """Return the id, the number, and whether the number is cut, of each asset that has any.

    ``by_id`` has the assets that the caller has read.
    """
    values = {
        "assets": list(identities), "identities": list(identities.values()), "most": MOST_COUNTED,
    }  # fmt: skip
    candidates_by_id = candidates_by_asset(_STALE, values)
    unread_ids = candidates_by_id.keys() - by_id.keys()
    if unread_ids:
        with_rule = Asset.objects.select_related("partition_definition")
        by_id = {**by_id, **with_rule.in_bulk(unread_ids)}
    stale_keys = stale_candidates({by_id[pk]: rows for pk, rows in candidates_by_id.items()})
    counts = []
    for asset_id, all_candidates in candidates_by_id.items():
        number = len(stale_keys[asset_id])
        most = max(number, *(candidates.number for candidates in all_candidates))
        if number:
            counts.append((asset_id, min(number, MOST_COUNTED), most > MOST_COUNTED))
    return counts

"""Checks a request: what is wrong with it, and which partitions of which assets it names. The same
for the preview and for the creation, and without a look at any partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from accounts_app import policy
from accounts_app.errors import InvalidRequest
from accounts_app.models import User
from assets_app.execution.requests import checked_params, checked_strategy
from assets_app.models import Asset, BundleVersion, ProducerVersion
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services.choosing import Chosen, choose, refuse_too_many
from backfills_app.services.freezing import (
    code_version,
    current_part,
    definition_of,
    frozen_version,
    require_order,
    require_same_cut,
)
from backfills_app.services.layers import follow, outlets_of
from backfills_app.services.parts import Part, edges_of
from backfills_app.services.requests import BackfillRequest, gather

MOST_ACTIVE_RUNS = 1000
LONGEST_DESCRIPTION = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A request without fault: its assets, upstream before downstream, and the hull of the time of
    the asset asked for.

    ``refused`` are sentences on what it will not do, which keep nobody from asking for the rest.
    """

    parts: Sequence[Part]
    refused: Sequence[str]
    start_date: datetime
    end_date: datetime
    code_version: BundleVersion
    # What is not over then, is not made.
    at: datetime

    @property
    def asked(self) -> Part:
        """The asset asked for."""
        return self.parts[0]


def checked(request: BackfillRequest, *, user: User) -> Checked:
    """What the request names.

    Raises PermissionDenied, and InvalidRequest with all fields that are wrong at once.
    """
    policy.require_for_assets(user, policy.Action.BACKFILL, [request.asset])
    at = timezone.now()
    errors: dict[str, list[str]] = {}
    frozen_from = gather(errors, lambda: code_version(request.asset, request.code_version))
    asked = gather(errors, lambda: _asked(request, frozen_from, at, errors))
    _check_words(request, errors)
    following = (
        None if asked is None else gather(errors, lambda: follow(request, asked, frozen_from, at))
    )
    parts = [*([asked] if asked else ()), *(following.parts if following else ())]
    versions = [(part.asset, part.version) for part in parts]
    gather(errors, lambda: require_order(request.order, versions))
    if errors or asked is None or following is None:
        raise InvalidRequest(errors)
    made = [outlet for part in parts for outlet in part.outlets]
    policy.require_for_assets(user, policy.Action.BACKFILL, made)
    refuse_too_many(
        sum(len(part.whole) for part in parts), "downstream" if len(parts) > 1 else _field(request)
    )
    hull = asked.whole.hull
    assert hull is not None  # noqa: S101  (what is asked for has windows)
    return Checked(
        parts=parts,
        refused=following.refused,
        start_date=hull.start,
        end_date=hull.end,
        code_version=frozen_from or asked.version.bundle_version,
        at=at,
    )


def _asked(
    request: BackfillRequest,
    frozen_from: BundleVersion | None,
    at: datetime,
    errors: dict[str, list[str]],
) -> Part | None:
    """The asset asked for; None with what is wrong added to the errors."""
    asset = request.asset
    version = _frozen(asset, frozen_from)
    params = gather(errors, lambda: checked_params(version, request.params))
    strategy = gather(errors, lambda: checked_strategy(request.strategy, default=version.strategy))
    chosen = gather(errors, lambda: _chosen(request, version, at))
    if params is None or strategy is None or chosen is None:
        return None
    part = Part(
        asset=asset,
        version=version,
        definition=definition_of(asset, version),
        terms=tuple(each for term in chosen.terms if (each := current_part(asset, term))),
        outlets=outlets_of(asset, version),
        strategy=strategy,
        params=params,
        not_over=chosen.not_over,
    )
    if not part.whole:
        raise InvalidRequest(
            {_field(request): f"{asset.name} has none of these partitions any more."}
        )
    part.edges = edges_of(part, (), at)
    return part


def _frozen(asset: Asset, bundle_version: BundleVersion | None) -> ProducerVersion:
    version = frozen_version(asset, bundle_version)
    require_same_cut(asset, version)
    return version


def _chosen(request: BackfillRequest, version: ProducerVersion, at: datetime) -> Chosen:
    chosen = choose(request, definition_of(request.asset, version), at)
    refuse_too_many(len(chosen.whole), _field(request))
    return chosen


def _field(request: BackfillRequest) -> str:
    """The field that says which partitions."""
    return "selection" if request.selection else "end"


def _check_words(request: BackfillRequest, errors: dict[str, list[str]]) -> None:
    if not 1 <= request.max_active_runs <= MOST_ACTIVE_RUNS:
        errors["max_active_runs"] = [
            f"Between 1 and {MOST_ACTIVE_RUNS}, not {request.max_active_runs}."
        ]
    if len(request.description) > LONGEST_DESCRIPTION:
        errors["description"] = [
            f"At most {LONGEST_DESCRIPTION} characters, not {len(request.description)}."
        ]
    if request.existing not in ExistingPolicy.values:
        errors["existing"] = [
            f"{request.existing!r} is none of {', '.join(ExistingPolicy.values)}."
        ]
    if request.order not in BackfillOrder.values:
        errors["order"] = [f"{request.order!r} is none of {', '.join(BackfillOrder.values)}."]

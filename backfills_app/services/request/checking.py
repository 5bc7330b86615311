"""The check of a request: its errors, and the assets and partitions that it names. Preview and
creation use the same check, which reads no partitions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts_app import policy
from accounts_app.models import User
from assets_app.execution.queue.waiting import waits_for_past
from assets_app.models import Asset, BundleVersion, ProducerVersion
from assets_app.queries.clock import database_now
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services.partitions.scopes import AssetScope
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.frozen_request import (
    FrozenRequest,
    freeze_chosen,
    include_upstream,
)
from backfills_app.services.request.tree import Tree, grow
from partitions_app.rules import has_time
from slicewise_server.web.request_errors import FieldErrors, InvalidRequest

MOST_ACTIVE_RUNS = 1000
LONGEST_DESCRIPTION = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A request without errors: its assets, upstream before downstream, and the time span of the
    chosen assets.

    ``first_chosen`` is the first chosen asset with time, or the first chosen asset if none has
    time. ``refused`` are sentences on assets and partitions that the backfill leaves out; the rest
    can be requested all the same.
    """

    scopes: Sequence[AssetScope]
    first_chosen: AssetScope
    refused: Sequence[str]
    start_date: datetime
    end_date: datetime
    code_version: BundleVersion
    # Partitions that have not ended by this time are left out.
    at: datetime

    @property
    def timed(self) -> AssetScope:
        """The asset ``first_chosen``, or another asset that has time."""
        return next(
            scope for scope in (self.first_chosen, *self.scopes) if has_time(scope.definition)
        )


def checked(request: BackfillRequest, *, user: User) -> Checked:
    """Check the request, and return the assets and partitions that it names.

    Raises PermissionDenied, and InvalidRequest with all wrong fields at once.
    """
    errors = FieldErrors()
    with errors:
        _check_settings(request)
    # Assets of a group that another program writes are left out.
    makeable = [asset for asset in request.assets if request.is_named or asset.producer_id]
    policy.require_for_assets(user, policy.Action.BACKFILL, makeable or request.assets)
    request_time = database_now()
    frozen: FrozenRequest | None = None
    with errors:
        frozen = freeze_chosen(request, request_time, errors)
    if frozen is None:
        raise InvalidRequest(errors.messages)
    tree: Tree | None = None
    with errors:
        tree = grow(include_upstream(frozen))
    assets = frozen.chosen if tree is None else tree.scopes
    with errors:
        require_order(request.order, [(asset.asset, asset.version) for asset in assets])
    if errors.messages or tree is None:
        raise InvalidRequest(errors.messages)
    scopes = tree.scopes
    outlets = [outlet for scope in scopes for outlet in scope.outlets]
    policy.require_for_assets(user, policy.Action.BACKFILL, outlets)
    first_chosen = next(
        (scope for scope in tree.chosen if has_time(scope.definition)), tree.chosen[0]
    )
    return Checked(
        scopes=scopes,
        first_chosen=first_chosen,
        refused=tree.refused,
        start_date=tree.hull.start,
        end_date=tree.hull.end,
        code_version=frozen.bundle_version or first_chosen.version.bundle_version,
        at=frozen.at,
    )


def _check_settings(request: BackfillRequest) -> None:
    errors: dict[str, str] = {}
    if not 1 <= request.max_active_runs <= MOST_ACTIVE_RUNS:
        errors["max_active_runs"] = (
            f"Between 1 and {MOST_ACTIVE_RUNS}, not {request.max_active_runs}."
        )
    if len(request.description) > LONGEST_DESCRIPTION:
        errors["description"] = (
            f"At most {LONGEST_DESCRIPTION} characters, not {len(request.description)}."
        )
    if request.existing not in ExistingPolicy.values:
        errors["existing"] = f"{request.existing!r} is none of {', '.join(ExistingPolicy.values)}."
    if request.order not in BackfillOrder.values:
        errors["order"] = f"{request.order!r} is none of {', '.join(BackfillOrder.values)}."
    if errors:
        raise InvalidRequest(errors)


def require_order(
    order: str, versions: Iterable[tuple[Asset, ProducerVersion]], *, field: str = "order"
) -> None:
    """Refuse an order in which partitions would wait for later partitions."""
    if order == BackfillOrder.OLDEST:
        return
    names = [asset.name for asset, version in versions if waits_for_past(version)]
    if names:
        raise InvalidRequest(
            {
                field: f"With depends_on_past ({', '.join(names)}) partitions are"
                " materialized oldest first: order is oldest."
            }
        )

"""The check of a request: its errors, and the assets and partitions that it names. Preview and
creation use the same check, which reads no partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from accounts_app import policy
from accounts_app.models import User
from assets_app.execution.request.requests import checked_strategy
from assets_app.models import BundleVersion
from assets_app.queries.clock import database_now
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services.drafts import chosen_drafts, refuse_params
from backfills_app.services.errors import gather
from backfills_app.services.partitions.scopes import AssetScope
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.freezing import code_version, require_order
from backfills_app.services.request.tree import grow
from partitions_app.rules import has_time
from slicewise_server.web.request_errors import InvalidRequest

MOST_ACTIVE_RUNS = 1000
LONGEST_DESCRIPTION = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A request without errors: its assets, upstream before downstream, and the time span of the
    chosen assets.

    ``asked`` is the first chosen asset with time, or the first chosen asset if none has time.
    ``refused`` are sentences on assets and partitions that the backfill leaves out; the rest can be
    requested all the same.
    """

    parts: Sequence[AssetScope]
    asked: AssetScope
    refused: Sequence[str]
    start_date: datetime
    end_date: datetime
    code_version: BundleVersion
    # Partitions that have not ended by this time are left out.
    at: datetime

    @property
    def timed(self) -> AssetScope:
        """The asset ``asked``, or another asset that has time."""
        return next(scope for scope in (self.asked, *self.parts) if has_time(scope.definition))


def checked(request: BackfillRequest, *, user: User) -> Checked:
    """Check the request, and return the assets and partitions that it names.

    Raises PermissionDenied, and InvalidRequest with all wrong fields at once.
    """
    # Assets of a group that another program writes are left out.
    makeable = [asset for asset in request.assets if request.is_named or asset.producer_id]
    policy.require_for_assets(user, policy.Action.BACKFILL, makeable or request.assets)
    request_time = database_now()
    errors: dict[str, list[str]] = {}
    frozen_from = gather(errors, lambda: code_version(request.assets, request.code_version))
    _check_settings(request, errors)
    if gather(errors, lambda: checked_strategy(request.strategy, default="partition")) is None:
        request = replace(request, strategy=None)
    drafts = gather(errors, lambda: chosen_drafts(request, frozen_from))
    if drafts is None:
        raise InvalidRequest(errors)
    gather(errors, lambda: refuse_params(request, drafts.parts))
    tree = gather(errors, lambda: grow(request, drafts, frozen_from, request_time))
    scopes = drafts.parts if tree is None else tree.parts
    versions = [(scope.asset, scope.version) for scope in scopes]
    gather(errors, lambda: require_order(request.order, versions))
    if errors or tree is None:
        raise InvalidRequest(errors)
    outlets = [outlet for scope in scopes for outlet in scope.outlets]
    policy.require_for_assets(user, policy.Action.BACKFILL, outlets)
    first_chosen = next(
        (scope for scope in tree.chosen if has_time(scope.definition)), tree.chosen[0]
    )
    return Checked(
        parts=scopes,
        asked=first_chosen,
        refused=tree.refused,
        start_date=tree.hull.start,
        end_date=tree.hull.end,
        code_version=frozen_from or first_chosen.version.bundle_version,
        at=request_time,
    )


def _check_settings(request: BackfillRequest, errors: dict[str, list[str]]) -> None:
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

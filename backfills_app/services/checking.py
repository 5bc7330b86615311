"""Checks a request: what is wrong with it, and which partitions of which assets it names. The same
for the preview and for the creation, and without a look at any partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from accounts_app import policy
from accounts_app.errors import InvalidRequest
from accounts_app.models import User
from assets_app.execution.requests import checked_strategy
from assets_app.models import BundleVersion
from assets_app.queries.clock import database_now
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services.drafts import chosen_drafts, refuse_params
from backfills_app.services.errors import gather
from backfills_app.services.freezing import code_version, require_order
from backfills_app.services.parts import Part
from backfills_app.services.requests import BackfillRequest
from backfills_app.services.tree import grow
from partitions_app.rules import has_time

MOST_ACTIVE_RUNS = 1000
LONGEST_DESCRIPTION = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A request without fault: its assets, upstream before downstream, and the hull of the time of
    the chosen ones.

    ``asked`` is the first chosen asset, one with time where there is such a one. ``refused`` are
    sentences on what it will not do, which keep nobody from asking for the rest.
    """

    parts: Sequence[Part]
    asked: Part
    refused: Sequence[str]
    start_date: datetime
    end_date: datetime
    code_version: BundleVersion
    # What is not over then, is not made.
    at: datetime

    @property
    def timed(self) -> Part:
        """The asset asked for, or another one that has time."""
        return next(part for part in (self.asked, *self.parts) if has_time(part.definition))


def checked(request: BackfillRequest, *, user: User) -> Checked:
    """Check the request, and return the assets and partitions that it names.

    Raises PermissionDenied, and InvalidRequest with all wrong fields at once.
    """
    # What something else writes is left out of a group.
    makeable = [asset for asset in request.assets if request.is_named or asset.producer_id]
    policy.require_for_assets(user, policy.Action.BACKFILL, makeable or request.assets)
    at = database_now()
    errors: dict[str, list[str]] = {}
    frozen_from = gather(errors, lambda: code_version(request.assets, request.code_version))
    _check_words(request, errors)
    if gather(errors, lambda: checked_strategy(request.strategy, default="partition")) is None:
        request = replace(request, strategy=None)
    drafts = gather(errors, lambda: chosen_drafts(request, frozen_from))
    if drafts is None:
        raise InvalidRequest(errors)
    gather(errors, lambda: refuse_params(request, drafts.parts))
    tree = gather(errors, lambda: grow(request, drafts, frozen_from, at))
    parts = drafts.parts if tree is None else tree.parts
    versions = [(part.asset, part.version) for part in parts]
    gather(errors, lambda: require_order(request.order, versions))
    if errors or tree is None:
        raise InvalidRequest(errors)
    made = [outlet for part in parts for outlet in part.outlets]
    policy.require_for_assets(user, policy.Action.BACKFILL, made)
    asked = next((part for part in tree.chosen if has_time(part.definition)), tree.chosen[0])
    return Checked(
        parts=parts,
        asked=asked,
        refused=tree.refused,
        start_date=tree.hull.start,
        end_date=tree.hull.end,
        code_version=frozen_from or asked.version.bundle_version,
        at=at,
    )


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

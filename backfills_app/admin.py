"""Admin for backfills: to look at, and to cancel through the service."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts_app.admin import ReadOnlyAdmin, ReadOnlyInline
from accounts_app.errors import InvalidRequest
from accounts_app.policy import Action, may
from assets_app.admin import acting
from backfills_app.models import Backfill, BackfillAsset
from backfills_app.services import cancel_backfill


class AssetsInline(ReadOnlyInline[BackfillAsset, Backfill]):
    """How each asset of a backfill stands."""

    model = BackfillAsset
    fields = readonly_fields = (
        "asset", "total", "waiting", "active", "succeeded", "failed", "canceled", "skipped",
    )  # fmt: skip


@admin.register(Backfill)
class BackfillAdmin(ReadOnlyAdmin[Backfill]):
    """Requests to make partitions of the past."""

    list_display = (
        "name", "asset", "logical_dates", "state", "max_active_runs", "submitted_by",
        "submitted_at", "run_end_date",
    )  # fmt: skip
    list_filter = ("state", "submitted_at", "deleted")
    search_fields = ("name", "description", "=asset__name")
    list_select_related = ("asset", "submitted_by")
    inlines = (AssetsInline,)
    actions = ("cancel",)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return may(request.user, Action.CANCEL)

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel(self, request: HttpRequest, backfills: QuerySet[Backfill]) -> None:
        for backfill in backfills:
            try:
                canceled = cancel_backfill(backfill, user=acting(request))
                messages.success(request, f"{canceled.name} is {canceled.state}.")
            except InvalidRequest as error:
                messages.error(request, str(error))

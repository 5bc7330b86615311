"""The admin of backfills: read-only pages, and actions that call the services."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts_app.admin import ReadOnlyAdmin, ReadOnlyInline, masked_column
from accounts_app.page_policy import person_of
from accounts_app.policy import Action, reach
from backfills_app.models import Backfill, BackfillAsset
from backfills_app.services import in_bulk
from slicewise.texts import masked_text
from slicewise_server.web.request_errors import InvalidRequest

_MOST_SAID = 10


def _strategy_text(strategy: str | int) -> str:
    """Return the strategy of a backfill in words of its page."""
    match strategy:
        case "partition":
            return "one run per partition"
        case "range":
            return "single run"
        case _:
            return f"up to {strategy:,} partitions per run"


class ExistingFilter(admin.ChoicesFieldListFilter):
    """The filter by the policy for partitions with data, with the name that the pages have."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "partitions to run"


class AssetsInline(ReadOnlyInline[BackfillAsset, Backfill]):
    """The counts and settings of each asset of a backfill."""

    model = BackfillAsset
    fields = readonly_fields = (
        "asset", "role", "partitions", "runs", "total", "waiting", "active", "succeeded", "failed",
        "canceled", "skipped",
    )  # fmt: skip

    @admin.display(description="partitions")
    def partitions(self, row: BackfillAsset) -> str:
        return row.selection

    @admin.display(description="run granularity")
    def runs(self, row: BackfillAsset) -> str:
        return _strategy_text(row.strategy)

    def get_queryset(self, request: HttpRequest) -> QuerySet[BackfillAsset]:
        return super().get_queryset(request).select_related("asset")


@admin.register(Backfill)
class BackfillAdmin(ReadOnlyAdmin[Backfill]):
    """The requests to materialize partitions of the past."""

    list_display = ("name", "asset", "partitions", "state", "made", "submitted_at")
    list_filter = (
        "state", "deleted", "order", ("existing", ExistingFilter), "submitted_at", "submitted_by",
    )  # fmt: skip
    search_fields = (
        "name", "description", "=asset__name", "=submitted_by__username", "logical_dates",
    )  # fmt: skip
    list_select_related = ("asset", "submitted_by", "group")
    inlines = (AssetsInline,)
    fields = readonly_fields = (
        "name", "asset", "partitions", "state", "made", "description", "submitted_by",
        "submitted_at", "partitions_to_run", "runs", "allow_holes", "order", "max_active_runs",
        "priority", "masked_params", "start_date", "end_date", "scheduled_date", "delete_date",
        "run_start_date", "run_end_date", "deleted", "masked_error", "stalled_since",
        "masked_stalled_error", "try_again_at", "chosen_by", "definition_file", "code_version",
        "code_without_passwords",
    )  # fmt: skip
    masked_params = masked_column("params")
    masked_error = masked_column("error")
    masked_stalled_error = masked_column("stalled_error")
    actions = ("pause", "resume", "cancel", "retry", "delete")
    date_hierarchy = "submitted_at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Backfill]:
        # An archive may have megabytes, and no page here shows it.
        rows = super().get_queryset(request).prefetch_related("assets")
        return rows.defer("code_version__archive")

    @admin.display(description="Origin code")
    def code_without_passwords(self, backfill: Backfill) -> str:
        return masked_text(backfill.origin_code)

    @admin.display(description="partitions", ordering="logical_dates")
    def partitions(self, backfill: Backfill) -> str:
        return backfill.logical_dates

    @admin.display(description="partitions to run")
    def partitions_to_run(self, backfill: Backfill) -> str:
        return backfill.get_existing_display()

    @admin.display(description="run granularity")
    def runs(self, backfill: Backfill) -> str:
        return _strategy_text(backfill.strategy)

    @admin.display(description="definition file")
    def definition_file(self, backfill: Backfill) -> str:
        return backfill.relative_fileloc

    @admin.display(description="materialized")
    def made(self, backfill: Backfill) -> str:
        assets = list(backfill.assets.all())
        succeeded, total = (
            sum(getattr(asset, name) for asset in assets) for name in ("succeeded", "total")
        )
        return f"{succeeded:,} of {total:,}"

    @admin.display(ordering="group__priority")
    def priority(self, backfill: Backfill) -> int:
        return backfill.group.priority

    def has_control_permission(self, request: HttpRequest) -> bool:
        """Return whether the person may control some backfills; the services check each
        backfill.
        """
        return bool(reach(request.user, Action.BACKFILL))

    @admin.action(description="Pause", permissions=["control"])
    def pause(self, request: HttpRequest, backfills: QuerySet[Backfill]) -> None:
        self._do("pause", request, backfills)

    @admin.action(description="Resume", permissions=["control"])
    def resume(self, request: HttpRequest, backfills: QuerySet[Backfill]) -> None:
        self._do("resume", request, backfills)

    @admin.action(description="Cancel", permissions=["control"])
    def cancel(self, request: HttpRequest, backfills: QuerySet[Backfill]) -> None:
        self._do("cancel", request, backfills)

    @admin.action(description="Retry failed", permissions=["control"])
    def retry(self, request: HttpRequest, backfills: QuerySet[Backfill]) -> None:
        self._do("retry", request, backfills)

    @admin.action(description="Delete (the record is kept)", permissions=["control"])
    def delete(self, request: HttpRequest, backfills: QuerySet[Backfill]) -> None:
        self._do("delete", request, backfills)

    def _do(self, action: str, request: HttpRequest, backfills: QuerySet[Backfill]) -> None:
        backfill_ids = list(backfills.order_by("pk").values_list("pk", flat=True))
        try:
            result = in_bulk(action, backfill_ids, user=person_of(request))
        except (InvalidRequest, PermissionDenied) as refusal:
            messages.error(request, str(refusal))
            return
        for backfill in Backfill.objects.filter(pk__in=result.done).order_by("pk")[:_MOST_SAID]:
            state = "deleted" if backfill.deleted else backfill.get_state_display().lower()
            messages.success(request, f"{backfill.name} is {state}.")
        if len(result.done) > _MOST_SAID:
            messages.success(request, f"… and {len(result.done) - _MOST_SAID} more.")
        for sentence in list(result.refused.values())[:_MOST_SAID]:
            messages.error(request, sentence)

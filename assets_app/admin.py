"""Admins of the catalogue, grants on assets, materializations, runs and gateways.

Services carry out all writes.
"""

from typing import ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts_app.admin import (
    AdministeredAdmin,
    ReadOnlyAdmin,
    ReadOnlyInline,
    masked_column,
)
from accounts_app.models import Grant
from accounts_app.page_policy import person_of
from accounts_app.policy import Action, may
from assets_app.execution.queue.control import cancel_run
from assets_app.models import (
    Asset,
    Bundle,
    BundleVersion,
    Gateway,
    Materialization,
    Run,
    RunAttempt,
)
from assets_app.views.pausing import set_paused_and_report
from slicewise.texts import masked_uri
from slicewise_server.web.request_errors import InvalidRequest


@admin.register(Asset)
class AssetAdmin(ReadOnlyAdmin[Asset]):
    """Assets, which definition files declare."""

    list_display = ("name", "bundle", "kind", "group", "paused", "active")
    list_filter = ("active", "paused", "bundle", "kind", "group")
    search_fields = ("name", "description", "canonical_uri")
    list_select_related = ("bundle",)
    exclude = ("uri", "canonical_uri")
    readonly_fields = ("uri_without_password", "canonical_uri_without_password")
    actions = ("pause", "unpause")

    @admin.display(description="URI")
    def uri_without_password(self, asset: Asset) -> str:
        return masked_uri(asset.uri)

    @admin.display(description="Canonical URI")
    def canonical_uri_without_password(self, asset: Asset) -> str:
        return masked_uri(asset.canonical_uri)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        return may(request.user, Action.PAUSE)

    @admin.action(description="Pause", permissions=["pause"])
    def pause(self, request: HttpRequest, assets: QuerySet[Asset]) -> None:
        self._set_paused(request, assets, True)

    @admin.action(description="Unpause", permissions=["pause"])
    def unpause(self, request: HttpRequest, assets: QuerySet[Asset]) -> None:
        self._set_paused(request, assets, False)

    def _set_paused(self, request: HttpRequest, assets: QuerySet[Asset], paused: bool) -> None:
        set_paused_and_report(request, assets.values_list("pk", flat=True), paused)


class GrantForm(forms.ModelForm[Grant]):
    """A form for grants on existing names only: a misspelt name could fit a later asset."""

    class Meta:
        model = Grant
        fields = ("permission", "person", "people", "asset", "asset_group")
        help_texts: ClassVar[dict[str, str]] = {
            "person": "One person, or a group of people.",
            "people": "All people of the group, also people added later.",
            "asset": "One asset, or an asset group.",
            "asset_group": "All assets of the group, also assets added later.",
        }

    def clean_asset(self) -> str:
        """Return the name of the asset, if an asset has that name."""
        name: str = self.cleaned_data["asset"]
        if name and not Asset.objects.declared().filter(name=name).exists():
            raise forms.ValidationError(f"There is no asset {name!r}.")
        return name

    def clean_asset_group(self) -> str:
        """Return the name of the group, if an asset is in the group."""
        name: str = self.cleaned_data["asset_group"]
        if name and not Asset.objects.declared().filter(group=name).exists():
            raise forms.ValidationError(f"No asset is in a group {name!r}.")
        return name


@admin.register(Grant)
class GrantAdmin(AdministeredAdmin[Grant]):
    """Grants on single assets or groups, beyond roles; in this app, since grants name assets."""

    form = GrantForm
    list_display = ("id", "permission", "person", "people", "asset", "asset_group")
    list_filter = ("permission", "people", "asset_group")
    search_fields = ("asset", "asset_group", "person__username", "people__name")
    list_select_related = ("person", "people")
    autocomplete_fields = ("person",)


@admin.register(Materialization)
class MaterializationAdmin(ReadOnlyAdmin[Materialization]):
    """Materializations, with the run or the report of each."""

    list_display = ("id", "asset", "key", "version", "run", "report", "rows", "bytes", "created_at")
    list_filter = ("created_at",)
    search_fields = ("=partition__key", "=partition__asset__name")
    list_select_related = ("partition__asset", "run", "report")

    @admin.display
    def asset(self, materialization: Materialization) -> str:
        return materialization.partition.asset.name

    @admin.display
    def key(self, materialization: Materialization) -> str:
        return materialization.partition.key


class AttemptsInline(ReadOnlyInline[RunAttempt, Run]):
    """The attempts of a run."""

    model = RunAttempt
    fields = readonly_fields = (
        "number", "gateway", "engine", "outcome", "masked_error", "started_at", "ended_at",
    )  # fmt: skip
    masked_error = masked_column("error")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin[Run]):
    """Ended, running and queued runs."""

    list_display = (
        "id", "asset", "selection", "state", "created_at", "ended_at", "trigger", "queue",
        "partition_count",
    )  # fmt: skip
    list_filter = ("state", "trigger", "queue", "created_at")
    search_fields = ("=id", "=asset__name")
    list_select_related = ("asset",)
    inlines = (AttemptsInline,)
    exclude = ("error", "params")
    readonly_fields = ("masked_params", "masked_error")
    masked_params = masked_column("params")
    masked_error = masked_column("error")
    actions = ("cancel",)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return may(request.user, Action.CANCEL)

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        for run in runs.select_related("asset"):
            try:
                messages.success(
                    request, f"{cancel_run(run, user=person_of(request))} is canceled."
                )
            except InvalidRequest as error:
                messages.error(request, str(error))


@admin.register(Gateway)
class GatewayAdmin(ReadOnlyAdmin[Gateway]):
    """Workers that execute runs, with the time of the last heartbeat."""

    list_display = ("name", "host", "queue", "slots", "last_seen", "draining")
    list_filter = ("queue", "draining")
    search_fields = ("name", "host")


class VersionsInline(ReadOnlyInline[BundleVersion, Bundle]):
    """The snapshots of a bundle."""

    model = BundleVersion
    fk_name = "bundle"
    fields = readonly_fields = ("digest", "created_at", "broken_files")

    def get_queryset(self, request: HttpRequest) -> QuerySet[BundleVersion]:
        # An archive may have megabytes, and this page does not show archives.
        return super().get_queryset(request).defer("archive")

    @admin.display
    def broken_files(self, version: BundleVersion) -> int:
        return len(version.import_errors)


@admin.register(Bundle)
class BundleAdmin(ReadOnlyAdmin[Bundle]):
    """Folders of definition files."""

    list_display = ("name", "path", "checked_at", "import_errors", "masked_error")
    search_fields = ("name", "path")
    readonly_fields = ("import_errors", "masked_error")
    fields = ("name", "path", "current_version", "checked_at", "import_errors", "masked_error")
    masked_error = masked_column("error")
    inlines = (VersionsInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Bundle]:
        # An archive may have megabytes, and no page here shows it.
        rows = super().get_queryset(request).select_related("current_version")
        return rows.defer("current_version__archive")

    @admin.display(description="import errors")
    def import_errors(self, bundle: Bundle) -> int | None:
        """Return the number of errors of the current version; None without a version."""
        version = bundle.current_version
        return None if version is None else len(version.import_errors)

"""URLs below ``/api/``."""

from django.urls import include, path, re_path

from accounts_app.api.base import NoSuchAddress
from accounts_app.api.tokens import TokensView
from assets_app.api import (
    assets,
    events,
    gateways,
    graph,
    orphans,
    retrying,
    runs,
    runtime_partitions,
    schedules,
    verifying,
)
from backfills_app.api import backfills
from backfills_app.api import control as backfill_control
from backfills_app.api import partitions as backfill_partitions
from slicewise_server.alerts import api as alerts
from slicewise_server.api_docs import DocsView, SchemaView
from slicewise_server.api_health import HealthView
from slicewise_server.events.api import EventsView
from slicewise_server.lineage.api import LineageView

v1 = [
    path("asset-graph/", graph.AssetGraphView.as_view(), name="asset-graph"),
    path("asset-graph/states/", graph.AssetGraphStatesView.as_view(), name="asset-graph-states"),
    path("assets/", assets.AssetsView.as_view(), name="assets"),
    path("assets/<str:name>/", assets.AssetView.as_view(), name="asset"),
    path("assets/<str:name>/partitions/", assets.PartitionsView.as_view(), name="partitions"),
    path(
        "assets/<str:name>/partitions/verify/",
        verifying.PartitionsVerifyView.as_view(),
        name="partitions-verify",
    ),
    path(
        "assets/<str:name>/partitions/orphans/",
        orphans.PartitionOrphansView.as_view(),
        name="partitions-orphans",
    ),
    path(
        "assets/<str:name>/partitions/orphans/remove/",
        orphans.PartitionOrphansRemoveView.as_view(),
        name="partitions-orphans-remove",
    ),
    path(
        "assets/<str:name>/partitions/forget/",
        verifying.PartitionsForgetView.as_view(),
        name="partitions-forget",
    ),
    path("assets/<str:name>/materialize/", assets.MaterializeView.as_view(), name="materialize"),
    path("assets/<str:name>/events/", events.AssetEventsView.as_view(), name="asset-events"),
    path(
        "assets/<str:name>/runtime-partitions/",
        runtime_partitions.RuntimePartitionsView.as_view(),
        name="runtime-partitions",
    ),
    path(
        "assets/<str:name>/runtime-partitions/remove/",
        runtime_partitions.RuntimePartitionsRemoveView.as_view(),
        name="runtime-partitions-remove",
    ),
    path("assets/<str:name>/ticks/", schedules.TicksView.as_view(), name="ticks"),
    path("assets/<str:name>/pause/", schedules.PauseView.as_view(), name="pause"),
    path("assets/<str:name>/unpause/", schedules.UnpauseView.as_view(), name="unpause"),
    path("runs/", runs.RunsView.as_view(), name="runs"),
    path("runs/<int:pk>/", runs.RunView.as_view(), name="run"),
    path("runs/<int:pk>/log/", runs.RunLogView.as_view(), name="run-log"),
    path("runs/<int:pk>/partitions/", runs.RunPartitionsView.as_view(), name="run-partitions"),
    path("runs/<int:pk>/cancel/", runs.RunCancelView.as_view(), name="run-cancel"),
    path("runs/<int:pk>/retry/", retrying.RunRetryView.as_view(), name="run-retry"),
    path("runs/<int:pk>/rerun/", retrying.RunRerunView.as_view(), name="run-rerun"),
    path("runs/retry/", retrying.RunsRetryView.as_view(), name="runs-retry"),
    path("events/", EventsView.as_view(), name="events"),
    path("channels/", alerts.ChannelsView.as_view(), name="channels"),
    path("channels/<str:name>/", alerts.ChannelView.as_view(), name="channel"),
    path("channels/<str:name>/test/", alerts.ChannelTestView.as_view(), name="channel-test"),
    path("alert-rules/", alerts.AlertRulesView.as_view(), name="alert-rules"),
    path("alert-rules/<str:name>/", alerts.AlertRuleView.as_view(), name="alert-rule"),
    path("deliveries/", alerts.DeliveriesView.as_view(), name="deliveries"),
    path(
        "deliveries/<uuid:delivery_id>/resend/",
        alerts.DeliveryResendView.as_view(),
        name="delivery-resend",
    ),
    path("lineage/", LineageView.as_view(), name="lineage"),
    # Clients of OpenLineage append this to the address of the server.
    path("lineage", LineageView.as_view(schema=None), name="lineage-of-clients"),
    path("gateways/", gateways.GatewaysView.as_view(), name="gateways"),
    path("backfills/", backfills.BackfillsView.as_view(), name="backfills"),
    path("backfills/preview/", backfills.BackfillPreviewView.as_view(), name="backfill-preview"),
    path("backfills/<int:pk>/", backfills.BackfillView.as_view(), name="backfill"),
    path(
        "backfills/<int:pk>/partitions/",
        backfill_partitions.BackfillPartitionsView.as_view(),
        name="backfill-partitions",
    ),
    path(
        "backfills/<int:pk>/outcome/",
        backfills.BackfillOutcomeView.as_view(),
        name="backfill-outcome",
    ),
    path("backfills/bulk/", backfill_control.BackfillsBulkView.as_view(), name="backfills-bulk"),
    *(
        path(f"backfills/<int:pk>/{verb}/", view.as_view(), name=f"backfill-{verb}")
        for verb, view in (
            ("cancel", backfill_control.BackfillCancelView),
            ("pause", backfill_control.BackfillPauseView),
            ("resume", backfill_control.BackfillResumeView),
            ("retry-failed", backfill_control.BackfillRetryFailedView),
            ("clone", backfill_control.BackfillCloneView),
        )
    ),
    path("health/", HealthView.as_view(), name="health"),
    path("tokens/", TokensView.as_view(), name="tokens"),
    path("schema/", SchemaView.as_view(), name="schema"),
]

app_name = "api"
urlpatterns = [
    path("v1/", include(v1)),
    path("docs/", DocsView.as_view(), name="docs"),
    re_path(r"^[\s\S]*\Z", NoSuchAddress.as_view(), name="nowhere"),
]

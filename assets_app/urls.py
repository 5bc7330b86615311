"""Addresses of the pages of assets, runs and bundles."""

from django.urls import path

from assets_app.views import (
    asset_list,
    assets,
    bundles,
    gateways,
    graph,
    grid_marks,
    impact,
    partitions,
    pausing,
    reporting,
    retrying,
    run_list,
    run_logs,
    runs,
    runtime_partitions,
)

app_name = "assets"
urlpatterns = [
    path("assets/", asset_list.assets, name="assets"),
    # No address below `assets/`, where any word may be the name of an asset.
    path("pause-assets/", pausing.pause_several, name="pause-several"),
    path("unpause-assets/", pausing.unpause_several, name="unpause-several"),
    # An asset may have the name `graph`: its page comes first, and the second address is always the
    # graph's, as no page of an asset has it.
    path("assets/graph/", graph.graph_or_asset, name="graph-or-asset"),
    path("assets/graph/all/", graph.graph, name="graph"),
    path("assets/<str:name>/", assets.asset, name="asset"),
    path("assets/<str:name>/impact/", impact.impact, name="impact"),
    path("assets/<str:name>/pause/", pausing.pause, name="pause"),
    path("assets/<str:name>/unpause/", pausing.unpause, name="unpause"),
    path("assets/<str:name>/materialize/", partitions.materialize_page, name="materialize"),
    path("assets/<str:name>/add-partition/", runtime_partitions.add, name="add-partition"),
    path("assets/<str:name>/remove-partition/", runtime_partitions.remove, name="remove-partition"),
    path("assets/<str:name>/report-write/", reporting.report_page, name="report-write"),
    path("assets/<str:name>/selected/", grid_marks.grid_marks, name="grid-marks"),
    # The single partition of an unpartitioned asset has the empty key.
    path("assets/<str:name>/partitions/", partitions.partition, name="whole"),
    path("assets/<str:name>/partitions/<path:key>/", partitions.partition, name="partition"),
    path("runs/", run_list.runs, name="runs"),
    path("runs/listed/", run_list.runs_listed, name="runs-listed"),
    path("runs/retry/", retrying.runs_retry, name="runs-retry"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/<int:pk>/status/", runs.run_status, name="run-status"),
    path("runs/<int:pk>/partitions/", runs.run_partitions, name="run-partitions"),
    path("runs/<int:pk>/more/", runs.run_more, name="run-more"),
    path("runs/<int:pk>/log/", run_logs.run_log, name="run-log"),
    path("runs/<int:pk>/log/file/", run_logs.run_log_file, name="run-log-file"),
    path("runs/<int:pk>/log/search/", run_logs.run_log_search, name="run-log-search"),
    path("runs/<int:pk>/cancel/", runs.run_cancel, name="run-cancel"),
    path("runs/<int:pk>/retry/", retrying.run_retry, name="run-retry"),
    path("runs/<int:pk>/rerun/", retrying.run_rerun, name="run-rerun"),
    path("gateways/", gateways.gateways, name="gateways"),
    path("gateways/listed/", gateways.gateways_listed, name="gateways-listed"),
    path("bundles/", bundles.bundles, name="bundles"),
]

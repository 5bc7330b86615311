"""The URL prefix of each app; the app's own module has the URLs below the prefix."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

# Below /api/ these handlers answer with problem details.
handler400 = "slicewise_server.web.error_pages.bad_request"
handler500 = "slicewise_server.web.error_pages.server_error"

urlpatterns = [
    path("api/", include("slicewise_server.api_urls")),
    path("admin/", admin.site.urls),
    path("", include("slicewise_server.home.urls")),
    path("", include("slicewise_server.alerts.urls")),
    path("", include("slicewise_server.lineage.urls")),
    path("", include("slicewise_server.metrics.urls")),
    path("", include("accounts_app.urls")),
    path("", include("backfills_app.urls")),
    path("", include("partitions_app.urls")),
    path("", include("assets_app.urls")),
]

"""Where each app's pages begin; what lies below is the app's own business."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

# Below /api/ they answer in the words that programs read.
handler400 = "accounts_app.answers.bad_request"
handler500 = "accounts_app.answers.server_error"

urlpatterns = [
    path("api/", include("config.api_urls")),
    path("admin/", admin.site.urls),
    path("", include("accounts_app.urls")),
    path("", include("backfills_app.urls")),
    path("", include("partitions_app.urls")),
    path("", include("assets_app.urls")),
]

"""The URLs that commands print; commands neither serve the pages nor import the views."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import include, path


def _nowhere(request: HttpRequest, **_: object) -> HttpResponse:
    raise Http404


app_name = "api"
addresses = [
    path("runs/", _nowhere, name="runs"),
    path("backfills/<int:pk>/", _nowhere, name="backfill"),
]
urlpatterns = [path("api/v1/", include((addresses, app_name)))]

"""The addresses of the page of lineage."""

from django.urls import path

from slicewise_server.lineage import views

app_name = "lineage"
urlpatterns = [
    path("lineage/", views.lineage, name="lineage"),
    path("lineage/listed/", views.lineage_listed, name="lineage-listed"),
    path("lineage/assets/<str:name>/", views.asset_edges, name="asset-edges"),
]

"""Pages of backfills, and the overview."""

from django.urls import path

from backfills_app.views import backfills, overview, trigger

app_name = "backfills"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("going-on/", overview.going_on, name="going-on"),
    path("backfills/", backfills.backfills, name="backfills"),
    path("backfills/new/", trigger.backfill_new, name="backfill-new"),
    path("backfills/<int:pk>/", backfills.backfill, name="backfill"),
    path("backfills/<int:pk>/progress/", backfills.backfill_progress, name="backfill-progress"),
    path("backfills/<int:pk>/cells/", backfills.backfill_cells, name="backfill-cells"),
    path("backfills/<int:pk>/cancel/", backfills.backfill_cancel, name="backfill-cancel"),
]

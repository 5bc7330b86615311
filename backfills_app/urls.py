"""The addresses of the pages of backfills."""

from django.urls import path

from backfills_app.views import actions, backfill, backfill_selection, backfills, trigger

app_name = "backfills"
urlpatterns = [
    path("backfills/", backfills.backfills, name="backfills"),
    path("backfills/listed/", backfills.backfills_listed, name="backfills-listed"),
    path("backfills/new/", trigger.backfill_new, name="backfill-new"),
    *(
        path(
            f"backfills/selected/{action}/",
            actions.backfills_act,
            {"action": action},
            name=f"backfills-{action}",
        )
        for action in actions.OPERATIONS
    ),
    path("backfills/<int:pk>/", backfill.backfill, name="backfill"),
    path("backfills/<int:pk>/progress/", backfill.backfill_progress, name="backfill-progress"),
    path("backfills/<int:pk>/details/", backfill.backfill_details, name="backfill-details"),
    path("backfills/<int:pk>/cells/", backfill.backfill_cells, name="backfill-cells"),
    path("backfills/<int:pk>/selected/", backfill_selection.backfill_marks, name="backfill-marks"),
    path("backfills/<int:pk>/record/", backfill.backfill_record, name="backfill-record"),
    path("backfills/<int:pk>/change/", actions.backfill_change, name="backfill-change"),
    *(
        path(
            f"backfills/<int:pk>/{action}/",
            actions.backfill_act,
            {"action": action},
            name=f"backfill-{action}",
        )
        for action in actions.OPERATIONS
    ),
]

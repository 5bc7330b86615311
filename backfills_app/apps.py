from django.apps import AppConfig


class BackfillsConfig(AppConfig):
    name = "backfills_app"
    verbose_name = "Backfills"

    def ready(self) -> None:
        """Have backfills hear of the end of their runs."""
        from backfills_app.services import following, retrying  # noqa: F401

from django.apps import AppConfig


class BackfillsConfig(AppConfig):
    name = "backfills_app"
    verbose_name = "Backfills"

    def ready(self) -> None:
        """Connect the receivers of signals about runs."""
        from backfills_app import receivers  # noqa: F401

from django.apps import AppConfig
from django.conf import settings


class AssetsConfig(AppConfig):
    name = "assets_app"
    verbose_name = "Assets"

    def ready(self) -> None:
        """Connect receivers of the worker's signals, which other processes never send."""
        if not settings.IS_COMMAND:
            from assets_app.execution.gateway import celery_signals  # noqa: F401

from django.apps import AppConfig


class AssetsConfig(AppConfig):
    name = "assets_app"
    verbose_name = "Assets"

    def ready(self) -> None:
        """Connect the worker's signals; in any other process nothing sends them."""
        from assets_app.execution import celery_signals  # noqa: F401

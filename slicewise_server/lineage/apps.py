from importlib import import_module

from django.apps import AppConfig


class LineageConfig(AppConfig):
    name = "slicewise_server.lineage"
    label = "lineage"
    verbose_name = "Lineage"

    def ready(self) -> None:
        """Connect the receivers that write events, and register the check of the settings."""
        import_module("slicewise_server.lineage.receivers")
        import_module("slicewise_server.lineage.checks")

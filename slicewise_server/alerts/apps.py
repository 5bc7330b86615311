from importlib import import_module

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "slicewise_server.alerts"
    label = "alerts"
    verbose_name = "Alerts"

    def ready(self) -> None:
        """Connect the receivers that keep the declared rules."""
        import_module("slicewise_server.alerts.receivers")

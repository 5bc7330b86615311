from importlib import import_module

from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "slicewise_server.events"
    label = "events"
    verbose_name = "Events"

    def ready(self) -> None:
        """Connect the receivers that write events."""
        import_module("slicewise_server.events.receivers")

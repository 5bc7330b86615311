from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "slicewise_server.alerts"
    label = "alerts"
    verbose_name = "Alerts"

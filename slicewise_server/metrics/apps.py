from django.apps import AppConfig


class MetricsConfig(AppConfig):
    name = "slicewise_server.metrics"
    label = "metrics"
    verbose_name = "Metrics"

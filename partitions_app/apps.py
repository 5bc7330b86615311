from django.apps import AppConfig


class PartitionsConfig(AppConfig):
    name = "partitions_app"
    verbose_name = "Partitions"

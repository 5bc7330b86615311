"""The metrics whose times are kept."""

from django.db.models import TextChoices


class TimedMetric(TextChoices):
    """The metrics whose times are kept, each with its labels."""

    RUN_START_DELAY = "run_start_delay", "queue"
    RUN_DURATION = "run_duration", "queue, state"
    HTTP_REQUEST = "http_request", "handler, method, code"

"""The Celery app: `python -m celery -A config worker …` finds it here.

Messages are nudges and carry ids only; the rows in PostgreSQL are the truth, so no result is kept.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("slicewise")
app.config_from_object("django.conf:settings", namespace="CELERY")


@setup_logging.connect
def keep_django_logging(**_: Any) -> None:
    """Leave logging as the settings have it; Celery would otherwise replace the root handlers."""

"""The Celery app: `python -m celery -A config worker …` finds it here.

Messages are nudges and carry ids only; the rows in PostgreSQL are the truth, so no result is kept.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, bootsteps
from celery.signals import setup_logging, worker_ready

from slicewise.process import freeze_what_is_loaded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

LOOK_SECONDS = 0.02


class LookAgain(bootsteps.StartStopStep):
    """Lets a worker that was full ask for the next message as soon as it has room.

    Without prefetch a full worker stops asking. Its event loop learns nothing of a thread that has
    finished and would sleep up to a second: one task per second and slot, however short.
    """

    requires = ("celery.worker.components:Hub",)

    def start(self, worker: Any) -> None:
        """Wake the event loop often; an idle turn costs some 20 microseconds."""
        worker.hub.call_repeatedly(LOOK_SECONDS, _nothing)


def _nothing() -> None:
    """The turn of the loop is what matters: it asks the broker when there is room."""


app = Celery("slicewise")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.steps["worker"].add(LookAgain)


@setup_logging.connect
def keep_django_logging(**_: Any) -> None:
    """Leave logging as the settings have it; Celery would otherwise replace the root handlers."""


@worker_ready.connect
def start_clean(**_: Any) -> None:
    """Keep the collector away from what a worker has loaded."""
    freeze_what_is_loaded()

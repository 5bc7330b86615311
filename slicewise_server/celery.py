"""The Celery app, for `python -m celery -A slicewise_server worker …`.

Messages are nudges with ids only; the rows in PostgreSQL are the truth, so results are not stored.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, bootsteps
from celery.signals import celeryd_init, setup_logging, worker_ready

from slicewise.process import freeze_loaded_objects
from slicewise_server.process_output import log_other_output

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
# Celery runs Django's checks at each start of a worker, and drops what the checks find: a third of
# the start, since the checks import all pages.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

LOOK_SECONDS = 0.02


class LookAgain(bootsteps.StartStopStep):
    """A boot step by which a full worker asks for the next message as soon as a slot is free.

    Without prefetch a full worker stops asking. The event loop gets no notice of a thread that has
    finished and would sleep up to a second: one task per second and slot, however short.
    """

    requires = ("celery.worker.components:Hub",)

    def start(self, worker: Any) -> None:
        """Wake the event loop often; an idle turn costs some 20 microseconds."""
        worker.hub.call_repeatedly(LOOK_SECONDS, _nothing)


def _nothing() -> None:
    """Do nothing: each turn of the event loop asks the broker when a slot is free."""


app = Celery("slicewise")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.steps["worker"].add(LookAgain)


@setup_logging.connect
def keep_django_logging(**_: Any) -> None:
    """Keep the logging of the settings; Celery would otherwise replace the root handlers."""
    log_other_output()


@celeryd_init.connect
def log_from_the_start(**_: Any) -> None:
    """Log the warnings of a worker that starts."""
    log_other_output()


@worker_ready.connect
def start_clean(**_: Any) -> None:
    """Exclude objects that a worker has loaded from garbage collection."""
    freeze_loaded_objects()

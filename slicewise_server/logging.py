"""Logs of one line per event: structlog renders events of Django, Celery and own modules alike."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from slicewise.texts import masked_json, masked_text
from slicewise_server.web.log_context import current_facts

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

_TRUE = ("true", "on", "ok", "y", "yes", "1")
_OWN = (
    "accounts_app",
    "assets_app",
    "backfills_app",
    "partitions_app",
    "slicewise",
    "slicewise_server",
)


class EventFormatter(logging.Formatter):
    """A formatter of an event and its `extra`, as JSON for machines that read the log.

    structlog is imported with the first event: most commands log no event, and the import would
    take longer than the command itself.
    """

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        return self._renderer.format(record)

    @cached_property
    def _renderer(self) -> logging.Formatter:
        import structlog

        return structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.contextvars.merge_contextvars,
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                _with_own_extra(structlog.stdlib.ExtraAdder()),
                _with_facts,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *self._last_steps(),
            ],
        )

    def _last_steps(self) -> list[Processor]:
        import structlog

        if self._as_json:
            return [
                structlog.processors.format_exc_info,
                lambda logger, name, event: masked_json(event),
                structlog.processors.JSONRenderer(),
            ]
        # A traceback that shows local variables would write passwords and tokens into the log.
        plain = structlog.dev.plain_traceback
        render = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)
        return [render, lambda logger, name, line: masked_text(str(line))]


def _with_own_extra(add_extra: Processor) -> Processor:
    """Return the processor for events of our modules: libraries pass whole requests as `extra`."""

    def add(logger: Any, name: str, event: EventDict) -> EventDict:
        is_own = event["_record"].name.partition(".")[0] in _OWN
        return add_extra(logger, name, event) if is_own else event  # type: ignore[return-value]

    return add


def _with_facts(logger: Any, name: str, event: EventDict) -> EventDict:
    """Add the facts of the work that the thread does; a line's own facts are stronger."""
    for fact, value in current_facts().items():
        event.setdefault(fact, value)
    return event


def is_json(env: Mapping[str, str]) -> bool:
    """Return whether LOG_JSON asks for lines that machines read, as the settings read it."""
    return env.get("LOG_JSON", "").lower().strip() in _TRUE


def line_formatter() -> EventFormatter:
    """Return the formatter of a process without settings: of granian, before it starts Django."""
    return EventFormatter(is_json(os.environ))


def configure(level: str, as_json: bool) -> dict[str, Any]:
    """Return Django's LOGGING; `as_json` is for machines that read the log."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": EventFormatter, "as_json": as_json}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            # A tick is sent and received every 0.2 s; only the effect of a tick is worth a line.
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.request": {"level": "WARNING"},
            "django.server": {"level": level},
        },
    }

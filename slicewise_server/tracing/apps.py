import logging
import os
from importlib import import_module
from importlib.util import find_spec

from django.apps import AppConfig

from slicewise_server.tracing.variables import wants_traces

log = logging.getLogger(__name__)


class TracingConfig(AppConfig):
    name = "slicewise_server.tracing"
    label = "tracing"
    verbose_name = "Traces"

    def ready(self) -> None:
        """Connect the receivers if the variables of OpenTelemetry ask for traces.

        Otherwise nothing is imported, and no work is done for a run.
        """
        if not wants_traces(os.environ):
            return
        if not _is_sdk_installed():
            log.warning("no traces: in the clone, pip install -e '.[otel]'")
            return
        import_module("slicewise_server.tracing.receivers").connect()


def _is_sdk_installed() -> bool:
    names = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")
    try:
        return all(find_spec(name) is not None for name in names)
    except ModuleNotFoundError:
        return False

"""The variables of OpenTelemetry by which people configure traces; Slicewise adds no settings."""

from collections.abc import Mapping

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORTER = "OTEL_TRACES_EXPORTER"


def wants_traces(variables: Mapping[str, str]) -> bool:
    """Return whether the variables name a receiver of traces, and do not switch traces off."""
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = variables.get(_EXPORTER, "").strip().lower()
    if exporter == "none":
        return False
    return exporter == "otlp" or any(variables.get(name, "").strip() for name in _ENDPOINTS)


def names_service(variables: Mapping[str, str]) -> bool:
    """Return whether the variables name the service; without a name it is `slicewise`."""
    attributes = variables.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return bool(variables.get("OTEL_SERVICE_NAME")) or any(
        pair.strip().startswith("service.name=") for pair in attributes.split(",")
    )

"""Whether events are sent, by the variables and the file that OpenLineage's client reads.

The client itself prints events to the log where nothing is configured; here nothing is sent then.
"""

import logging
import os
import re
from functools import cache
from pathlib import Path

from slicewise_server.lineage.transport_settings import PREFIX, is_disabled, settings_file

log = logging.getLogger(__name__)

# Commands read the file too, and would take longer with a parser of YAML.
_TRANSPORT_LINE = re.compile(r"^[\"']?transport[\"']?\s*:", re.MULTILINE)


@cache
def sends_events() -> bool:
    """Return whether the environment names a receiver; read once in a process."""
    if is_disabled(os.environ):
        return False
    if os.environ.get("OPENLINEAGE_URL"):
        return True
    if any(name.startswith(PREFIX) for name in os.environ):
        return True
    file = settings_file(os.environ)
    return file is not None and _names_transport(file)


def _names_transport(file: Path) -> bool:
    try:
        return _TRANSPORT_LINE.search(file.read_text()) is not None
    except (OSError, ValueError):
        log.exception("settings of OpenLineage not read", extra={"file": str(file)})
        return False

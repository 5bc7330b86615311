"""Django's check of the settings of OpenLineage, before any process starts."""

import os
from typing import Any

from django.core.checks import CheckMessage, Error, register

from slicewise_server.lineage.transport_settings import transport_problem

TAG = "lineage"


@register(TAG)
def check_transport(**_: Any) -> list[CheckMessage]:
    """Return an error for settings with which events would be printed in place of being sent."""
    problem = transport_problem(os.environ)
    hint = "Or set OPENLINEAGE_DISABLED=true. See docs/guides/lineage.md."
    return [Error(problem, hint=hint, id="lineage.E001")] if problem else []

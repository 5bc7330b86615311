"""The partitions of a write that something else did, as a file lists them for a command."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from accounts_app.api.problems import field_errors
from accounts_app.errors import InvalidRequest
from assets_app.execution.reporting import ReportedPartition
from assets_app.serializers import ReportedWriteSerializer


def listed_in(path: str) -> Sequence[ReportedPartition]:
    """Read a JSON list of objects with ``key``, ``rows`` and ``bytes``; ``-`` is standard input.

    Raises InvalidRequest where there is no such list, or what it holds is not what the API takes.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        partitions = json.loads(text)
    except OSError as error:
        raise InvalidRequest({"partitions": f"{path}: {error.strerror}."}) from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest({"partitions": f"{path} holds no JSON: {error}."}) from error
    if partitions == []:
        raise InvalidRequest({"partitions": f"{path} lists no partition."})
    told = ReportedWriteSerializer(data={"partitions": partitions})
    if not told.is_valid():
        raise InvalidRequest(field_errors(told.errors))
    return [ReportedPartition(**each) for each in told.validated_data["partitions"]]

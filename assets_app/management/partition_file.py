"""The partitions of a write by another program, as listed in a file for a command."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from assets_app.execution.request.reporting import ReportedPartition
from assets_app.serializers import ReportedWriteSerializer
from slicewise_server.web.api.problems import field_errors
from slicewise_server.web.request_errors import InvalidRequest


def read_partition_file(path: str) -> Sequence[ReportedPartition]:
    """Read a JSON list of objects with ``key``, ``rows`` and ``bytes``; ``-`` is standard input.

    Raise InvalidRequest if the file holds no such list, or objects that the API would refuse.
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
    serializer = ReportedWriteSerializer(data={"partitions": partitions})
    if not serializer.is_valid():
        raise InvalidRequest(field_errors(serializer.errors))
    return [ReportedPartition(**partition) for partition in serializer.validated_data["partitions"]]

"""Code of the source documents, loaded as people's files are: from a bundle."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

from slicewise import PartitionDefinition
from slicewise.calendar.time_text import Moment
from slicewise.declaring.active_registry import collecting
from slicewise.declaring.registry import Registry
from slicewise.loading.archives import load_bundle

# The documents leave the imports out.
HEADER = "import datetime as _datetime; from datetime import datetime; from slicewise import *\n"

Loader = Callable[[str], dict[str, Any]]
Refusal = Callable[[str], str]


class Example:
    """A bundle of one file, which holds an example."""

    def __init__(self, folder: Path, code: str) -> None:
        self.file = folder / "definitions.py"
        self.file.write_text(HEADER + dedent(code))
        self.declared = load_bundle(folder)
        (file_report,) = self.declared["files"]
        self.error: dict[str, Any] | None = file_report["error"]

    def names(self) -> dict[str, Any]:
        """Load the file, and return the names that the file defines."""
        assert self.error is None, self.error["message"]
        defined: dict[str, Any] = {"__name__": "definitions"}
        with collecting(Registry(self.file.parent)):
            exec(compile(self.file.read_text(), str(self.file), "exec"), defined)
        return defined

    def refusal(self) -> str:
        """Return the sentence with which the file is refused."""
        assert self.error is not None, "the file is taken"
        return str(self.error["message"])


def ended(definition: PartitionDefinition, after: Moment, until: Moment) -> int:
    """Return how many partitions are complete at a tick and were incomplete at the tick before.

    A time schedule makes these partitions at a tick (AIP-76, "Time-based Partitions").
    """
    first = date(2000, 1, 1)
    return definition.count(first, until) - definition.count(first, after)


def hours(start: datetime, count: int) -> list[datetime]:
    """Return a number of moments, an hour apart."""
    return [start + timedelta(hours=number) for number in range(count)]

"""Locations in definition files, for messages."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGE_FOLDER: Final = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Site:
    """A location in a definition file: path (inside the bundle while one is loaded) and line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

"""The documents, cut into the blocks, commands and spans that tests can try."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)]+)\)")

PROJECT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = (
    PROJECT / "README.md",
    PROJECT / "ARCHITECTURE.md",
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "CHANGELOG.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"# (from )?([\w./]+\.py)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block: the language, the text, and the line on which the text begins."""

    document: Path
    language: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.document.relative_to(PROJECT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that a first line `# shop/orders.py` names."""
        place = _PLACE.match(self.text)
        return place[2] if place and not place[1] else None

    @property
    def quoted_file(self) -> Path | None:
        """The file of the project that a first line `# from examples/…` says it is taken from."""
        place = _PLACE.match(self.text)
        return PROJECT / place[2] if place and place[1] else None

    @property
    def body(self) -> str:
        """The text without that first line."""
        return _PLACE.sub("", self.text, count=1)


def blocks(language: str) -> list[Block]:
    """Return all blocks of a language, document by document."""
    return [block for document in DOCUMENTS for block in _blocks(document, language)]


def _blocks(document: Path, language: str) -> Iterator[Block]:
    text = document.read_text()
    for fence in _FENCE.finditer(text):
        if fence[1] == language:
            yield Block(document, language, fence[2], text.count("\n", 0, fence.start(2)) + 1)


def commands() -> list[tuple[Block, str]]:
    """List each line of a shell block that is a command, with the block."""
    lines = [(block, line.strip()) for block in blocks("sh") for line in block.text.splitlines()]
    return [(block, line) for block, line in lines if line and not line.startswith("#")]


def spans() -> list[tuple[Path, str]]:
    """List the code in running text, with the document of each span."""
    return [
        (document, span)
        for document in DOCUMENTS
        for span in re.findall(r"`([^`\n]+)`", _FENCE.sub("", document.read_text()))
    ]

"""The units of the guides run the commands of the embedded stack and of Compose."""

from __future__ import annotations

import re
import shlex

import pytest

from slicewise_server.stack.commands import COMMANDS, PREPARE
from tests.docs.documents import PROJECT, blocks

GUIDE = PROJECT / "docs/guides/installing-apart.md"
PYTHON = "/opt/slicewise/.venv/bin/python"


def commands_of_units() -> list[list[str]]:
    """Return the words of each command, in the order of the guide."""
    units = [block.text.replace("\\\n", " ") for block in blocks("ini") if block.document == GUIDE]
    lines = re.findall(r"^ExecStart=(.*)$", "\n".join(units), re.MULTILINE)
    return [["python", *words] for python, *words in map(shlex.split, lines) if python == PYTHON]


def threads_of(queue: str) -> list[str]:
    """Return the option of the number of threads that the guide adds for a queue."""
    text = GUIDE.read_text()
    _, name, rest = text.partition(f"slicewise-worker@{queue}.service.d/threads.conf")
    words = re.search(r'^Environment="THREADS=(.*)"$', rest, re.MULTILINE)
    return shlex.split(words[1]) if name and words else []


def test_prepare_web_and_beat_have_the_commands_of_the_embedded_stack() -> None:
    assert commands_of_units()[:3] == [PREPARE, COMMANDS["web"], COMMANDS["beat"]]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("worker-")])
def test_the_template_has_the_commands_of_the_workers(name: str) -> None:
    queue = name.removeprefix("worker-")
    words: list[str] = []
    for word in commands_of_units()[3]:
        is_variable = word == "$THREADS"
        words += threads_of(queue) if is_variable else [word.replace("%i", queue)]
    assert [word.replace("%%", "%") for word in words] == COMMANDS[name]
    assert f"slicewise-worker@{queue}.service" in GUIDE.read_text()


def test_a_worker_of_the_guide_on_control_groups_has_its_command() -> None:
    text = (PROJECT / "docs/guides/operating.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    words = shlex.split(line.replace("%%", "%"))
    assert ["python", *words[1:]] == COMMANDS["worker-scheduled"]
    assert words[0] == PYTHON

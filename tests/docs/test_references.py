"""Commands, targets, addresses, settings and files that the documents name exist."""

import io
import json
import pkgutil
import re
import shlex
from contextlib import redirect_stderr
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.urls import resolve
from rest_framework.serializers import Serializer

from assets_app.serializers import MaterializeSerializer, ReportedWriteSerializer
from backfills_app.serializers import BackfillRequestSerializer
from slicewise_server import api_urls
from slicewise_server.stack import cli, up
from tests.docs.documents import DOCUMENTS, LINK, PROJECT, Block, commands, spans

TARGETS = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
BODIES: dict[str, type[Serializer[object]]] = {
    "asset": MaterializeSerializer,
    "materialize": MaterializeSerializer,
    "asset-events": ReportedWriteSerializer,
    "backfills": BackfillRequestSerializer,
    "backfill-preview": BackfillRequestSerializer,
}


def words_of(line: str, program: str) -> list[str] | None:
    """Return the words after the program where the line calls the program, else None."""
    words = shlex.split(line)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    return words[1:] if words and words[0] == program else None


def calls(program: str) -> list[tuple[str, list[str]]]:
    """List the calls of a program in the shell blocks, each with its place."""
    word_lists = ((block, words_of(line, program)) for block, line in commands())
    return [(str(block), words) for block, words in word_lists if words is not None]


def parses(words: list[str]) -> bool:
    """Return whether the parser of `slicewise` takes these words as a command."""
    name, *rest = words
    if name in cli.OWN:
        if name == "up":
            with redirect_stderr(io.StringIO()):
                up._parser().parse_args([w for w in rest if "=" not in w and w != "--bundle"])
        return name != "definitions" or rest[0] == "check"
    app = get_commands()[name]
    command = app if isinstance(app, BaseCommand) else load_command_class(app, name)
    command.create_parser("slicewise", name).parse_args(rest)
    return True


@pytest.mark.parametrize(("place", "words"), calls("slicewise"))
def test_a_command_of_the_documents_is_taken(place: str, words: list[str]) -> None:
    assert parses(words), place


@pytest.mark.parametrize(("place", "words"), calls("make"))
def test_a_target_of_the_documents_is_there(place: str, words: list[str]) -> None:
    assert {word for word in words if "=" not in word} <= TARGETS, place


def test_commands_named_in_the_text_are_there() -> None:
    for document, span in spans():
        name, _, rest = span.partition(" ")
        if name == "make" and rest:
            assert rest.split()[0] in TARGETS, (document, span)
        if name == "slicewise" and rest:
            first = rest.split()[0]
            assert first in cli.OWN or first in get_commands(), (document, span)


def test_every_command_has_a_line_in_its_reference() -> None:
    text = (PROJECT / "docs/reference/command-line.md").read_text()
    own_commands = {name for name, app in get_commands().items() if str(app).endswith("s_app")}
    for name in {*cli.OWN, *(own_commands - {"changepassword"})}:
        assert f"`slicewise {name} " in text, name


@pytest.mark.parametrize("target", sorted(TARGETS - {"chromium", "jdbc", "prometheus"}))
def test_every_target_has_a_line_in_the_reference(target: str) -> None:
    assert f"`make {target}`" in (PROJECT / "docs/reference/command-line.md").read_text()


def requests() -> list[tuple[str, list[str]]]:
    """List the calls of curl in the shell blocks, also inside of `$(…)`."""
    return [
        (str(block), shlex.split(call))
        for block, line in commands()
        for call in re.findall(r"curl (.*?)(?: \| |$)", line)
    ]


@pytest.mark.parametrize(("place", "words"), requests())
def test_a_request_of_the_documents_is_one_that_the_api_reads(place: str, words: list[str]) -> None:
    address = next(word for word in words if word.startswith("$ADDRESS"))
    match = resolve(urlsplit(address.removeprefix("$ADDRESS")).path)
    assert match.url_name != "nowhere", place
    if "-d" in words and match.url_name in BODIES:
        serializer = BODIES[match.url_name](data=json.loads(words[words.index("-d") + 1]))
        assert serializer.is_valid(), (place, serializer.errors)


def test_every_address_of_the_api_has_a_line() -> None:
    text = (PROJECT / "docs/reference/api.md").read_text()
    for pattern in api_urls.v1:
        shown = str(pattern.pattern).replace("<str:name>", "<name>").replace("<int:pk>", "<id>")
        assert f"| `{shown}` |" in text, shown


def test_every_setting_has_a_line_and_every_line_a_setting() -> None:
    text = (PROJECT / "docs/reference/settings.md").read_text()
    own_settings, _, _ = text.partition("## Read by others")
    source = (PROJECT / "slicewise_server/settings.py").read_text()
    call = r"(?:env\.\w+\(|(?:above_zero|at_least_one|memory)\(\s*env,)"
    read = set(re.findall(call + r'\s*"([A-Z_]+)"', source))
    lines = [line.split("|")[1] for line in own_settings.splitlines() if line.startswith("| `")]
    assert read == {name for cell in lines for name in re.findall("`([A-Z_]+)`", cell)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(PROJECT)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text()):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            slugs = [
                re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings
            ]
            assert anchor in slugs, link


def test_files_named_in_the_text_are_there() -> None:
    pattern = re.compile(
        r"(?:slicewise_server|slicewise|\w+_app|docs|bin|static|tests|examples)/[\w./-]+"
    )
    for document, span in spans():
        if pattern.fullmatch(span):
            assert (PROJECT / span).exists(), (document, span)


def test_modules_named_in_documents_on_the_code_are_there() -> None:
    packages = (
        "slicewise", "slicewise_server", "assets_app", "backfills_app", "accounts_app",
        "partitions_app",
    )  # fmt: skip
    for document, span in spans():
        is_internal = document.name == "ARCHITECTURE.md" or document.parent.name == "internals"
        is_name = re.fullmatch(r"\w+(\.\w+)+", span) and span.split(".")[0] in packages
        if is_internal and is_name:
            pkgutil.resolve_name(span)  # raises for a name that is not there


def test_blocks_know_where_they_stand() -> None:
    block: Block = commands()[0][0]
    lines = block.document.read_text().splitlines()
    assert lines[block.line - 1] == block.text.splitlines()[0]

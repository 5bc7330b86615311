"""Assets that samples of commands and requests name are declared by a document or an example."""

import re

import pytest

from tests.docs.documents import PROJECT, Block, blocks, commands

_DECLARED = re.compile(
    r"^@asset\b(?:.|\n)*?^def (\w+)|\bAsset\(\s*[\"']([^\"']+)|name=[\"']([^\"']+)", re.MULTILINE
)
_SET = re.compile(r"PartitionAtRuntime\((?:name=)?[\"']([^\"']+)")
_NAMED = re.compile(
    r"slicewise (?:assets (?!list)[a-z-]+|partitions(?: list| verify| forget| orphans)?"
    r"|backfill (?:create|preview)) (?P<command>[a-z]\w*)|/assets/(?P<request>\w+)/"
)


def declared_assets() -> set[str]:
    """Return the names of assets in all samples and examples, without the assets of sets that runs
    find.
    """
    files = [path.read_text() for path in (PROJECT / "examples").rglob("*.py")]
    texts = [*files, *(block.text for block in blocks("python"))]
    names = {name for text in texts for match in _DECLARED.findall(text) for name in match}
    return names - {name for text in texts for name in _SET.findall(text)} - {""}


NAMED = [
    (block, match["command"] or match["request"])
    for block, line in commands()
    for match in _NAMED.finditer(line)
]


def test_samples_name_assets_in_commands_and_in_requests() -> None:
    assert len(NAMED) > 20


@pytest.mark.parametrize(("block", "name"), NAMED, ids=str)
def test_a_sample_names_an_asset_that_is_declared(block: Block, name: str) -> None:
    assert name in declared_assets(), block

"""Every Python sample of the documents is run: definition files are loaded as people's bundles."""

import sys
from pathlib import Path
from typing import Any

import pytest

from slicewise.bundles import load_bundle
from slicewise.loading import importable
from tests.docs.documents import DOCUMENTS, PROJECT, Block, blocks

SAMPLES = blocks("python")
RUN_BY_HAND = [b for b in SAMPLES if b.file is None and b.quoted_file is None]
WITH_SPARK = [b for b in SAMPLES if b.file is not None and "/" not in b.file]
BUNDLES = sorted(
    {(b.document, b.file.split("/")[0]) for b in SAMPLES if b.file is not None and "/" in b.file}
)


def bundle(folder: Path, document: Path, name: str) -> Path:
    """The bundle of that name as the document has people write it."""
    for block in SAMPLES:
        if block.document == document and block.file and block.file.startswith(f"{name}/"):
            file = folder / block.file
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.body)
    return folder / name


def test_there_are_samples_of_every_kind() -> None:
    assert RUN_BY_HAND
    assert WITH_SPARK
    assert len(BUNDLES) >= 3


@pytest.mark.parametrize(
    ("document", "name"), BUNDLES, ids=[f"{d.relative_to(PROJECT)}:{n}" for d, n in BUNDLES]
)
def test_a_bundle_of_the_documents_loads(document: Path, name: str, tmp_path: Path) -> None:
    declared = load_bundle(bundle(tmp_path, document, name))
    assert [file["error"] for file in declared["files"] if file["error"]] == []
    assert declared["producers"]


@pytest.mark.parametrize("block", RUN_BY_HAND, ids=str)
def test_a_sample_runs(block: Block) -> None:
    exec(compile(block.text, str(block), "exec"), {"__name__": "sample"})


@pytest.mark.parametrize("block", WITH_SPARK, ids=str)
def test_a_sample_runs_beside_its_bundle(
    block: Block, tmp_path: Path, spark_remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", spark_remote)
    for document, name in BUNDLES:
        if document == block.document:
            run_beside(bundle(tmp_path, document, name), block)


def run_beside(folder: Path, block: Block) -> None:
    """Run a sample that imports from the bundle, and forget the bundle's modules afterwards."""
    before = set(sys.modules)
    names: dict[str, Any] = {"__name__": "sample"}
    try:
        with importable(folder):
            exec(compile(block.text, str(block), "exec"), names)
    finally:
        if "spark" in names:
            names["spark"].stop()
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


@pytest.mark.parametrize("block", [b for b in SAMPLES if b.quoted_file], ids=str)
def test_what_is_quoted_from_the_example_stands_there(block: Block) -> None:
    assert block.quoted_file is not None
    assert block.body in block.quoted_file.read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(PROJECT)))
def test_no_block_of_python_is_left_out(document: Path) -> None:
    opened = document.read_text().count("```python\n")
    assert opened == sum(block.document == document for block in SAMPLES)

"""Every Python sample of the documents is run: definition files are loaded as people's bundles."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from slicewise.loading.archives import load_bundle
from slicewise.testing import materialize
from tests.docs.documents import DOCUMENTS, PROJECT, Block, blocks
from tests.docs.modules import modules_of

GUIDE = PROJECT / "docs/guides/first-asset.md"
SAMPLES = blocks("python")
RUN_BY_HAND = [b for b in SAMPLES if b.file is None and b.quoted_file is None]
WITH_SPARK = [b for b in SAMPLES if b.file is not None and "/" not in b.file]
BUNDLES = sorted(
    {(b.document, b.file.split("/")[0]) for b in SAMPLES if b.file is not None and "/" in b.file}
)


def bundle(folder: Path, document: Path, name: str) -> Path:
    """Write the bundle of a name, as the document has people write the bundle."""
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
            with modules_of(bundle(tmp_path, document, name)):
                names: dict[str, Any] = {"__name__": "sample"}
                exec(compile(block.text, str(block), "exec"), names)
                names["spark"].stop()


def test_the_assets_of_the_guide_make_what_it_says(tmp_path: Path, spark_remote: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(spark_remote).getOrCreate()
    with modules_of(bundle(tmp_path, GUIDE, "shop")):
        asset = {
            name: getattr(import_module(module), name)
            for module, name in (
                ("orders", "orders"),
                ("revenue", "revenue"),
                ("revenue", "revenue_by_month"),
                ("visits", "visits"),
            )
        }
        day, key = "2024-01-01", "date=2024-01-01 shop=mitte"
        orders = materialize(asset["orders"], partition=day, spark=spark)
        revenue = materialize(asset["revenue"], partition=day, upstream={"orders": orders})
        upstream = {"revenue": revenue}
        month = materialize(asset["revenue_by_month"], partition=day, upstream=upstream)
        visits = materialize(asset["visits"], partition=key, spark=spark)
        assert orders.count() == 24
        assert [row.asDict() for row in revenue.collect()] == [{"partition": day, "amount": 46}]
        assert [row.asDict() for row in month.collect()] == [{"amount": 46}]
        assert [row.asDict() for row in visits.collect()] == [{"name": "mitte", "visitors": 17}]
    spark.stop()


@pytest.mark.parametrize("block", [b for b in SAMPLES if b.quoted_file], ids=str)
def test_quoted_samples_stand_in_the_quoted_file(block: Block) -> None:
    assert block.quoted_file is not None
    assert block.body in block.quoted_file.read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(PROJECT)))
def test_no_block_of_python_is_left_out(document: Path) -> None:
    opened = document.read_text().count("```python\n")
    assert opened == sum(block.document == document for block in SAMPLES)

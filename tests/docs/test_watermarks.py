"""The worked example of the guide on watermarks, run on an append-only table."""

from importlib import import_module
from pathlib import Path
from typing import Any

from slicewise.testing import materialize
from tests.docs.documents import PROJECT, blocks
from tests.docs.modules import modules_of

GUIDE = PROJECT / "docs/guides/watermarks.md"


def append(spark: Any, last: int) -> None:
    """Append rows to the table, up to this id."""
    spark.range(1, last + 1).createOrReplaceTempView("payment_log")


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def test_each_row_is_in_one_partition_and_an_old_key_has_the_same_rows_again(
    tmp_path: Path, spark_remote: str
) -> None:
    from pyspark.sql import SparkSession

    (block,) = [b for b in blocks("python") if b.document == GUIDE]
    assert block.file == "tail/payments.py"
    bundle = tmp_path / "tail"
    bundle.mkdir()
    (bundle / "payments.py").write_text(block.body)
    spark = SparkSession.builder.remote(spark_remote).getOrCreate()
    kept: dict[int, list[int]] = {}
    newest_first: list[int] = []
    with modules_of(bundle):
        payments = import_module("payments").payments

        def run(partition: object = None) -> list[int]:
            made = materialize(payments, partition=partition, past=newest_first, spark=spark) or {}
            for key, frame in made.items():
                kept[key] = ids(frame)
                newest_first[:] = [key, *(other for other in newest_first if other != key)]
            return list(made)

        append(spark, 120)
        assert run() == [120]
        append(spark, 300)
        assert run() == [300]
        before = dict(kept)
        assert run() == []  # nothing new
        append(spark, 450)
        assert run([120]) == [120]  # an old key is run again
        assert newest_first == [120, 300]
        assert run([300]) == [300]
        assert kept == before
        assert run([120]) == [120]
        assert run() == [450]
    assert kept == {120: [*range(1, 121)], 300: [*range(121, 301)], 450: [*range(301, 451)]}
    spark.stop()

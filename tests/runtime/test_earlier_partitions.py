"""A run reads partitions of its own asset from the asset's storage."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from slicewise import PartitionByInterval, spark
from slicewise.io import Writer
from slicewise.running.written_handles import OwnAssetHandle

DAYS = PartitionByInterval("@daily", start="2024-01-01")


@pytest.fixture
def session(spark_remote: str) -> Iterator[Any]:
    opened = spark.open_session(spark_remote, str(uuid4()))
    yield opened
    spark.close_session(opened)


def test_several_earlier_partitions_are_one_frame(session: Any, tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / f"partition=2024-01-0{number}"
        session.range(number).write.parquet(str(folder))
    handle = OwnAssetHandle(
        "balances",
        uri=f"file://{tmp_path}",
        definition=DAYS,
        keys=[DAYS.parse("2024-01-03")],
        session=lambda: session,
        writer=Writer(run_id=1, attempt="1"),
        present=lambda keys: keys,
    )
    frame = handle.read(partition=["2024-01-01", "2024-01-02"])
    assert sorted(row.partition for row in frame.collect()) == [
        "2024-01-01", "2024-01-02", "2024-01-02",
    ]  # fmt: skip

"""Assets with data in a folder, in a bucket and in a table, and readers that use no code of
Slicewise.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pyarrow
from pyarrow import parquet

from tests.faults.bucket import BucketServer
from tests.faults.stack_processes import Crew
from tests.runtime.bucket_server import serving

_HEADER = """
from datetime import date

from slicewise import PartitionByInterval, asset, partition_column

DAILY = PartitionByInterval("@daily", start=date(2024, 1, 1), end=date(2024, 3, 1))


def rows(self, spark, context):
    rows = [(key.start, context["params"]["said"]) for key in self.partitions]
    frame = spark.createDataFrame(rows, "at timestamp, said string")
    return frame.withColumn("partition", partition_column("at", self))
"""
_ASSET = """

@asset(
    name={name!r}, uri={uri!r}, write_mode={mode!r}, partition=DAILY, strategy="range",
    format={form!r}, params={{"said": ""}},
)
def {name}(self, spark, context):
    return rows(self, spark, context)
"""
# Hadoop's overlay of file systems: for Spark the bucket is the folder that the server serves.
_OVERLAY = {
    "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
    "fs.s3a.impl.disable.cache": "true",
    "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "mapreduce.outputcommitter.factory.scheme.s3a": (
        "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory"
    ),
}
_SCHEMA = "kept"


class Kept:
    """The assets of one storage."""

    kind: str
    modes: tuple[str, ...] = ("replace", "append", "version")

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.folder = crew.stack.data / "lake" / f"kept_{self.kind}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def uri(self, name: str) -> str:
        """Return the URI of an asset's data."""
        raise NotImplementedError

    def texts(self, name: str, day: str) -> list[str]:
        """Return the texts in the rows of a partition, in order."""
        raise NotImplementedError

    def connections(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the logins of workers for the places of these assets."""
        return {}

    def declare(self, modes: dict[str, str]) -> None:
        """Declare assets by name, each with its write mode."""
        connections = self._crew.stack.data / "connections.json"
        connections.write_text(json.dumps(self.connections(modes)))
        text = _HEADER
        for name, mode in modes.items():
            form = None if self.kind == "postgres" else "parquet"
            text += _ASSET.format(name=name, uri=self.uri(name), mode=mode, form=form)
        bundle = self._crew.stack.data / "faults"
        (bundle / f"kept_{self.kind}.py").write_text(text)
        self._crew.stack.manage("sync", "faults")


class InFolders(Kept):
    """Folders that workers and Spark share."""

    kind = "file"

    def uri(self, name: str) -> str:
        # Each in a folder of its own: the lock on that is not waited for by the others.
        return f"file://{self.folder}/{name}/data"

    def texts(self, name: str, day: str) -> list[str]:
        place = self.folder / name / "data" / f"partition={day}"
        return _texts(parquet.read_table(place, columns=["said"]))


class InBucket(Kept):
    """A bucket; the log of each partition names the files that count, as the guide describes."""

    kind = "s3"

    def __init__(self, crew: Crew, server: BucketServer) -> None:
        super().__init__(crew)
        self._server, self._bucket = server, server.root / "kept"
        self._bucket.mkdir(exist_ok=True)

    def connections(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        hadoop = dict(_OVERLAY)
        for name in names:
            (self._bucket / name).mkdir()
            hadoop[f"fs.viewfs.mounttable.kept.link./{name}"] = f"file://{self._bucket}/{name}"
        return {"s3://kept": {"arrow": self._server.arrow("kept"), "hadoop": hadoop}}

    def uri(self, name: str) -> str:
        return f"s3://kept/{name}"

    def texts(self, name: str, day: str) -> list[str]:
        home = self._bucket / name / "_slicewise"
        latest = max((home / "log" / f"partition={day}").glob("*.json"))
        attempts = json.loads(latest.read_text())["data"]
        places = [home / "data" / f"_slicewise_attempt={attempt}" for attempt in attempts]
        tables = [parquet.read_table(place / f"partition={day}") for place in places]
        return sorted(text for table in tables for text in _texts(table))


class InTables(Kept):
    """Tables in a schema for the tests alone."""

    kind = "postgres"
    modes = ("replace", "append")

    def __init__(self, crew: Crew) -> None:
        super().__init__(crew)
        crew.rows(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE")
        crew.rows(f"CREATE SCHEMA {_SCHEMA}")
        self._login = urlsplit(crew.stack.environment()["DATABASE_URL"])

    def connections(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        login = {"user": self._login.username, "password": self._login.password}
        return {self.uri(""): login}

    def uri(self, name: str) -> str:
        server = f"{self._login.hostname}:{self._login.port}{self._login.path}"
        return f"postgres://{server}/{_SCHEMA}/{name}".rstrip("/")

    def texts(self, name: str, day: str) -> list[str]:
        statement = f'SELECT said FROM {_SCHEMA}."{name}" WHERE "partition" = %s ORDER BY 1'
        return [text for (text,) in self._crew.rows(statement, day)]


def _texts(table: pyarrow.Table) -> list[str]:
    return sorted(str(text) for text in table.column("said").to_pylist())


@contextmanager
def kept_assets(crew: Crew, kind: str) -> Iterator[Kept]:
    """Yield the assets of a storage (`file`, `s3` or `postgres`), which exists within the block."""
    if kind == "s3":
        with serving(BucketServer(crew.stack.data / "lake" / "kept_s3")) as server:
            yield InBucket(crew, server)
    else:
        yield InFolders(crew) if kind == "file" else InTables(crew)

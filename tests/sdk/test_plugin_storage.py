"""A storage of an installed package: found by its scheme, as safe as a built-in storage."""

import json
from pathlib import Path

import pytest

from tests.sdk.installed_plugins import PACKAGE, install, pretend_installed, run

SCRIPT = """
import json
from slicewise import PartitionBySequence, spark
from slicewise.io import StorageLocation, Writer, storage_at
from slicewise.storage import StagingLostError

shop = storage_at(StorageLocation(uri="pos://mitte/till-3", connection={"folder": FOLDER}))
days = PartitionBySequence(["mon", "tue"])
mon, tue = days.values.keys
session = spark.open_session(REMOTE, SESSION)
def frame(*amounts):
    return session.createDataFrame([(one, str(one)) for one in amounts], "amount int, text string")
def write(run, key, *amounts):
    writer = Writer(run_id=run, attempt="1-a")
    staged = shop.stage(frame(*amounts), days, [key], writer, single_partition=False)
    seen = sorted(row.amount for row in shop.read_staged(session, days, staged, writer).collect())
    return writer, [one.to_json() for one in staged], seen
def read(*keys):
    return sorted(row.amount for row in shop.read(session, days, keys).collect())

first, staged, seen = write(1, mon, 1, 2)
told = {"staged": staged, "seen": seen}
shop.publish("", staged, first)
other, others, _ = write(2, tue, 7)
shop.publish("", others, other)
told["both"] = read(mon, tue)
again, pieces, _ = write(3, mon, 5)
told["until it is published"] = read(mon)
for _ in range(2):
    shop.publish("", pieces, again)
told["then"] = read(mon)
told["in place"] = [shop.published(["mon"], one) for one in (first, again)]
try:
    shop.publish("", staged, first)
except StagingLostError as error:
    told["late"] = str(error)
unwanted, pieces, _ = write(4, mon, 9)
shop.discard(unwanted)
try:
    shop.publish("", pieces, unwanted)
except StagingLostError as error:
    told["discarded"] = str(error)
told["at last"] = read(mon)
spark.close_session(session)
print(json.dumps(told))
"""


def test_a_package_keeps_data_at_uris_of_its_own(tmp_path: Path, spark_remote: str) -> None:
    retail = install(PACKAGE, tmp_path / "packages")
    values = {
        "FOLDER": str(tmp_path),
        "REMOTE": spark_remote,
        "SESSION": "6b0f1a9c-4f4c-4b3c-9d8e-0a1b2c3d4e5f",
    }
    report = run("".join(f"{name} = {text!r}\n" for name, text in values.items()) + SCRIPT, retail)
    lost = "nothing of till-3 mon waits to be published"
    assert report == {
        "staged": [{"key": "mon", "path": "mon", "rows": 2, "bytes": 52}],
        "seen": [1, 2],
        "both": [1, 2, 7],
        "until it is published": [1, 2],
        "then": [5],
        "in place": [[], ["mon"]],
        "late": lost,
        "discarded": lost,
        "at last": [5],
    }


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("twice", "is declared by several packages, so that no package is used"),
        ("broken", "it is no subclass of Storage"),
    ],
)
def test_an_asset_whose_storage_cannot_be_used_is_refused_with_the_reason(
    tmp_path: Path, name: str, sentence: str
) -> None:
    entries = "[slicewise.io]\ntwice = parts:Kept\nbroken = parts:NAME\nfile = parts:Kept\n"
    module = (
        "from slicewise.io import Storage\nNAME = 'x'\n"
        "class Kept(Storage, kind='twice'):\n    pass\n"
    )
    first_package = pretend_installed(tmp_path / "one", "first-parts", entries, parts=module)
    second = pretend_installed(
        tmp_path / "two", "rival-parts", "[slicewise.io]\ntwice = parts:Kept\n"
    )
    script = (
        "import json, warnings\nwarnings.simplefilter('ignore')\n"
        "from slicewise import asset\nfrom slicewise.io import find_storage\n"
        "from slicewise.plugins import DuplicatePluginError, PluginError\n"
        "told = {'file': find_storage('file://localhost/x').__module__}\n"
        "try:\n"
        f"    find_storage('{name}://a/b')\n"
        "except PluginError as error:\n"
        "    told['kind'] = type(error).__name__\n"
        "try:\n"
        f"    @asset(uri='{name}://a/b')\n"
        "    def made(): ...\n"
        "except ValueError as error:\n"
        "    told['said'] = str(error)\n"
        "print(json.dumps(told))"
    )
    report = run(script, first_package, second)
    assert report["file"] == "slicewise.io.file", "a package took what is built in"
    assert report["kind"] == ("DuplicatePluginError" if name == "twice" else "PluginError")
    assert sentence in report["said"], json.dumps(report)

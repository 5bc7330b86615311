"""Plug-ins of installed packages, and the limits of definition files."""

import json
from pathlib import Path

import pytest

from slicewise import (
    DefinitionError,
    Offset,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionByTime,
    PartitionDefinition,
    PartitionMapping,
    plugins,
)
from slicewise.loading.archives import load_bundle
from tests.sdk.installed_plugins import PACKAGE, install, pretend_installed, run

SPEC = {"kind": "retail", "unit": "period", "pattern": "4-5-4", "timezone": "Europe/Berlin"}
BUNDLE = """
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence, asset
from slicewise_retail import Lookback, PartitionByRetailCalendar

DAILY = PartitionByInterval("@daily", timezone="Europe/Berlin")
PERIODS = PartitionByRetailCalendar("period", timezone="Europe/Berlin", start="2024-01-01")
SHOPS = PartitionBySequence(["mitte", "wedding"])


@asset(
    uri="POS://berlin-mitte/till-3/",
    partition=PartitionByProduct({"day": DAILY, "shop": SHOPS}),
)
def receipts(spark, context): ...


@asset(
    partition=PartitionByProduct({"period": PERIODS, "shop": SHOPS}),
    schedule=receipts,
    upstream={"receipts": Lookback(windows=7)},
)
def last_week(receipts): ...
"""


@pytest.fixture(scope="module")
def retail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(PACKAGE, tmp_path_factory.mktemp("installed") / "packages")


def test_definitions_and_mappings_of_a_package_are_read_where_nothing_imported_it(
    retail: Path,
) -> None:
    script = f"""
import json, sys
from slicewise import *
before = "slicewise_retail" in sys.modules
periods = PartitionDefinition.from_json({SPEC!r})
lookback = PartitionMapping.from_json({{"kind": "lookback", "windows": 3}})
days = PartitionByInterval("@daily", timezone="Europe/Berlin")
again = PartitionDefinition.from_json(json.loads(json.dumps(periods.to_json())))
needed = upstream_partitions(periods, days, periods.parse("2024-02-04"), lookback)
back = downstream_partitions(days, periods, days.parse("2024-03-02"), lookback)
print(json.dumps({{
    "before": before,
    "same": (again, again.identity) == (periods, periods.identity) and hash(again) == hash(periods),
    "year": periods.select("2024").text,
    "period": str(periods.parse("2024-02-04").end),
    "needed": needed.text,
    "back": back.text,
    "mapping": lookback.to_json(),
    "uri": normalize_uri("POS://berlin-mitte/till-3/"),
}}))
"""
    assert run(script, retail) == {
        "before": False,
        "same": True,
        "year": "2024-02-04..2024-12-01",
        "period": "2024-03-02 23:00:00+00:00",
        "needed": "2024-02-29..2024-03-02",
        "back": "2024-02-04",
        "mapping": {"kind": "lookback", "windows": 3},
        "uri": "pos://berlin-mitte/till-3",
    }


def test_a_bundle_uses_a_package_and_its_report_is_read_by_a_server(
    retail: Path, tmp_path: Path
) -> None:
    (tmp_path / "sales.py").write_text(BUNDLE)
    script = f"""
import json
from slicewise.loading.archives import load_bundle
print(json.dumps(load_bundle({str(tmp_path)!r})))
"""
    report = run(script, retail)
    assert [file["error"] for file in report["files"]] == [None]
    script = f"""
import json
from slicewise import *
last_week, receipts = sorted({report["producers"]!r}, key=lambda each: each["name"])
specs = [each["outlets"][0]["partition"] for each in (last_week, receipts)]
periods, days = map(PartitionDefinition.from_json, specs)
mapping = PartitionMapping.from_json(last_week["mappings"]["receipts"])
chosen = periods.select("period=2024-02 shop=mitte")
print(json.dumps([upstream_partitions(periods, days, chosen, mapping).text, repr(periods)]))
"""
    text, shown = run(script, retail)
    assert text == "day=2024-02-25..2024-03-02 shop=mitte"
    assert "PartitionByRetailCalendar(unit='period'" in shown


def test_a_server_without_the_package_says_which_kind_and_group_it_lacks(tmp_path: Path) -> None:
    script = f"""
import json
from slicewise import *
said = []
for read, spec in [
    (PartitionDefinition.from_json, {SPEC!r}),
    (PartitionMapping.from_json, {{"kind": "lookback", "windows": 3}}),
]:
    try:
        read(spec)
    except DefinitionError as error:
        said.append(str(error))
print(json.dumps(said))
"""
    partition, mapping = run(script)
    assert partition == (
        "unknown kind of partition definition: 'retail'; no package that is installed here has an"
        " entry point of that name in the group 'slicewise.partitions'"
    )
    assert "unknown kind of partition mapping: 'lookback'" in mapping
    assert "'slicewise.mappings'" in mapping


BROKEN = """
[slicewise.partitions]
broken = broken_module:Nothing
interval = spare_parts:Spare
number = spare_parts:NUMBER
other = spare_parts:Spare
spare = spare_parts:Spare
twice = spare_parts:Spare
"""
SPARE = """
from slicewise import PartitionByTime
NUMBER = 7
class Spare(PartitionByTime, kind="spare"):
    def boundaries(self, year):
        from datetime import date
        return [date(year, 1, 1), date(year, 7, 1)]
"""


def test_a_broken_plug_in_is_named_and_stops_no_other(tmp_path: Path) -> None:
    folder = pretend_installed(
        tmp_path, "spare-parts", BROKEN, spare_parts=SPARE, broken_module="raise OSError('no disk')"
    )
    pretend_installed(tmp_path, "rival", "[slicewise.partitions]\ntwice = spare_parts:Spare\n")
    script = """
import json, warnings
from slicewise import *
from slicewise import plugins
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    found = sorted(plugins.load("slicewise.partitions"))
said = {}
for kind in ("broken", "number", "other", "twice", "spare", "interval"):
    try:
        spec = {"kind": kind, "cadence": "@daily"} if kind == "interval" else {"kind": kind}
        said[kind] = repr(PartitionDefinition.from_json(spec))
    except DefinitionError as error:
        said[kind] = str(error)
print(json.dumps({"found": found, "said": said, "warned": [str(w.message) for w in warned]}))
"""
    report = run(script, folder)
    assert report["found"] == ["spare"]
    assert report["said"]["spare"] == "Spare()"
    assert report["said"]["interval"] == "PartitionByInterval('@daily')"
    assert "OSError: no disk" in report["said"]["broken"]
    assert "broken = broken_module:Nothing of spare-parts" in report["said"]["broken"]
    assert "no subclass of PartitionDefinition" in report["said"]["number"]
    assert 'must be declared with kind="other"' in report["said"]["other"]
    assert "several packages" in report["said"]["twice"]
    warned = "\n".join(report["warned"])
    assert "Slicewise's own, so the plug-in is left out: interval" in warned
    assert "several packages" in warned
    assert "of rival" in warned
    assert "broken = broken_module:Nothing of spare-parts (slicewise.partitions)" in warned


def test_a_bundle_cannot_pass_for_an_installed_package(tmp_path: Path) -> None:
    pretend_installed(
        tmp_path,
        "smuggled",
        "[slicewise.partitions]\nspare = spare_parts:Spare\n",
        spare_parts=SPARE,
    )
    script = f"""
import json, sys
from slicewise import *
sys.path.insert(0, {str(tmp_path)!r})
try:
    PartitionDefinition.from_json({{"kind": "spare"}})
except DefinitionError as error:
    print(json.dumps(str(error)))
"""
    assert "unknown kind" in run(script)


def test_a_module_of_a_bundle_does_not_stand_in_for_that_of_a_package(tmp_path: Path) -> None:
    entries = "[slicewise.partitions]\nspare = spare_parts:Spare\n"
    installed = pretend_installed(tmp_path / "site", "spare-parts", entries, spare_parts=SPARE)
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "spare_parts.py").write_text(SPARE)
    script = f"""
import json, sys
from slicewise import *
sys.path.insert(0, {str(bundle)!r})
try:
    PartitionDefinition.from_json({{"kind": "spare"}})
except DefinitionError as error:
    print(json.dumps(str(error)))
"""
    assert "has the name of the package's own module spare_parts" in run(script, installed)


def test_a_class_of_a_definition_file_is_told_from_those_of_packages() -> None:
    class Halves(PartitionByTime, kind="halves"):
        pass

    class MyOffset(Offset):
        pass

    product = PartitionByProduct([Halves(), PartitionBySequence(["a"])])
    for thing in (Halves(), product):
        with pytest.raises(ValueError, match=r"entry-points.\"slicewise.partitions\"") as refused:
            plugins.check_installed(thing)
        assert 'halves = "tests.sdk.test_plugins:' in str(refused.value)
    with pytest.raises(ValueError, match=r"entry-points.\"slicewise.mappings\""):
        plugins.check_installed(MyOffset(-1))
    assert not plugins.is_installed(Halves)
    assert plugins.is_installed(PartitionByInterval)
    plugins.check_installed(PartitionByProduct([PartitionByInterval("@daily")]))
    plugins.check_installed(Offset(-1))
    plugins.check_installed(None)
    with pytest.raises(DefinitionError, match="unknown kind"):
        PartitionDefinition.from_json(json.loads(json.dumps(Halves().to_json())))


@pytest.mark.parametrize(
    ("option", "group"),
    [
        ("partition=Mine()", "slicewise.partitions"),
        ("partition=PartitionByProduct([Mine()])", "slicewise.partitions"),
        ("upstream={'raw': MyOffset(-1)}", "slicewise.mappings"),
    ],
)
def test_the_loader_refuses_a_class_of_a_definition_file_where_an_asset_uses_it(
    option: str, group: str, tmp_path: Path
) -> None:
    (tmp_path / "sales.py").write_text(
        "from slicewise import *\n"
        "class Mine(PartitionByTime, kind='mine'):\n    def boundaries(self, year): return []\n"
        "class MyOffset(Offset): pass\n"
        "@asset()\ndef raw(): ...\n"
        f"@asset({option})\ndef sales(raw): ...\n"
    )
    (file,) = load_bundle(tmp_path)["files"]
    assert f'[project.entry-points."{group}"]' in file["error"]["message"]
    assert (file["error"]["asset"], file["error"]["line"]) == ("sales", 7)


def test_a_plug_in_takes_neither_a_name_of_slicewise_nor_one_that_cannot_be_stored() -> None:
    with pytest.raises(TypeError, match="take another name"):
        type("Mine", (PartitionByTime,), {}, kind="interval")
    with pytest.raises(TypeError, match="take another name"):
        type("Mine", (PartitionMapping,), {}, kind="offset")
    with pytest.raises(TypeError, match="at most 20 lower-case letters"):
        type("Mine", (PartitionByTime,), {}, kind="windows of the moon")

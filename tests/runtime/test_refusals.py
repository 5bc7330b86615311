"""Invalid declarations: each refusal names file, line and asset, and the valid spelling."""

import textwrap
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from slicewise import Asset, DefinitionError, PartitionByInterval, asset
from slicewise.declaring.options import RunOptions
from slicewise.loading.archives import load_bundle

HEADER = "from datetime import *; from functools import partial; from slicewise import *\n"
RAW = 'raw = Asset("raw", columns=["sales"])\n'
LONG = "x" * 251
DAILY = 'partition=PartitionByInterval("@daily")'


def errors(folder: Path, **files: str) -> list[dict[str, Any]]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(HEADER + textwrap.dedent(text))
    bundle_errors: list[dict[str, Any]] = load_bundle(folder)["errors"]
    return bundle_errors


def declared(arguments: str, function: str = "def flights(): ...") -> str:
    return f"@asset({arguments})\n{function}\n"


ARGUMENTS = [
    # names
    ('name=" "', " ", "a text that is not blank"),
    ('name=""', "", "a text that is not blank"),
    (f'name="{LONG}"', LONG, "at most 250 characters"),
    ('name="a\\nb"', "a\nb", "no control characters"),
    ('name=" a"', " a", "no space at either end"),
    ('name="a/b"', "a/b", "no / in it"),
    ('name="self"', "self", "give the asset another name"),
    ('name="context"', "context", "give the asset another name"),
    ('name="spark"', "spark", "give the asset another name"),
    # partitions
    ('partition="@daily"', "flights", "write partition=PartitionByInterval('@daily')"),
    ("partition=3", "flights", 'a partition definition, "auto" or none, not int'),
    ("partition=PartitionByInterval", "flights", "write PartitionByInterval(...)"),
    # schedules and times
    ('schedule="@fortnightly"', "flights", "use one of @hourly, @daily"),
    ('schedule="61 * * * *"', "flights", "bad cron expression '61 * * * *'"),
    ('schedule="* * * * * *"', "flights", "five fields"),
    ('schedule="R * * * *"', "flights", "R and H cannot be used"),
    ('schedule="0 H * * *"', "flights", "R and H cannot be used"),
    ('schedule="0 0 30 2 *"', "flights", "never ticks"),
    ('schedule="raw"', "flights", "write schedule=Asset.ref('raw')"),
    ("schedule=timedelta(0)", "flights", "positive number of whole seconds"),
    ("schedule=timedelta(seconds=1.5)", "flights", "positive number of whole seconds"),
    ("schedule=5", "flights", "assets joined by | and &, not int"),
    ('timezone="Europe/Atlantis"', "flights", "unknown time zone 'Europe/Atlantis'"),
    ("timezone=UTC", "flights", "a name such as 'Europe/Berlin'"),
    ("start_date=5", "flights", "a datetime or a date, not 5"),
    (
        "start_date=datetime(2024, 1, 2, tzinfo=UTC), end_date=datetime(2024, 1, 3)",
        "flights",
        "give a time zone to both, or to neither",
    ),
    ("start_date=date(2024, 1, 2), end_date=date(2024, 1, 1)", "flights", "before the start"),
    (
        "start_date=datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=-5))),"
        "end_date=datetime(2024, 1, 1, 13, tzinfo=UTC)",
        "flights",
        "before the start",
    ),
    (
        "schedule=timedelta(hours=1), start_date=datetime(2024, 1, 1, 0, 0, 0, 5)",
        "flights",
        "whole seconds",
    ),
    # what stands in a list of values
    ('pending="some"', "flights", 'pending is "all" or "latest", not \'some\''),
    ('write_mode="merge"', "flights", 'write_mode is "replace" or "append" or "version"'),
    ('engine="local"', "flights", 'engine is "connect" or "submit"'),
    ('on_partial="keep"', "flights", 'on_partial is "discard" or "publish"'),
    ('strategy="all"', "flights", '"partition", "range" or a number from 1'),
    ("strategy=0", "flights", '"partition", "range" or a number from 1'),
    ("strategy=10**6 + 1", "flights", "strategy is at most 1,000,000 partitions in a run"),
    ("strategy=True", "flights", '"partition", "range" or a number from 1'),
    ("retries=-1", "flights", "retries is a whole number from 0"),
    ("priority=10**30", "flights", "priority is a whole number from -1,000 to 1,000"),
    ("priority=-1_001", "flights", "priority is a whole number from -1,000 to 1,000"),
    (f'group="{"g" * 201}"', "flights", "group has at most 200 characters"),
    (f'kind="{"k" * 101}"', "flights", "kind has at most 100 characters"),
    ('group="a\\nb"', "flights", "group has no control characters"),
    ('kind="\\ud800"', "flights", "kind has no control characters"),
    # what would do nothing beside the others
    ("depends_on_past=True", "flights", "depends_on_past needs partitions by time"),
    (
        'depends_on_past=True, partition=PartitionBySequence(["a"])',
        "flights",
        "depends_on_past needs partitions by time",
    ),
    (
        f'depends_on_past=True, pending="latest", schedule="@daily", {DAILY}',
        "flights",
        'depends_on_past cannot be combined with pending="latest"',
    ),
    (f"schedule=raw, refresh=3, {DAILY}", "flights", "refresh acts at the ticks of a schedule"),
    (f"refresh=3, {DAILY}", "flights", "this asset has no schedule; leave refresh out"),
    ('schedule="@daily", refresh=3', "flights", "refresh needs partitions by time"),
    (
        'schedule="@daily", refresh=3, partition=PartitionBySequence(["a"])',
        "flights",
        "refresh needs partitions by time",
    ),
    (
        'schedule="@daily", refresh=3, partition=PartitionAtRuntime("a")',
        "flights",
        "refresh needs partitions by time",
    ),
    (f'schedule=raw, pending="latest", {DAILY}', "flights", 'pending="latest" acts at the ticks'),
    (f'pending="latest", {DAILY}', "flights", "this asset has no schedule"),
    ('schedule="@daily", pending="latest"', "flights", 'pending="latest" needs partitions by time'),
    (
        'schedule=raw | Asset.ref("b"), start_date="2010-01-01"',
        "flights",
        "this schedule is by assets; bound the partitions instead: PartitionByInterval(..., start=",
    ),
    ('schedule=raw, end_date="2010-01-01"', "flights", "PartitionByInterval(..., end=...)"),
    ('start_date="2010-01-01"', "flights", "start_date bounds the ticks of a schedule by time"),
    (
        "outlet_validations=[AssetValidation.has_columns('a')]",
        "flights",
        "outlet_validations read the data of a run, and the asset has no uri",
    ),
    (
        "uri='trino://db/x/y/z', outlet_validations=[AssetValidation.has_columns('a')]",
        "flights",
        "no installed storage reads or writes trino: URIs",
    ),
    ("retries=101", "flights", "retries is at most 100, not 101"),
    ("refresh=-1", "flights", "refresh is a whole number from 0"),
    ("max_active_runs=0", "flights", "max_active_runs is a whole number from 1"),
    ("max_active_runs=10**10", "flights", "max_active_runs is at most 1,000,000"),
    ("priority=1.5", "flights", "priority is a whole number"),
    ('timeout="soon"', "flights", "timeout is a timedelta or a number of seconds"),
    ("memory=2", "flights", 'memory: an amount of memory is a text such as "512m" or "2g", not 2'),
    ("memory='much'", "flights", "memory: an amount of memory is a text such as"),
    ("timeout=0", "flights", "timeout is more than 0 seconds, not 0: every run would fail"),
    ("timeout=timedelta()", "flights", "timeout is more than 0 seconds, not datetime.timedelta(0)"),
    ("timeout=-1", "flights", "timeout is a timedelta or a number of seconds, not -1"),
    ("retry_delay=None", "flights", "retry_delay is a timedelta or a number of seconds"),
    ("retry_delay=10**30", "flights", "retry_delay is at most an hour, not 1000000"),
    ("retry_delay=10**400", "flights", "retry_delay is at most an hour"),
    ("retry_delay=1e300", "flights", "retry_delay is at most an hour, not 1e+300"),
    ("depends_on_past=1", "flights", "depends_on_past is True or False"),
    ('paused="no"', "flights", "paused is True or False"),
    ('params={"when": datetime}', "flights", "params takes values that JSON can represent"),
    ("params={1: 2}", "flights", "names of params are texts"),
    ("params=[1]", "flights", "params maps names to values"),
    ('owners="me"', "flights", "owners is a list of texts"),
    ("tags=[1]", "flights", "tags is a list of texts"),
    ("tags=5", "flights", "tags is a list of texts"),
    ("group=5", "flights", "group is a text"),
    ("description=5", "flights", "description is a text"),
    ("kind=5", "flights", "kind is a text"),
    ("spark_conf={'a': 1}", "flights", "spark_conf maps texts to texts"),
    ("spark_conf=['a']", "flights", "spark_conf maps texts to texts"),
    ("on_success='mail'", "flights", "on_success is a function"),
    ("on_failure=int", "flights", "on_failure is a function"),
    ("on_success=print", "flights", "on_success=print has the parameter '*args'; a function"),
    (
        "on_failure=lambda spark: 1",
        "flights",
        "has the parameter 'spark'; a function that is called after",
    ),
    ("on_failure=lambda self, /: 1", "flights", "gets self and context only, by name"),
    ("on_success=lambda **facts: 1", "flights", "has the parameter '**facts'"),
    ("on_success=lambda: (yield)", "flights", "yields, and hooks are not iterated"),
    ("on_success=min", "flights", "the parameters of on_success=min cannot be read"),
    ("setup=5", "flights", "setup is a function, not 5"),
    ("teardown=int", "flights", "teardown is a function, not <class 'int'>"),
    ("setup=raw", "flights", "setup is a function, not Asset('raw')"),
    (
        "setup=lambda: 1",
        "flights",
        "setup=<lambda> is no function with a name; write a function with def",
    ),
    ("setup=partial(int, 5)", "flights", "is no function with a name; write a function with def"),
    ("teardown=lambda: (yield)", "flights", "teardown=<lambda> yields; write two functions"),
    ("teardown=lambda raw: 1", "flights", "a teardown gets self, context and spark, by name; the"),
    ("teardown=lambda *args: 1", "flights", "name each of self, context and spark"),
    ("teardown=lambda self, /: 1", "flights", "parameters that are not given by name"),
    ("teardown=min", "flights", "the parameters of teardown=min cannot be read"),
    # facts of the catalogue
    ("uri=5", "flights", "uri is a text or a path"),
    ("uri=__import__('pathlib').Path('lake')", "flights", "write an absolute one"),
    ('uri="airflow://x"', "flights", "reserved"),
    ('columns="sales"', "flights", "columns is a list of names, or maps names to types"),
    ("columns=5", "flights", "columns is a list of names, or maps names to types"),
    ('columns=["a", "a"]', "flights", "'a' is named twice"),
    ('columns=["a", " "]', "flights", "the name of a column is a text"),
    ("columns={'a': 5}", "flights", "the type of 'a' is a text"),
    # arguments
    ('shedule="@daily"', "flights", "did you mean 'schedule'?"),
    ("wholly_unknown=1", "flights", "use one of alerts, columns, depends_on_past"),
    ('at="file:///lake/x"', "flights", "write uri=..."),
    ("start=date(2024, 1, 1)", "flights", "write start_date=..."),
    ("default_args={}", "flights", "keep shared arguments in a dict"),
    ('name="Flights", dag_id="x"', "Flights", "write name=..."),
    ("5", "flights", "write @asset(...), with keyword arguments only"),
    # upstream assets
    ("upstream={raw: Offset(-1)}", "flights", "no upstream asset of the function"),
    ("upstream=[raw]", "flights", "upstream maps assets to mappings"),
    ("schedule=raw, upstream={raw: -1}", "flights", "such as Offset(-1), All() or Keys([...])"),
    ("schedule=raw, upstream={raw: All}", "flights", "the class All; write All(...)"),
    ("schedule=raw, upstream={5: All()}", "flights", "takes assets or names of assets, not 5"),
    ('schedule=raw, upstream={"rwa": All()}', "flights", "did you mean 'raw'?"),
    ('schedule=raw, upstream={raw: All(), "raw": All()}', "flights", "names 'raw' twice"),
    # validations
    ("outlet_validations=[1]", "flights", "such as AssetValidation.has_columns(...), not 1"),
    ("outlet_validations='sales'", "flights", "a list of validations, not 'sales'"),
    ("outlet_validations=[AssetValidation]", "flights", "write AssetValidation(...)"),
    (
        "outlet_validations=AssetValidation.not_null(raw.sales)",
        "flights",
        "names a column of 'raw'",
    ),
    ("schedule=raw, inlet_validations={raw: 1}", "flights", "inlet_validations of 'raw' is a list"),
    (
        'schedule=raw, inlet_validations={"rwa": AssetValidation.row_count(min=1)}',
        "flights",
        "did you mean 'raw'?",
    ),
    (
        'schedule=raw | Asset("other"),'
        'inlet_validations={"other": AssetValidation.not_null(raw.sales)}',
        "flights",
        "names a column of 'raw'",
    ),
    (
        "inlet_validations=AssetValidation.not_null(raw.sales)",
        "flights",
        "no upstream asset of the function or its schedule; the asset has no upstream assets",
    ),
    (
        "inlet_validations=AssetValidation.row_count(min=1)",
        "flights",
        "write inlet_validations={asset: [...]}",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "name", "message"), ARGUMENTS, ids=[a[0][:60] for a in ARGUMENTS]
)
def test_an_argument_that_cannot_be_is_refused(
    arguments: str, name: str, message: str, tmp_path: Path
) -> None:
    (error,) = errors(tmp_path, a=RAW + declared(arguments))
    assert message in error["message"]
    assert (error["path"], error["line"], error["asset"]) == ("a.py", 3, name)


FUNCTIONS = [
    ("def flights(*raws): ...", "has *raws; name each upstream asset"),
    ("def flights(**raws): ...", "has **raws; name each upstream asset"),
    ("def flights(raw, /): ...", "'raw' is positional-only"),
    ("def flights(flights): ...", "write self"),
    ("async def flights(): ...", "write plain def"),
    ("def flights(): yield 1", "return one DataFrame, or call self.write"),
    ("async def flights(): yield 1", "return one DataFrame, or call self.write"),
    ("class flights: ...", "decorate a function written with def"),
]


@pytest.mark.parametrize(("function", "message"), FUNCTIONS)
def test_a_function_that_no_run_could_call_is_refused(
    function: str, message: str, tmp_path: Path
) -> None:
    (error,) = errors(tmp_path, a=RAW + declared("", function))
    assert message in error["message"]
    assert (error["path"], error["asset"]) == ("a.py", "flights")
    # The line of a class is not known to Python 3.11; the decorator is called below it.
    assert error["line"] in ((3, 4) if function.startswith("class") else (3,))


STATEMENTS = [
    ("asset()(lambda: None)", "<lambda>", "write a function with def"),
    ("asset()(partial(print))", None, "an object of type partial is decorated"),
    ("asset()(5)", None, "an object of type int is decorated"),
    ("@asset.multi\ndef flights(): ...", "flights", "write @asset.multi(...)"),
    ("@asset()\n@asset()\ndef flights(): ...", "flights", "is decorated twice"),
    ("@asset()\ndef flights(): ...\nflights()", "flights", "is an asset and cannot be called"),
    (
        "@asset.multi(outlets=[Asset('a')])\ndef flights(): ...\nflights()",
        "flights",
        "is an asset and cannot be called",
    ),
    ("@asset()\ndef flights(): ...\nAsset('flights')", "flights", "here and at a.py:2"),
    ("@asset()\ndef flights(rwa): ...\nAsset('raw')", "flights", "did you mean 'raw'?"),
    (
        "@asset()\ndef flights(raw): ...",
        "flights",
        "'raw' names no asset; no other asset is declared",
    ),
    ("Asset('raw', column=['sales'])", "raw", "write columns=[...]"),
    ("Asset('raw', type='dataset')", "raw", "write kind=..."),
    ("Asset('raw', schedule='@daily')", "raw", "Asset has no argument 'schedule'"),
    ("Asset('raw', 'file:///x')", "raw", "all but the name as keyword arguments"),
    ("Asset(uri='file:///x')", None, 'write Asset("name", ...)'),
    ("Asset('raw', partition='auto')", "raw", "an Asset has none"),
    ("Asset('raw', partition='@daily')", "raw", "write partition=PartitionByInterval('@daily')"),
    ("Asset('self')", "self", "give the asset another name"),
    ("Asset.ref(' ')", None, "a text that is not blank"),
    ("Asset.ref('context')", None, "give the asset another name"),
]


@pytest.mark.parametrize(("statement", "name", "message"), STATEMENTS)
def test_a_statement_that_cannot_be_is_refused(
    statement: str, name: str | None, message: str, tmp_path: Path
) -> None:
    (error,) = errors(tmp_path, a=statement)
    assert message in error["message"]
    assert error["asset"] == name
    assert error["line"] in range(2, 5)


OUTLETS = [
    ("outlets=[]", "an empty list of outlets; write outlets=[Asset("),
    ("", 'has no outlets; write outlets=[Asset("..."), Asset("...")]'),
    ("outlets=raw", "outlets is a list of Asset objects"),
    ("outlets=['x']", "write Asset('x', uri=...)"),
    ("outlets=[Asset.ref('x')]", "write Asset('x', uri=...)"),
    ("outlets=[raw, raw]", "'raw' is named twice"),
    (
        "outlets=[Asset('x', uri='file:///lake/x'), Asset('y', uri='file:///lake/x/')]",
        "'x' and 'y' have the same uri",
    ),
    ("outlets=[Asset('split')]", "declared twice"),
    ("outlets=[made]", "belongs to 'made' already (a.py:3)"),
    ("outlets=[raw], uri='file:///x'", 'write outlets=[Asset("...", uri=...), ...]'),
    ("outlets=[raw], columns=['a']", 'write outlets=[Asset("...", columns=...), ...]'),
    ("outlets=[raw], kind='table'", 'write outlets=[Asset("...", kind=...), ...]'),
    ("outlets=[raw], name='x'", 'write outlets=[Asset("..."), ...]'),
    ("outlets=[raw], outlet_validations=[]", 'Asset("...", outlet_validations=...)'),
    ("outlets=[raw], shedule='@daily'", "@asset.multi has no argument 'shedule'; did you mean"),
    ("outlets=[raw], dag_id='x'", "write name=..."),
    (
        "outlets=[Asset('x', partition=PartitionByInterval('@daily'))]",
        "write partition= in @asset.multi only",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), OUTLETS)
def test_outlets_that_cannot_be_are_refused(arguments: str, message: str, tmp_path: Path) -> None:
    producer = "@asset()\ndef made(): ...\n"
    split = f"@asset.multi({arguments})\ndef split(): ...\n"
    (error,) = errors(tmp_path, a=RAW.strip() + "\n" + producer + split)
    assert message in error["message"]
    assert (error["path"], error["line"], error["asset"]) == ("a.py", 5, "split")


def test_a_multi_asset_reads_none_of_its_outlets(tmp_path: Path) -> None:
    text = "@asset.multi(outlets=[Asset('x'), Asset('y')])\ndef split(x): ...\n"
    (error,) = errors(tmp_path, a=text)
    assert "write self" in error["message"]


def test_a_multi_asset_is_named_by_its_outlets_in_schedules_and_parameters(tmp_path: Path) -> None:
    split = "@asset.multi(outlets=[Asset('x'), Asset('y')])\ndef split(): ...\n"
    (error,) = errors(tmp_path, a=split + declared("schedule=split"))
    assert "write one of its outlets, such as Asset('x')" in error["message"]
    (error,) = errors(tmp_path, a=split + declared("", "def flights(split): ..."))
    assert "names a function with several outlets; name one of x, y" in error["message"]


def test_a_schedule_joins_assets_only(tmp_path: Path) -> None:
    for schedule in ("raw | 'other'", "'other' & raw"):
        (error,) = errors(tmp_path, a=RAW + declared(f"schedule={schedule}"))
        assert "a schedule joins assets, not the text 'other'" in error["message"]
        assert "write Asset.ref('other')" in error["message"]


def test_a_name_used_twice_over_files_is_told_with_both_places(tmp_path: Path) -> None:
    first = declared("", "def same(): ...")
    several = "@asset.multi(outlets=[Asset('x')])\ndef same(): ...\n"
    (error,) = errors(tmp_path, a=first, b=several)
    assert (error["path"], error["line"], error["asset"]) == ("b.py", 2, "same")
    assert "declared twice, here and at a.py:2; every asset needs a name" in error["message"]


def test_a_class_that_servers_do_not_have_is_refused(tmp_path: Path) -> None:
    mapping = """
        from slicewise.mapping.partition_mapping import PartitionMapping

        class Mine(PartitionMapping, kind="mine"):
            def upstream(self, downstream, upstream, chosen, bounds): ...
            def downstream(self, upstream, downstream, chosen, bounds): ...

        raw = Asset("raw")

        @asset(schedule=raw, upstream={raw: Mine()})
        def flights(): ...
    """
    (error,) = errors(tmp_path, a=mapping)
    assert "slicewise.mappings" in error["message"]
    assert (error["asset"], error["line"]) == ("flights", 11)
    sequence = """
        class Mine(PartitionBySequence, kind="mine"): ...

        @asset(partition=Mine(["x"]))
        def flights(): ...
    """
    (error,) = errors(tmp_path, a=sequence)
    assert "slicewise.partitions" in error["message"]
    assert (error["asset"], error["line"]) == ("flights", 5)


def test_each_circle_of_schedules_is_told_once(tmp_path: Path) -> None:
    circle = (
        "@asset(schedule=Asset.ref('{1}'))\ndef {0}(): ...\n"
        "@asset(schedule=Asset.ref('{0}') & Asset.ref('elsewhere'))\ndef {1}(): ...\n"
    )
    errors_found = errors(
        tmp_path,
        a=circle.format("a", "b"),
        b=circle.format("c", "d"),
        c=declared("schedule=Asset.ref('flights')"),
    )
    assert [(error["path"], error["line"], error["asset"]) for error in errors_found] == [
        ("a.py", 2, "a"),
        ("b.py", 2, "c"),
        ("c.py", 2, "flights"),
    ]
    assert "the schedule is a circle of assets: a -> b -> a" in errors_found[0]["message"]


def test_everything_that_is_broken_is_told_not_only_the_first(tmp_path: Path) -> None:
    two = declared("", "def one(x): ...") + declared("", "def two(y, z): ...")
    errors_found = errors(tmp_path, a=two, b=declared("", "def three(x): ..."))
    assert [(error["path"], error["asset"]) for error in errors_found] == [
        ("a.py", "one"),
        ("a.py", "two"),
        ("b.py", "three"),
    ]
    assert "the parameters 'y' and 'z' name no assets" in errors_found[1]["message"]


def test_outside_of_a_bundle_the_error_itself_names_file_line_and_asset() -> None:
    with pytest.raises(DefinitionError) as caught:

        @asset(retries=-1)
        def flights() -> None: ...

    place, _, rest = str(caught.value).partition(": ")
    assert place.rpartition(":")[0] == __file__
    assert rest.startswith("asset 'flights': retries is a whole number from 0, not -1")


STEPS = [
    ("@flights.setup\nasync def open_it(): ...", 5, "setup=open_it is async"),
    (
        "@flights.setup\ndef open_it(): yield",
        5,
        "setup=open_it yields; write two functions, a setup",
    ),
    (
        "@flights.setup\ndef open_it(trips): ...",
        5,
        "has the parameter 'trips'; a setup gets self, context and spark, by name; upstream assets",
    ),
    ("@flights.setup\ndef spark(): ...", 5, "setup=spark has the name of a reserved parameter"),
    ("@flights.setup\ndef trips(): ...", 5, "inlets names the parameter 'trips', by which flights"),
    ("@flights.setup()\ndef open_it(): ...", 5, "write @flights.setup without parentheses"),
    (
        "@flights.setup\ndef first(): ...\n@flights.setup\ndef second(): ...",
        7,
        "has a setup already, first; call both functions in one setup",
    ),
    (
        "@flights.teardown\ndef close(cluster): ...\n@flights.setup\ndef cluster(): ...",
        5,
        "the result of a setup has the name of the setup, which is declared before the teardown",
    ),
    ("@raw.setup\ndef open_it(): ...", 5, "another program writes the asset 'raw'"),
    ("@flights.setup\ndef busy(): ...", 3, "'busy' is the name of the setup and of an asset"),
]


@pytest.mark.parametrize(("text", "line", "message"), STEPS)
def test_a_set_up_or_tear_down_that_no_run_could_call_is_refused_at_its_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    inlet = 'inlets={"trips": raw}' if "def trips" in text else ""
    parameters = "trips" if inlet else "busy" if "busy" in text else ""
    (error,) = errors(
        tmp_path,
        a=RAW + declared(inlet, f"def flights({parameters}): ...") + text,
        b=declared("", "def busy(): ..."),
    )
    assert message in error["message"]
    assert (error["path"], error["line"]) == ("a.py", line)


ODD: list[Any] = [
    *(None, 5, -1, 1.5, True, "", "x", b"x", float("nan"), object(), [], {}, (), [1], {"a": 1}),
    *(set(), int, print, datetime(2024, 1, 1), date(2024, 1, 1), timedelta(1), range(3)),
    *(Asset("odd"), PartitionByInterval("@daily")),
]


@pytest.mark.parametrize("option", RunOptions.__dataclass_fields__)
def test_whatever_stands_in_an_option_is_taken_or_refused_with_a_sentence(option: str) -> None:
    for value in ODD:
        text = f"asset 'flights': {option}"
        try:
            assert asset(**{option: value})(flights).to_json(), text
        except DefinitionError as error:
            text = str(error)
        assert "asset 'flights': " in text


def flights() -> None: ...


@pytest.mark.parametrize("time", ["'@daily'", "'0 6 * * *'", "timedelta(hours=1)"])
def test_a_time_joined_with_an_asset_is_told_as_a_time(tmp_path: Path, time: str) -> None:
    (tmp_path / "a.py").write_text(
        "from datetime import timedelta\nfrom slicewise import Asset, asset\n"
        f"@asset(schedule={time} | Asset.ref('up'))\ndef daily(): ...\n"
    )
    (error,) = load_bundle(tmp_path)["errors"]
    assert "a schedule joins assets, not the time" in error["message"]
    assert "Asset.ref" not in error["message"].partition("not the time")[2]

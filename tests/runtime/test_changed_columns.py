"""An asset whose columns have changed: each partition is read by the columns at its writing."""

import pyarrow
import pytest
from pyarrow import orc, parquet

from slicewise.io.columns import merge_types
from tests.runtime.runs import Runs

FORMATS = ("parquet", "csv", "json", "orc")
# The code was edited from day to day.
DAYS = {
    "mon": "select 'a' as left, 'b' as right, 1 as n",
    "tue": "select 'b' as right, 'a' as left, 2 as n",
    "wed": "select 'a' as left, 'b' as right, 3 as n, 'late' as extra",
    "thu": "select 'a' as left, 'b' as right, 4L as n",
}
ASSETS = """
    DAYS = PartitionBySequence(["mon", "tue", "wed", "thu"], name="day")

    @asset.multi(outlets=[Asset(f"as_{one}", uri=f"{LAKE}/as.{one}") for one in {formats}],
                 partition=DAYS, params={"sql": ""})
    def tables(spark, context):
        frame = spark.sql(context["params"]["sql"])
        return {f"as_{one}": frame for one in {formats}}

    @asset()
    def reads(as_parquet, as_csv, as_json, as_orc):
        for handle in (as_parquet, as_csv, as_json, as_orc):
            frame = handle.read()
            frame = frame.select("day", "left", "right", "n", *{more}).orderBy("n")
            print("rows:", *map(tuple, frame.collect()), dict(frame.dtypes)["n"])
            frame.explain()
            print("rows:", frame.count(), handle.read().count())
""".replace("{formats}", str(FORMATS))


@pytest.mark.parametrize(
    ("days", "scans"),
    [
        # What is known by name is one scan, however many there are; CSV is known by place.
        (["mon", "tue", "wed"], {"parquet": 1, "csv": 3, "json": 1, "orc": 1}),
        (["mon", "thu"], dict.fromkeys(FORMATS, 2)),
    ],
)
def test_each_partition_is_read_by_its_own_columns(
    spark_runs: Runs, days: list[str], scans: dict[str, int]
) -> None:
    is_late = "wed" in days
    spark_runs.define(ASSETS.replace("{more}", str(["extra"] if is_late else [])))
    for day in days:
        spark_runs.make("tables", [day], params={"sql": DAYS[day]})
    upstream = {f"as_{file_format}": days for file_format in FORMATS}
    log = spark_runs.make("reads", upstream=upstream).log
    late = {"mon": (None,), "tue": (None,), "wed": ("late",)} if is_late else {}
    numbers = {day: number for number, day in enumerate(DAYS, start=1)}
    rows = [(day, "a", "b", numbers[day], *late.get(day, ())) for day in days]
    kind = "int" if is_late else "bigint"
    expected = [f"rows: {' '.join(map(str, rows))} {kind}", f"rows: {len(days)} {len(days)}"]
    assert [line for line in log.splitlines() if line.startswith("rows:")] == expected * 4
    assert {file_format: log.count(f"FileScan {file_format} ") for file_format in FORMATS} == scans


def test_rows_of_another_program_are_read_beside_rows_of_runs(spark_runs: Runs) -> None:
    spark_runs.define("""
        DAYS = PartitionBySequence(["fri", "mon", "tue"], name="day")
        @asset(uri=f"{LAKE}/notes", format="csv", partition=DAYS, columns={"note": "string"})
        def notes(spark):
            return spark.sql("values (null), (' kept ') as rows(note)")
        @asset.multi(outlets=[Asset(one, uri=f"{LAKE}/counts.{one}") for one in ("parquet", "orc")],
                     partition=DAYS)
        def counts(spark):
            return dict.fromkeys(["parquet", "orc"], spark.sql("select 3 as n, 'x' as own"))
        @asset()
        def reads(notes, parquet, orc):
            print("notes:", *sorted(map(repr, (row.note for row in notes.read().collect()))))
            for handle in (parquet, orc):
                frame = handle.read().select("day", "n", "late", "own").orderBy("n")
                print("counts:", *map(tuple, frame.collect()))
    """)
    lake = spark_runs.lake
    lake.joinpath("notes/day=fri").mkdir(parents=True)
    lake.joinpath("notes/day=fri/part-0.csv").write_text("note\n\\N\n")
    for day, columns in (("fri", {"n": [1]}), ("mon", {"n": [2], "late": ["y"]})):
        for form, write_table in (("parquet", parquet.write_table), ("orc", orc.write_table)):
            folder = lake / f"counts.{form}/day={day}"
            folder.mkdir(parents=True)
            write_table(pyarrow.table(columns), str(folder / f"part-0.{form}"))
    spark_runs.make("notes", ["tue"])
    spark_runs.make("counts", ["tue"])
    every = ["fri", "mon", "tue"]
    upstream = {"notes": ["fri", "tue"], "parquet": every, "orc": every}
    log = spark_runs.make("reads", upstream=upstream).log
    assert "notes: ' kept ' '\\\\N' None\n" in log
    counts = "counts: ('fri', 1, None, None) ('mon', 2, 'y', None) ('tue', 3, None, 'x')\n"
    assert log.count(counts) == 2


def test_a_csv_file_is_not_read_by_columns_that_are_not_its_own(spark_runs: Runs) -> None:
    spark_runs.define("""
        @asset(uri=f"{LAKE}/pairs", format="csv")
        def pairs(spark):
            return spark.sql("select 'a' as left, 'b' as right")
        @asset()
        def reads(pairs):
            print(pairs.read().collect())
    """)
    spark_runs.make("pairs")
    (file,) = spark_runs.lake.glob("pairs/*.csv")
    file.write_text("right,left\nb,a\n")
    read = spark_runs.run("reads", upstream={"pairs": [""]})
    assert "FAILED_READ_FILE" in read.failure["error"]


def test_a_partition_of_many_columns_says_them_in_its_footer(spark_runs: Runs) -> None:
    spark_runs.define("""
        DAYS = PartitionBySequence(["mon", "tue"], name="day")
        @asset(uri=f"{LAKE}/wide", partition=DAYS, params={"columns": 0})
        def wide(spark, context):
            count = context["params"]["columns"]
            return spark.sql("select " + ", ".join(f"{n} as column_{n}" for n in range(count)))
        @asset()
        def reads(wide):
            frame = wide.read()
            frame.explain()
            print("columns:", len(frame.columns), [row.column_799 for row in frame.collect()])
    """)
    for day, count in (("mon", 600), ("tue", 800)):
        spark_runs.make("wide", [day], params={"columns": count})
    (file,) = spark_runs.lake.glob("wide/day=tue/*.parquet")
    assert parquet.read_metadata(file).serialized_size > 1 << 16
    log = spark_runs.make("reads", upstream={"wide": ["mon", "tue"]}).log
    assert log.count("FileScan parquet ") == 1
    assert "columns: 801 [799, None]" in log or "columns: 801 [None, 799]" in log


def struct(**types: object) -> dict[str, object]:
    fields = [{"name": name, "type": kind, "nullable": True} for name, kind in types.items()]
    return {"type": "struct", "fields": fields}


def array(kind: object) -> dict[str, object]:
    return {"type": "array", "elementType": kind, "containsNull": True}


@pytest.mark.parametrize(
    ("left_type", "right_type", "both"),
    [
        (struct(a="long"), struct(b="string"), struct(a="long", b="string")),
        (struct(a="long", b="string"), struct(b="string"), struct(a="long", b="string")),
        (struct(a="long"), struct(a="integer"), None),
        (struct(a="long"), struct(A="long"), None),
        (struct(a="long"), struct(a=struct(b="long")), None),
        (
            struct(a=array(struct(x="long"))),
            struct(a=array(struct(y="date"))),
            struct(a=array(struct(x="long", y="date"))),
        ),
        (struct(a=array("long")), struct(a=array("string")), None),
    ],
)
def test_columns_are_put_together_where_none_has_two_types(
    left_type: object, right_type: object, both: object
) -> None:
    assert merge_types(left_type, right_type) == both

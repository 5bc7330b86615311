"""Bundles: packed by content, loaded file by file; a broken file is reported alone."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

from slicewise.loading.archives import BundleError, archive, load_bundle, unpack


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("from slicewise import *\n" + textwrap.dedent(text))
    return folder


def errors(report: dict[str, Any]) -> dict[str, Any]:
    return {file["path"]: file["error"] for file in report["files"] if file["error"]}


def names(report: dict[str, Any]) -> list[str]:
    return [producer["name"] for producer in report["producers"]]


def test_the_digest_depends_on_content_only(tmp_path: Path) -> None:
    first = write(tmp_path / "one", a="x = 1", pkg__b="y = 2")
    second = write(tmp_path / "two", pkg__b="y = 2", a="x = 1")
    os.utime(second / "a.py", (1, 1))
    (second / "a.py").chmod(0o700)
    (second / "__pycache__").mkdir()
    (second / "__pycache__" / "a.pyc").write_bytes(b"x")
    (second / ".git").mkdir()
    (second / ".git" / "config").write_text("x")
    assert archive(first) == archive(second)
    (second / "a.py").write_text("x = 2")
    assert archive(first)[0] != archive(second)[0]


def test_a_packed_bundle_is_unpacked_complete(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", a="x = 1", pkg__b="y = 2")
    (folder / "query.sql").write_text("select 1")
    _, packed = archive(folder)
    for _ in range(2):
        unpack(packed, tmp_path / "copy")
    assert archive(tmp_path / "copy") == archive(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "one"]


def test_a_bundle_that_is_too_large_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", a="x" * 2000)
    with pytest.raises(BundleError, match="limit of 1000 bytes"):
        archive(folder, limit=1000)


def test_links_are_followed_inside_a_bundle_and_refused_beyond_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", a="x = 1")
    (folder / "b.py").symlink_to("a.py")
    unpack(archive(folder)[1], tmp_path / "copy")
    assert (tmp_path / "copy" / "b.py").read_text() == (folder / "a.py").read_text()
    (folder / "c.py").symlink_to("/etc/passwd")
    with pytest.raises(BundleError, match=r"c\.py"):
        archive(folder)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../out.py", tarfile.REGTYPE),
        ("/tmp/out.py", tarfile.REGTYPE),
        ("link.py", tarfile.SYMTYPE),
        ("hard.py", tarfile.LNKTYPE),
        ("device", tarfile.CHRTYPE),
    ],
)
def test_an_archive_that_reaches_out_is_refused(tmp_path: Path, name: str, kind: bytes) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)
    with pytest.raises(BundleError):
        unpack(gzip.compress(content.getvalue()), tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def test_files_import_each_other_and_are_loaded_once(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        flights="""
            from pkg.base import raw, COUNT
            COUNT.append(1)
            @asset(schedule=raw)
            def daily(raw): pass
        """,
        pkg__base="""
            from . import tools
            COUNT = []
            @asset()
            def raw(): '''Raw things.'''
        """,
        pkg__tools="",
        zlast="""
            from pkg.base import COUNT
            assert COUNT == [1]
        """,
    )
    (folder / "pkg" / "__init__.py").touch()
    report = load_bundle(folder)
    assert errors(report) == {}
    assert [file["path"] for file in report["files"]] == [
        "flights.py",
        "zlast.py",
        "pkg/__init__.py",
        "pkg/base.py",
        "pkg/tools.py",
    ]
    assert [(p["name"], p["file"], p["line"]) for p in report["producers"]] == [
        ("daily", "flights.py", 5),
        ("raw", "pkg/base.py", 5),
    ]
    assert not list(tmp_path.rglob("__pycache__"))
    assert "pkg.base" not in sys.modules
    assert json.loads(json.dumps(report)) == report


def test_a_broken_file_does_not_affect_the_others(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        broken="""
            @asset()
            def before(): pass
            def deep():
                return 1 / 0
            deep()
        """,
        syntax="def (",
        exits="raise SystemExit(3)",
        good="""
            @asset()
            def fine(): pass
        """,
    )
    report = load_bundle(folder)
    assert names(report) == ["fine"]
    errors_by_path = errors(report)
    assert sorted(errors_by_path) == ["broken.py", "exits.py", "syntax.py"]
    assert errors_by_path["broken.py"]["message"] == "ZeroDivisionError: division by zero"
    assert errors_by_path["broken.py"]["line"] == 6
    assert (
        errors_by_path["broken.py"]["traceback"].splitlines()[1]
        == '  File "broken.py", line 7, in <module>'
    )
    assert errors_by_path["syntax.py"]["line"] == 2
    assert 'File "syntax.py", line 2' in errors_by_path["syntax.py"]["traceback"]
    assert errors_by_path["exits.py"]["message"] == "SystemExit: 3"


def test_a_file_that_imports_a_broken_one_is_broken_and_declares_nothing(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a="""
            @asset()
            def first(): pass
            import b
        """,
        b="""
            @asset()
            def second(): pass
            raise ValueError("no")
        """,
    )
    report = load_bundle(folder)
    assert names(report) == []
    assert [(e["path"], e["line"]) for e in report["errors"]] == [("a.py", 5), ("b.py", 5)]


def test_a_name_used_twice_is_an_error_that_names_both_places(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a="""
            @asset()
            def same(): pass
        """,
        b="""
            same = Asset("same")
        """,
    )
    report = load_bundle(folder)
    error = errors(report)["b.py"]
    assert error["message"].startswith("asset 'same': declared twice")
    assert "a.py:3" in error["message"]
    assert (error["asset"], error["line"]) == ("same", 3)
    assert names(report) == ["same"]


def test_an_upstream_name_that_nothing_declares_is_an_error(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a="""
            elsewhere = Asset.ref("of_another_bundle")
            @asset()
            def reader(raw_fligths, of_another_bundle): pass
            raw_flights = Asset("raw_flights")
        """,
    )
    error = errors(load_bundle(folder))["a.py"]
    assert "'raw_fligths' names no asset" in error["message"]
    assert "raw_flights" in error["message"]
    assert (error["asset"], error["line"]) == ("reader", 4)


def test_schedules_that_wait_for_each_other_are_an_error(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a="""
            @asset(schedule=Asset.ref("b"))
            def a(): pass
            @asset(schedule=a)
            def b(): pass
        """,
    )
    assert "is a circle of assets: a -> b -> a" in errors(load_bundle(folder))["a.py"]["message"]


def test_a_file_with_the_name_of_a_loaded_module_is_an_error(tmp_path: Path) -> None:
    report = load_bundle(write(tmp_path, json="", slicewise=""))
    assert sorted(errors(report)) == ["json.py", "slicewise.py"]
    assert "another module" in errors(report)["json.py"]["message"]


def test_a_new_version_of_a_file_is_loaded_anew(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path, a=f"@asset()\ndef {name}(): pass")
        assert names(load_bundle(tmp_path)) == [name]


def test_an_asset_made_by_a_function_of_another_file_belongs_to_the_file_that_calls(
    tmp_path: Path,
) -> None:
    folder = write(
        tmp_path,
        factory="""
            def make(place):
                @asset(name=f"weather_{place}")
                def weather(): pass
        """,
        places="""
            import factory
            for place in ("jfk", "lga"):
                factory.make(place)
        """,
    )
    report = load_bundle(folder)
    assert [(p["name"], p["file"], p["line"]) for p in report["producers"]] == [
        ("weather_jfk", "places.py", 5),
        ("weather_lga", "places.py", 5),
    ]


def test_the_loader_process_reports_whatever_its_files_print_or_start(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "bundle",
        noisy="""
            import atexit, sys, threading, time
            from pyspark.sql import functions as F
            IS_LATE = F.col("dep_delay") > 15
            print('{"files": []}')
            sys.stderr.write("noise")
            threading.Thread(target=time.sleep, args=(600,)).start()
            @asset()
            def made(): pass
        """,
    )
    reading, writing = os.pipe()
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "slicewise.loading.loader",
            str(folder),
            "--report-fd",
            str(writing),
        ],
        pass_fds=[writing],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(writing)
        with os.fdopen(reading, "rb") as report:
            assert names(json.load(report)) == ["made"]
        assert process.wait(120) == 0


def test_a_mapping_that_makes_no_sense_between_two_assets_is_an_error(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a="""
        @asset(partition=PartitionByInterval("@daily"))
        def raw(): ...

        @asset(upstream={raw: Offset(-1)}, partition=PartitionBySequence(["a", "b"]))
        def spend(raw): ...
        """,
    )
    (error,) = errors(load_bundle(folder)).values()
    assert (error["line"], error["asset"]) == (6, "spend")
    sentence = "upstream={'raw': Offset(first=-1, last=-1, nonexistent='need')} is not possible"
    assert sentence in error["message"]
    assert "counts windows of time; PartitionBySequence([a, b]) has none" in error["message"]


@pytest.mark.parametrize(
    ("declaration", "line", "asset", "message"),
    [
        (
            """
            @asset(
                schedule="@daily",
                partition=PartitionByInterval("@dayly"),
            )
            def sales(): ...
            """,
            5,
            "sales",
            "unknown preset '@dayly': use one of",
        ),
        (
            """
            @asset(name="all sales", partition=PartitionByInterval("@daily", timezone="Mars"))
            def sales(): ...
            """,
            3,
            "all sales",
            "unknown time zone 'Mars'",
        ),
        (
            """
            raw = Asset("raw", uri="s3://b/raw", partition=PartitionByProduct(
                [PartitionByInterval("@daily"), PartitionAtRuntime("customers")]
            ))
            """,
            3,
            "raw",
            "a product takes intervals and sequences, not runtime",
        ),
        (
            """
            def parts(): return PartitionByInterval("@daily", start="2024-01-02", end="2024-01-01")

            @asset.multi(outlets=[Asset("a"), Asset("b")], partition=parts())
            def split(): ...
            """,
            3,
            "split",
            "comes before the start",
        ),
        (
            """
            import slicewise
            @slicewise.asset(schedule=Asset("b") | "c")
            def sales(): ...
            """,
            4,
            "sales",
            "a schedule joins assets, not the text 'c'",
        ),
        ("\n@asset(schedule=nothing)\ndef sales(): ...", 3, "sales", "NameError: name 'nothing'"),
        ("\n@asset.multi\ndef sales(): ...", 3, "sales", "write @asset.multi(...), with keyword"),
    ],
)
def test_an_argument_that_is_wrong_by_itself_is_told_with_its_asset(
    tmp_path: Path, declaration: str, line: int, asset: str, message: str
) -> None:
    report = load_bundle(write(tmp_path, a=declaration))
    (error,) = errors(report).values()
    assert (error["line"], error["asset"]) == (line, asset)
    assert error["message"].startswith(f"asset {asset!r}: ")
    assert message in error["message"]
    assert not names(report)


def test_an_error_outside_an_asset_names_no_asset(tmp_path: Path) -> None:
    folder = write(tmp_path, a='\nDAYS = PartitionByInterval("@dayly")')
    (error,) = errors(load_bundle(folder)).values()
    assert (error["line"], error["asset"]) == (3, None)
    assert error["message"].startswith("DefinitionError: unknown preset '@dayly'")


def test_an_error_of_an_imported_file_is_told_at_the_import_and_where_it_arose(
    tmp_path: Path,
) -> None:
    folder = write(
        tmp_path,
        a="import z",
        b="""
        import helpers
        @asset(partition=helpers.windows("@dayly"))
        def sales(): ...
        """,
        helpers="\n\n\n\ndef windows(cadence): return PartitionByInterval(cadence)",
        z='\n\n\nDAYS = PartitionByInterval("@dayly")',
    )
    places_by_path = {
        path: (error["line"], error["message"])
        for path, error in errors(load_bundle(folder)).items()
    }
    assert places_by_path["a.py"][0] == 2
    assert places_by_path["a.py"][1].endswith("(z.py:5)")
    assert places_by_path["b.py"][0] == 4
    assert places_by_path["b.py"][1].startswith("asset 'sales': unknown preset '@dayly'")
    assert places_by_path["b.py"][1].endswith("(helpers.py:6)")
    assert places_by_path["z.py"][0] == 5
    assert not places_by_path["z.py"][1].endswith(")")


def test_a_file_with_a_path_too_long_for_the_record_is_refused_alone(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", a="@asset()\ndef flights(): ...")
    deep = folder.joinpath(*["d" * 200] * 5)
    deep.mkdir(parents=True)
    (deep / "b.py").write_text("")
    report = load_bundle(folder)
    assert names(report) == ["flights"]
    (error,) = errors(report).values()
    assert "has a path of more than 1000 characters" in error["message"]

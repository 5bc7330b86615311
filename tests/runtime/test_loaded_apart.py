"""A definition file that cannot be reported never takes another file down."""

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from slicewise.loading.archives import load_bundle

HEADER = "from slicewise import *\n"
GOOD = "@asset()\ndef good(): ...\n"
KEYS = """
class Shop(PartitionKey):
    town: int
    def __str__(self):
        {body}

SHOPS = PartitionBySequence([Shop(1)])

@asset(partition=SHOPS)
def takings(): ...
"""


def loaded(folder: Path, bad: str) -> dict[str, Any]:
    (folder / "a_bad.py").write_text(HEADER + textwrap.dedent(bad))
    (folder / "good.py").write_text(HEADER + GOOD)
    report: dict[str, Any] = load_bundle(folder)
    json.dumps(report, allow_nan=False)
    return report


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return self.town", "__str__ returned non-string"),
        ("raise KeyError('town')", "KeyError('town')"),
        ("raise SystemExit(3)", "SystemExit(3)"),
        ("raise type('Gone', (BaseException,), {})('town')", "Gone('town')"),
        ("return str(self)", "RecursionError"),
    ],
)
def test_a_key_class_whose_text_fails_breaks_its_own_file_only(
    tmp_path: Path, body: str, reason: str
) -> None:
    report = loaded(tmp_path, KEYS.format(body=body))
    (error,) = report["errors"]
    assert (error["path"], error["asset"], error["line"]) == ("a_bad.py", "takings", 10)
    assert "Shop.__str__ failed" in error["message"]
    assert reason in error["message"]
    assert [producer["name"] for producer in report["producers"]] == ["good"]


def test_a_broken_declaration_takes_along_what_its_file_declares(tmp_path: Path) -> None:
    bad = KEYS.format(body="return self.town") + "\n@asset()\ndef beside(): ...\n"
    report = loaded(tmp_path, bad + "elsewhere = Asset('elsewhere')\n")
    assert [producer["name"] for producer in report["producers"]] == ["good"]
    assert report["assets"] == []


def test_params_are_those_of_the_moment_of_the_declaration(tmp_path: Path) -> None:
    report = loaded(
        tmp_path,
        """
        shared = {"limits": [1, 2]}

        @asset(params=shared)
        def sales(): ...

        shared["limits"].append(object())
        shared["more"] = object()
        """,
    )
    assert report["errors"] == []
    assert report["producers"][0]["params"] == {"limits": [1, 2]}


def test_a_fact_that_json_cannot_hold_is_an_error_of_its_file(tmp_path: Path) -> None:
    report = loaded(tmp_path, "raw = Asset('raw')\nraw.kind = object()\n")
    (error,) = report["errors"]
    assert (error["path"], error["line"], error["asset"]) == ("a_bad.py", 2, "raw")
    assert "not JSON serializable" in error["message"]
    assert [producer["name"] for producer in report["producers"]] == ["good"]


def test_an_error_without_a_text_is_told_by_its_class(tmp_path: Path) -> None:
    report = loaded(
        tmp_path,
        """
        class Odd(Exception):
            def __str__(self):
                return None

        raise Odd()
        """,
    )
    assert [(error["path"], error["message"]) for error in report["errors"]] == [
        ("a_bad.py", "Odd")
    ]
    assert [producer["name"] for producer in report["producers"]] == ["good"]


def test_a_file_that_spoils_what_modules_say_of_themselves_spoils_nothing_else(
    tmp_path: Path,
) -> None:
    report = loaded(tmp_path, "__path__ = 5\n")
    assert "good" in [producer["name"] for producer in report["producers"]]

"""Validations in runs on real workers: only data that passes is published."""

from pathlib import Path
from typing import Any

from pyarrow import parquet

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended, log_of, run_of


def warmest(lake: Path) -> int:
    """Return the highest temperature that readers of the checked asset find."""
    files = (lake / "trials" / "checked").glob("*.parquet")
    tables = [parquet.read_table(path) for path in files]
    return max(int(celsius) for table in tables for celsius in table["celsius"].to_pylist())


def passed(run: dict[str, Any]) -> dict[str, bool]:
    return {validation["name"]: validation["passed"] for validation in run["validations"]}


def read_anew(api: Client, **params: int) -> tuple[str, dict[str, Any]]:
    """Make the readings, then the asset that checks the readings; return the run of the asset."""
    assert ended(api, run_of(api, "readings", params=params))["state"] == "succeeded"
    run = run_of(api, "checked")
    return run, ended(api, run)


def test_only_data_that_passes_takes_the_place_of_the_old(api: Client, lake: Path) -> None:
    _, fine = read_anew(api, warmest=20)
    assert fine["state"] == "succeeded"
    assert passed(fine) == {
        "not_null(name)": False,
        "row_count": True,
        "fresh_within": True,
        "unique(id)": True,
        "weather_on_earth": True,
    }
    warned = fine["validations"][0]
    assert (warned["severity"], warned["when"]) == ("warn", "outlet")
    assert warned["message"] == "1 of 3 rows hold a null: 1 in 'name'."
    assert warmest(lake) == 20

    run, hot = read_anew(api, warmest=80)
    assert (hot["state"], hot["error_kind"]) == ("failed", "code")
    assert hot["error"] == "checked does not pass weather_on_earth: 3 thermometers are on fire"
    assert not passed(hot)["weather_on_earth"]
    assert "the function runs" in log_of(api, run)
    assert warmest(lake) == 20
    (partition,) = api.every("/assets/checked/partitions/")
    assert (partition["state"], partition["version"]) == ("failed", 1)
    assert not list((lake / "trials").glob("_slicewise-staging-*"))

    run, empty = read_anew(api, rows=0)
    assert empty["error"] == (
        "readings does not pass row_count: The data has 0 rows instead of at least 1 row."
    )
    assert passed(empty) == {"row_count": False, "fresh_within": True}
    assert "the function runs" not in log_of(api, run)
    assert warmest(lake) == 20

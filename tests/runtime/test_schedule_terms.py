"""Schedules that join times and assets: the terms, and the JSON for servers."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from slicewise import Asset, Cron, DefinitionError, Every, PartitionByInterval, asset
from slicewise.declaring.schedules import schedule_names, schedule_text, time_terms
from slicewise.loading.importing import load_bundle
from slicewise_server.stack.definitions import main

UP, OTHER = Asset.ref("up"), Asset.ref("other")
DAILY = {"kind": "cron", "expression": "@daily"}
AFTER_UP = {"kind": "asset", "name": "up"}
HOUR = timedelta(hours=1)


def declared(schedule: Any, **options: Any) -> dict[str, Any]:
    """Return the JSON that servers get of an asset with this schedule."""

    @asset(schedule=schedule, **options)
    def decorated() -> None: ...

    return decorated.to_json()


def refused(tmp_path: Path, arguments: str) -> str:
    """Return the error of a file, which names its line and its asset."""
    (tmp_path / "a.py").write_text(
        "from datetime import timedelta\nfrom slicewise import Asset, Cron, Every, asset\n"
        f"@asset({arguments})\ndef flights(): ...\n"
    )
    (error,) = load_bundle(tmp_path)["errors"]
    assert (error["path"], error["line"], error["asset"]) == ("a.py", 3, "flights")
    return str(error["message"])


def test_times_and_assets_are_joined_by_or_and_by_and() -> None:
    assert declared(UP | Cron("@daily"))["schedule"] == {"kind": "any", "of": [AFTER_UP, DAILY]}
    assert declared(Cron("@daily") & UP)["schedule"] == {"kind": "all", "of": [DAILY, AFTER_UP]}
    assert declared(UP & Every(HOUR))["schedule"] == {
        "kind": "all", "of": [AFTER_UP, {"kind": "timedelta", "seconds": 3600}],
    }  # fmt: skip


def test_expressions_nest_and_join_flat() -> None:
    nested = (UP & Cron("@daily")) | OTHER | Every(HOUR)
    assert repr(nested) == (
        "(AssetReference('up') & Cron('@daily')) | AssetReference('other')"
        " | Every(timedelta(seconds=3600))"
    )
    spec = nested.schedule_json()
    assert [term["kind"] for term in spec["of"]] == ["all", "asset", "timedelta"]
    assert schedule_names(spec) == ["up", "other"]
    assert len(time_terms(spec)) == 2
    assert schedule_text(spec) == "(up & Cron('@daily')) | other | Every(1:00:00)"


def test_a_term_with_a_zone_of_its_own_says_so() -> None:
    spec = declared(UP | Cron("30 6 * * *", timezone="Europe/Berlin"))["schedule"]
    assert spec["of"][1] == {
        "kind": "cron", "expression": "30 6 * * *", "timezone": "Europe/Berlin",
    }  # fmt: skip
    assert schedule_text(spec) == "up | Cron('30 6 * * *', timezone='Europe/Berlin')"


def test_the_same_said_twice_is_said_once() -> None:
    twice = UP | Cron("@daily") | UP | Cron("  @daily ")
    assert twice.schedule_json() == (UP | Cron("@daily")).schedule_json()
    assert (Cron("@daily") & Cron("@daily")) == Cron("@daily")
    assert (UP | UP) is UP


def test_terms_are_values() -> None:
    assert Cron("0  6 * * *") == Cron("0 6 * * *")
    assert len({Cron("@daily"), Cron("@daily"), Cron("@daily", "UTC"), Every(HOUR)}) == 3
    assert repr(Cron("@daily", timezone="Europe/Berlin")) == (
        "Cron('@daily', timezone='Europe/Berlin')"
    )


@pytest.mark.parametrize(
    ("term", "plain"),
    [
        ({"schedule": Cron("@daily")}, {"schedule": "@daily"}),
        ({"schedule": Every(HOUR)}, {"schedule": HOUR}),
        (
            {"schedule": Cron("30 6 * * *", timezone="Europe/Berlin")},
            {"schedule": "30 6 * * *", "timezone": "Europe/Berlin"},
        ),
        (
            {"schedule": Every(HOUR), "start_date": "2024-01-01T00:30"},
            {"schedule": HOUR, "start_date": "2024-01-01T00:30"},
        ),
    ],
    ids=["cron", "every", "zone", "bounds"],
)
def test_a_single_term_is_the_plain_schedule(term: dict[str, Any], plain: dict[str, Any]) -> None:
    for more in ({}, {"partition": "auto"}):
        spec, wanted = declared(**term, **more), declared(**plain, **more)
        assert {**spec, "source": ""} == {**wanted, "source": "", "line": spec["line"]}
    days = PartitionByInterval("@daily")
    assert declared(**term, partition=days, refresh=3, pending="latest")["refresh"] == 3


def test_a_joined_schedule_infers_no_partition() -> None:
    assert declared(UP | Cron("@daily"), partition="auto")["partition"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("schedule=Asset.ref('up') | Cron('61 * * * *')", "bad cron expression '61 * * * *'"),
        ("schedule=Asset.ref('up') | Cron('@fortnightly')", "use one of @hourly, @daily"),
        ("schedule=Cron('* * * * * *')", "five fields"),
        ("schedule=Cron('@daily', timezone='Berlin')", "unknown time zone 'Berlin'"),
        ("schedule=Cron('@daily', timezone=1)", "timezone is a name"),
        ("schedule=Cron(timedelta(hours=1))", "write Every(...)"),
        ("schedule=Every('@daily')", "Every takes a timedelta, not '@daily'; write Cron('@daily')"),
        ("schedule=Every('6h')", "write Every(timedelta(hours=6)), for example"),
        ("schedule=Every(3600)", "write Every(timedelta(seconds=3600))"),
        ("schedule=Asset.ref('up') and Cron('@daily')", "write & for 'and'"),
        ("schedule=Cron('@daily') or Asset.ref('up')", "and | for 'or'"),
        ("schedule=Every(timedelta(0))", "positive number of whole seconds"),
        ("schedule=Asset.ref('up') & Cron", "the class Cron; write Cron(...)"),
        ("schedule=Every", "the class Every; write Every(...)"),
        ("schedule=Asset.ref('up') | '@daily'", "the time '@daily'; write Cron('@daily')"),
        (
            "schedule=timedelta(hours=1) & Asset.ref('up')",
            "write Every(timedelta(seconds=3600))",
        ),
        ("schedule=Cron('@daily') | 'up'", "not the text 'up'; write Asset.ref('up')"),
        (
            "schedule=Cron('@daily', 'Europe/Berlin'), timezone='UTC'",
            "timezone='UTC' is not the time zone of Cron('@daily', timezone='Europe/Berlin')",
        ),
        (
            "schedule=Asset.ref('up') | Cron('@daily'), start_date='2024-01-01'",
            "start_date bounds the ticks of a schedule by time, and this schedule joins times",
        ),
        ("schedule=Asset.ref('up') | Cron('@daily'), refresh=2", "joins times and other terms"),
        (
            "schedule=Asset.ref('up') & Cron('@daily'), pending='latest'",
            'pending="latest" acts at the ticks of a schedule by time',
        ),
    ],
)
def test_impossible_schedules_are_refused_with_their_line(
    tmp_path: Path, arguments: str, message: str
) -> None:
    assert message in refused(tmp_path, arguments)


def test_a_schedule_that_waits_for_itself_is_refused_beside_a_time(tmp_path: Path) -> None:
    message = refused(tmp_path, "schedule=Asset.ref('flights') | Cron('@daily')")
    assert "the schedule is a circle of assets" in message


def test_two_zones_that_are_the_same_may_be_written() -> None:
    spec = declared(Cron("@daily", timezone="Europe/Berlin"), timezone="Europe/Berlin")
    assert spec["timezone"] == "Europe/Berlin"


def test_the_check_of_definitions_shows_the_expression_and_its_zone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(
        "from slicewise import Asset, Cron, asset\nup = Asset('up')\n"
        "@asset(schedule=up | Cron('@daily'), timezone='Europe/Berlin')\ndef made(): ...\n"
    )
    assert main(["check", str(tmp_path)]) == 0
    assert "schedule:  up | Cron('@daily') (Europe/Berlin)" in capsys.readouterr().out


def test_a_term_is_refused_where_it_is_made() -> None:
    with pytest.raises(DefinitionError, match=r"Cron\('0 H \* \* \*'\): "):
        Cron("0 H * * *")

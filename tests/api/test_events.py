"""Telling through the API, by a command and on a page that something else has written."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from accounts_app.models import User
from assets_app.models import AssetPartition, Materialization, WriteReport
from tests import factories
from tests.clients import browser_of

ADDRESS = "/api/v1/assets/stock/events/"


@pytest.fixture(autouse=True)
def stock(db: None) -> Any:
    return factories.external("stock", factories.DAILY_2013)


def test_a_program_reports_a_write(api: APIClient) -> None:
    body = {"selection": "2013-01-01", "rows": 842, "metadata": {"job": "nightly"}}
    answer = api.post(ADDRESS, body, format="json")
    assert answer.status_code == 201, answer.content
    event = answer.json()
    assert event["partitions"] == [{"key": "2013-01-01", "version": 1}]
    assert (event["reported_by"], event["metadata"]) == ("olga", {"job": "nightly"})
    listed = api.get("/api/v1/assets/stock/partitions/?selection=2013-01-01").json()["results"]
    assert (listed[0]["state"], listed[0]["rows"], listed[0]["run"]) == ("materialized", 842, None)


def test_a_program_reports_the_rows_of_each_partition(api: APIClient) -> None:
    listed = [{"key": "2013-01-02", "rows": 7}, {"key": "2013-01-01", "bytes": 5}]
    answer = api.post(ADDRESS, {"partitions": listed}, format="json")
    assert answer.status_code == 201, answer.content
    counts = AssetPartition.objects.order_by("key").values_list("key", "rows", "bytes")
    assert list(counts) == [("2013-01-01", None, 5), ("2013-01-02", 7, None)]
    for wrong in ([{"rows": 7}], [{"key": "2013-01-03", "rows": "7"}], {"key": "2013-01-03"}):
        refused = api.post(ADDRESS, {"partitions": wrong}, format="json")
        assert refused.status_code == 400
        assert "partitions" in str(refused.json()["errors"])
    assert WriteReport.objects.count() == 1


def test_the_same_message_sent_again_is_not_another_write(api: APIClient) -> None:
    key = {"Idempotency-Key": "import-7"}
    body = {"selection": "2013-01-01"}
    first = api.post(ADDRESS, body, format="json", headers=key)
    again = api.post(ADDRESS, body, format="json", headers=key)
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert AssetPartition.objects.get().version == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"selection": "2013-13-01"}, "selection"),
        ({"selection": "2013-01-01", "rows": -1}, "rows"),
        ({"selection": "2013-01-01", "rows": "5"}, "rows"),
        ({"selection": "2013-01-01", "rows": 2**64}, "rows"),
        ({"selection": "2013-01-01", "metadata": []}, "metadata"),
        ({"selection": "2013-01-01", "metadata": {"x": "\0"}}, "metadata"),
        ({"partition": "2013-01-01"}, "partition"),
        ({"selection": 5}, "selection"),
    ],
)
def test_a_wrong_message_is_refused_at_its_field(
    api: APIClient, body: dict[str, Any], field: str
) -> None:
    answer = api.post(ADDRESS, body, format="json")
    assert answer.status_code == 400, answer.content
    assert field in answer.json()["errors"]
    assert not WriteReport.objects.exists()


def test_others_may_not(viewer_api: APIClient, stranger_api: APIClient, api: APIClient) -> None:
    body = {"selection": "2013-01-01"}
    assert viewer_api.post(ADDRESS, body, format="json").status_code == 403
    assert stranger_api.post(ADDRESS, body, format="json").status_code == 401
    assert api.post("/api/v1/assets/nobody/events/", body, format="json").status_code == 404


def test_a_command_reports_a_write(db: None) -> None:
    factories.person("ada", is_superuser=True)
    out = StringIO()
    options = ("--partition", "2013-01-01..2013-01-03", "--metadata", '{"by": "hand"}')
    call_command("assets", "report-write", "stock", *options, "--json", stdout=out)
    assert json.loads(out.getvalue())["partition_count"] == 3
    call_command("assets", "report-write", "stock", "--partition", "2013-02-01", stdout=out)
    assert "Recorded as written: stock 2013-02-01." in out.getvalue()
    with pytest.raises(CommandError, match="before the first partition"):
        call_command("assets", "report-write", "stock", "--partition", "2012-01-01")


def test_a_command_reads_the_counts_of_many_partitions(
    db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.person("ada", is_superuser=True)
    partitions = [
        {"key": "2013-01-01", "rows": 842},
        {"key": "2013-01-02", "rows": 943, "bytes": 7},
    ]
    listed = tmp_path / "counts.json"
    listed.write_text(json.dumps(partitions))
    call_command("assets", "report-write", "stock", "--partitions", str(listed), stdout=StringIO())
    monkeypatch.setattr("sys.stdin", StringIO(json.dumps(partitions[:1])))
    call_command("assets", "report-write", "stock", "--partitions", "-", stdout=StringIO())
    written = Materialization.objects.order_by("partition__key", "version")
    assert list(written.values_list("partition__key", "version", "rows", "bytes")) == [
        ("2013-01-01", 1, 842, None),
        ("2013-01-01", 2, 842, None),
        ("2013-01-02", 1, 943, 7),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "lists no partition"),
        ("{", "holds no JSON"),
        ('[{"rows": 1}]', "partitions.0.key: This field is required"),
        ('[{"key": "2013-01-01", "rows": -1}]', "partitions.0.rows"),
        ('[{"key": "2013-01-01"}, {"key": "2013-01-01"}]', "named twice"),
    ],
)
def test_a_wrong_list_of_partitions_is_refused(
    db: None, tmp_path: Path, text: str, message: str
) -> None:
    factories.person("ada", is_superuser=True)
    listed = tmp_path / "counts.json"
    listed.write_text(text)
    with pytest.raises(CommandError, match=message):
        call_command("assets", "report-write", "stock", "--partitions", str(listed))
    with pytest.raises(CommandError, match="No such file"):
        call_command("assets", "report-write", "stock", "--partitions", str(tmp_path / "none"))
    assert not WriteReport.objects.exists()


@pytest.fixture
def browser(olga: User) -> Client:
    return browser_of(olga)


def test_a_person_reports_a_write_on_a_page(browser: Client) -> None:
    assert "/assets/stock/report-write/" in browser.get("/assets/stock/").content.decode()
    form = browser.get("/assets/stock/report-write/?selection=2013-01-05").content.decode()
    assert "2013-01-05" in form
    typed = {"selection": "2013-01-05", "rows": "7", "bytes": "", "metadata": '{"by": "hand"}'}
    answer = browser.post("/assets/stock/report-write/", typed, follow=True)
    assert answer.redirect_chain == [("/assets/stock/partitions/2013-01-05/", 302)]
    page = answer.content.decode()
    assert "reported by olga" in page
    assert "by: hand" in page


def test_the_form_says_what_is_wrong(browser: Client) -> None:
    answer = browser.post("/assets/stock/report-write/", {"selection": "2013-01", "rows": "7"})
    assert answer.status_code == 400
    assert "31 partitions" in answer.content.decode()
    assert not WriteReport.objects.exists()


def test_where_a_run_makes_it_there_is_no_such_button(browser: Client) -> None:
    factories.asset("made", factories.DAILY_2013)
    assert "report-write" not in browser.get("/assets/made/").content.decode()
    page = browser.get("/assets/made/report-write/").content.decode()
    assert "disabled" in page


def test_who_may_only_look_has_no_button(vera: User) -> None:
    client = browser_of(vera)
    assert "report-write" not in client.get("/assets/stock/").content.decode()
    answer = client.post("/assets/stock/report-write/", {"selection": "2013-01-05"})
    assert answer.status_code == 403

"""Partitions of a set found at run time, added and removed by people and programs."""

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.queue.transitions import move_all
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, Gateway, Materialization, RunState
from assets_app.scheduling.outbox import process_outbox
from partitions_app.models import RuntimePartition
from slicewise import PartitionAtRuntime
from tests import factories
from tests.clients import api_client_of, browser_of
from tests.execution.conftest import make_gateway
from tests.scheduling.scheduled_assets import at, by, make_all, scheduled, waiting, write

ADDRESS = "/api/v1/assets/models/runtime-partitions/"
REMOVE = ADDRESS + "remove/"
CARRIERS = PartitionAtRuntime(name="carriers")


@pytest.fixture(autouse=True)
def models(db: None) -> Asset:
    return factories.asset("models", CARRIERS)


@pytest.fixture
def edith(db: None) -> User:
    return factories.person("edith", Role.EDITOR)


@pytest.fixture
def editor(edith: User) -> APIClient:
    return api_client_of(edith)


@pytest.fixture
def gateway(db: None) -> Gateway:
    return make_gateway("scheduled")


def listed(api: APIClient, name: str = "models") -> list[str]:
    answer = api.get(f"/api/v1/assets/{name}/partitions/")
    return sorted(row["key"] for row in answer.json()["results"])


def post(api: APIClient, address: str, *keys: Any) -> Any:
    return api.post(address, {"keys": list(keys)}, format="json")


def test_keys_are_added_for_all_assets_of_the_set(editor: APIClient) -> None:
    factories.asset("reports", CARRIERS)
    answer = post(editor, ADDRESS, "AA", "UA")
    assert (answer.status_code, sorted(answer.json()["keys"])) == (201, ["AA", "UA"])
    assert listed(editor) == listed(editor, "reports") == ["AA", "UA"]
    assert post(editor, ADDRESS, "AA", "DL").json()["keys"] == ["DL"]
    entry = AuditEntry.objects.order_by("id")[0]
    assert (entry.actor_name, entry.action, entry.subject) == ("edith", "add partitions", "models")
    assert RuntimePartition.objects.get(key="AA").added_by is None


def test_a_key_without_data_makes_nothing_due_until_it_is_made(
    editor: APIClient, edith: User, gateway: Gateway
) -> None:
    after = scheduled("after", by("models"), CARRIERS, since=at(2024, 1, 1))
    post(editor, ADDRESS, "AA")
    process_outbox(at(2024, 8, 1))
    assert waiting(after) == []
    write(Asset.objects.get(name="models"), "AA", gateway, edith)
    process_outbox(at(2024, 8, 1))
    assert waiting(after) == ["AA"]


def test_a_removed_key_is_listed_no_more_and_its_history_stays(
    editor: APIClient, edith: User, gateway: Gateway
) -> None:
    after = scheduled("after", by("models"), CARRIERS, since=at(2024, 1, 1))
    post(editor, ADDRESS, "AA", "UA")
    write(Asset.objects.get(name="models"), "AA", gateway, edith)
    assert post(editor, REMOVE, "AA").json() == {"keys": ["AA"]}
    assert listed(editor) == ["UA"]
    process_outbox(at(2024, 8, 1))
    assert waiting(after) == []
    assert Materialization.objects.count() == 1
    # A word of its own: random tokens have any two letters in a row now and then.
    assert re.search(r"\bUA\b", page := editor.get("/assets/models/").content.decode())
    assert not re.search(r"\bAA\b", page)
    assert editor.get("/assets/models/partitions/AA/").status_code == 200
    post(editor, ADDRESS, "AA")
    assert listed(editor) == ["AA", "UA"]
    assert AssetPartition.objects.get(asset__name="models", key="AA").version == 1
    make_all(after, gateway)


def test_while_a_run_makes_it_a_key_is_not_removed(
    editor: APIClient, edith: User, gateway: Gateway
) -> None:
    post(editor, ADDRESS, "AA")
    asset = Asset.objects.get(name="models")
    run = materialize(MaterializeRequest(asset=asset, selection="AA"), user=edith).runs.get()
    answer = post(editor, REMOVE, "AA")
    assert answer.status_code == 409
    assert f"Run {run.pk} is materializing models AA" in answer.json()["errors"]["keys"][0]
    assert listed(editor) == ["AA"]
    move_all([run.pk], RunState.QUEUED, RunState.DISPATCHED)
    attempt = attempts.begin(run.pk, gateway)
    assert attempt is not None
    ending.fail(attempt.row, ending.Failure(error="no"))
    assert post(editor, REMOVE, "AA").status_code == 200


@pytest.mark.parametrize(
    ("address", "keys"),
    [
        (ADDRESS, []), (ADDRESS, [None]), (ADDRESS, [True]), (ADDRESS, [1.5]), (ADDRESS, [""]),
        (ADDRESS, ["x\0"]), (ADDRESS, [{"a": 1}]), (REMOVE, ["nobody"]), (REMOVE, []),
        (REMOVE, [5]), (REMOVE, ["x\0"]),
    ],
)  # fmt: skip
def test_invalid_keys_are_refused(editor: APIClient, address: str, keys: list[Any]) -> None:
    answer = post(editor, address, *keys)
    assert answer.status_code == 400, answer.content
    assert {name.partition(".")[0] for name in answer.json()["errors"]} == {"keys"}
    assert not RuntimePartition.objects.exists()


def test_two_keys_of_one_text_are_not_mixed_up(editor: APIClient) -> None:
    post(editor, ADDRESS, 7)
    answer = post(editor, ADDRESS, "7")
    assert answer.status_code == 400
    assert "both have the key text" in answer.json()["errors"]["keys"][0]


def test_too_many_are_refused_by_the_name_of_the_setting(editor: APIClient, settings: Any) -> None:
    settings.MAX_PARTITIONS_PER_REQUEST = 2
    assert "MAX_PARTITIONS_PER_REQUEST" in post(editor, ADDRESS, "a", "b", "c").content.decode()


def test_other_assets_have_no_keys_to_add(editor: APIClient) -> None:
    factories.asset("days", factories.DAILY_2013)
    answer = post(editor, "/api/v1/assets/days/runtime-partitions/", "2013-01-01")
    assert "PartitionAtRuntime" in answer.json()["errors"]["asset"][0]


def test_operators_and_viewers_may_not(
    api: APIClient, viewer_api: APIClient, stranger_api: APIClient
) -> None:
    for address in (ADDRESS, REMOVE):
        assert post(api, address, "AA").status_code == 403
        assert post(viewer_api, address, "AA").status_code == 403
        assert post(stranger_api, address, "AA").status_code == 401
    assert not RuntimePartition.objects.exists()


def test_commands_add_and_remove(db: None) -> None:
    factories.person("ada", is_superuser=True)
    out = StringIO()
    call_command("assets", "add-partitions", "models", "AA", "UA", "--json", stdout=out)
    assert sorted(json.loads(out.getvalue())["keys"]) == ["AA", "UA"]
    out = StringIO()
    call_command("assets", "remove-partitions", "models", "AA", stdout=out)
    assert out.getvalue() == "Removed: AA.\n"


def test_an_editor_has_buttons_for_it(edith: User, olga: User) -> None:
    browser = browser_of(edith)
    assert "add-partition" in browser.get("/assets/models/").content.decode()
    page = browser.post("/assets/models/add-partition/", {"key": "AA"}, follow=True)
    assert "AA added." in page.content.decode()
    assert "remove-partition" in browser.get("/assets/models/partitions/AA/").content.decode()
    page = browser.post("/assets/models/remove-partition/", {"key": "AA"}, follow=True)
    assert "AA removed; history is kept." in page.content.decode()
    page = browser.post("/assets/models/remove-partition/", {"key": "AA"}, follow=True)
    assert "has no partition AA" in page.content.decode()
    operator_browser = browser_of(olga)
    assert "add-partition" not in operator_browser.get("/assets/models/").content.decode()
    assert operator_browser.post("/assets/models/add-partition/", {"key": "AA"}).status_code == 403

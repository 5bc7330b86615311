"""Channels, rules and deliveries through the API."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from accounts_app.models import AuditEntry, User
from slicewise_server.alerts.models import Channel, Delivery
from tests.described_answers import DescribedClient

HOOK = {"name": "hook", "kind": "webhook", "address": "https://hooks.example/T0/s3cret"}


@pytest.fixture
def admin_api(admin: User) -> APIClient:
    client = DescribedClient(raise_request_exception=False)
    client.force_login(admin)
    return client


def test_a_channel_is_created_read_changed_and_deleted(admin_api: APIClient) -> None:
    created = admin_api.post("/api/v1/channels/", HOOK, format="json")
    assert created.status_code == 201
    assert len(created.json()["signing_key"]) > 30
    read = admin_api.get("/api/v1/channels/hook/")
    assert "signing_key" not in read.json()
    assert "s3cret" not in read.content.decode()
    change = {"active": False}
    changed = admin_api.patch("/api/v1/channels/hook/", change, format="json")
    assert changed.json()["active"] is False
    assert [row["name"] for row in admin_api.get("/api/v1/channels/").json()["results"]] == ["hook"]
    assert admin_api.delete("/api/v1/channels/hook/").status_code == 204
    assert admin_api.get("/api/v1/channels/hook/").status_code == 404
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions[-3:] == ["create", "change", "delete"]


def test_a_rule_is_created_read_changed_and_deleted(admin_api: APIClient) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    fields = {"name": "failures", "channel": "hook", "kinds": ["run_failed"], "tags": ["prod"]}
    created = admin_api.post("/api/v1/alert-rules/", fields, format="json")
    assert created.status_code == 201
    assert created.json()["gather_seconds"] == 30
    address = "/api/v1/alert-rules/failures/"
    changed = admin_api.patch(address, {"gather_seconds": 5}, format="json")
    assert changed.json()["gather_seconds"] == 5
    assert admin_api.get(address).json()["tags"] == ["prod"]
    assert admin_api.delete(address).status_code == 204
    assert admin_api.get("/api/v1/alert-rules/").json()["results"] == []


def test_a_test_message_and_a_second_sending(admin_api: APIClient) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    sent = admin_api.post("/api/v1/channels/hook/test/")
    assert sent.status_code == 202
    (row,) = admin_api.get("/api/v1/deliveries/?state=waiting").json()["results"]
    assert row["id"] == sent.json()["id"]
    again = f"/api/v1/deliveries/{row['id']}/resend/"
    assert admin_api.post(again).status_code == 409
    Delivery.objects.update(state="failed")
    assert admin_api.post(again).json()["id"] == row["id"]


@pytest.mark.parametrize(
    ("address", "body", "field"),
    [
        ("channels", HOOK | {"kind": "pigeon"}, "kind"),
        ("channels", HOOK | {"adress": "x"}, "adress"),
        ("channels", HOOK | {"address": 1}, "address"),
        ("channels", {"kind": "message", "variable": "SLICEWISE_ALERT_"}, "variable"),
        ("channels", {"kind": "message", "variable": "SLICEWISE_ALERT_a b"}, "variable"),
        ("channels", {"kind": "message", "variable": "SLICEWISE_ALERT_A\nB"}, "variable"),
        ("alert-rules", {"channel": "hook", "kinds": ["run_fialed"]}, "kinds.0"),
        ("alert-rules", {"channel": "hook", "kinds": ["run_failed"] * 2}, "kinds"),
        ("alert-rules", {"name": "x", "channel": "nowhere"}, "channel"),
        ("alert-rules", {"name": "x", "channel": "hook", "tags": "prod"}, "tags"),
        ("alert-rules", {"name": "x", "channel": "hook", "gather_seconds": "5"}, "gather_seconds"),
        (
            "alert-rules",
            {"name": "x", "channel": "hook", "gather_seconds": 10**30},
            "gather_seconds",
        ),
    ],
)
def test_a_wrong_body_is_refused_with_its_field(
    admin_api: APIClient, address: str, body: dict[str, object], field: str
) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    answer = admin_api.post(f"/api/v1/{address}/", body | {"name": "y"}, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [field]
    assert Channel.objects.count() == 1


def test_an_unknown_channel_and_an_unknown_kind_are_named(admin_api: APIClient) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    body = {"name": "y", "channel": "nowhere", "kinds": ["overdue"]}
    errors = admin_api.post("/api/v1/alert-rules/", body, format="json").json()["errors"]
    assert errors["channel"] == ["There is no channel 'nowhere'."]
    assert errors["kinds.0"][0].startswith("'overdue' is no kind; there are run_failed, ")


def test_viewers_and_operators_read_and_change_nothing(
    api: APIClient, viewer_api: APIClient, admin_api: APIClient
) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    for client in (api, viewer_api):
        assert client.get("/api/v1/channels/").status_code == 200
        assert client.post("/api/v1/channels/", {}, format="json").status_code == 403
        assert client.post("/api/v1/channels/hook/test/").status_code == 403
        assert client.delete("/api/v1/channels/hook/").status_code == 403


@pytest.mark.parametrize("name", ["a/b", "a\nb", "a\x85b", "a\x7f", ""])
def test_a_name_that_is_no_part_of_an_address_is_refused(admin_api: APIClient, name: str) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    for address, body in (("channels", HOOK), ("alert-rules", {"channel": "hook"})):
        answer = admin_api.post(f"/api/v1/{address}/", body | {"name": name}, format="json")
        assert answer.status_code == 400
        assert list(answer.json()["errors"]) == ["name"]


def test_a_change_of_nothing_leaves_no_trace(admin_api: APIClient) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    admin_api.post("/api/v1/alert-rules/", {"name": "x", "channel": "hook"}, format="json")
    Channel.objects.update(failures=3)
    before = AuditEntry.objects.count()
    for address in ("channels/hook", "alert-rules/x"):
        assert admin_api.patch(f"/api/v1/{address}/", {}, format="json").status_code == 200
    assert AuditEntry.objects.count() == before
    assert Channel.objects.get().failures == 3


def test_a_paused_channel_sends_no_test_message(admin_api: APIClient) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    admin_api.patch("/api/v1/channels/hook/", {"active": False}, format="json")
    assert admin_api.post("/api/v1/channels/hook/test/").status_code == 409
    assert not Delivery.objects.exists()


def test_a_nul_character_names_nothing(admin_api: APIClient) -> None:
    answer = admin_api.get("/api/v1/events/?asset=%00")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["asset"])
    assert admin_api.get("/api/v1/channels/%00/").status_code == 404
    assert admin_api.get("/api/v1/alert-rules/%00/").status_code == 404


def test_names_that_are_taken_meanwhile_are_refused(
    admin_api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"name": "x", "channel": "hook"}
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    admin_api.post("/api/v1/alert-rules/", fields, format="json")
    # The look before the write finds nothing, as while another transaction is under way.
    monkeypatch.setattr("django.db.models.query.QuerySet.exists", lambda _: False)
    for address, body in (("channels", HOOK), ("alert-rules", fields)):
        answer = admin_api.post(f"/api/v1/{address}/", body, format="json")
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["name"])

"""Channels, rules and deliveries through the API."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from accounts_app.models import AuditEntry, User
from slicewise_server.alerts.models import Channel, Delivery

HOOK = {"name": "hook", "kind": "webhook", "address": "https://hooks.example/T0/s3cret"}


@pytest.fixture
def admin_api(admin: User) -> APIClient:
    client = APIClient(raise_request_exception=False)
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


def test_viewers_and_operators_read_and_change_nothing(
    api: APIClient, viewer_api: APIClient, admin_api: APIClient
) -> None:
    admin_api.post("/api/v1/channels/", HOOK, format="json")
    for client in (api, viewer_api):
        assert client.get("/api/v1/channels/").status_code == 200
        assert client.post("/api/v1/channels/", {}, format="json").status_code == 403
        assert client.post("/api/v1/channels/hook/test/").status_code == 403
        assert client.delete("/api/v1/channels/hook/").status_code == 403

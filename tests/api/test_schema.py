"""The API's description."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from drf_spectacular.validation import validate_schema
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from accounts_app.models import User
from slicewise_server.api_docs import grouped, operations


@pytest.fixture
def schema(api: APIClient) -> dict:  # type: ignore[type-arg]
    response = api.get("/api/v1/schema/?format=json")
    assert response.status_code == 200
    return response.json()  # type: ignore[no-any-return]


def test_the_description_is_valid_openapi_3_1(schema: dict) -> None:  # type: ignore[type-arg]
    assert schema["openapi"].startswith("3.1")
    validate_schema(schema)  # type: ignore[no-untyped-call]


def test_generation_gives_no_warning(tmp_path: Path) -> None:
    call_command("spectacular", "--fail-on-warn", "--file", str(tmp_path / "schema.yml"))


def test_the_page_and_the_document_name_enumerations_by_words(api: APIClient, olga: User) -> None:
    """A part of a hash in a name changes with the values, and generated clients with the name."""
    client = Client()
    client.force_login(olga)
    client.get("/api/docs/")  # a process that generates the page first
    schemas = api.get("/api/v1/schema/?format=json").json()["components"]["schemas"]
    enumerations = {name for name, schema in schemas.items() if "enum" in schema}
    assert {
        "RunState", "BackfillState", "BackfillPartitionState", "SkipReason", "EventKind",
        "ChannelKind", "HealthState",
    } <= enumerations  # fmt: skip
    assert not [name for name in enumerations if re.search(r"[0-9]", name)]


def test_it_has_every_address(schema: dict) -> None:  # type: ignore[type-arg]
    assert set(schema["paths"]) == {
        f"/api/v1/{path}"
        for path in (
            "asset-graph/", "asset-graph/states/",
            "assets/", "assets/{name}/", "assets/{name}/partitions/", "assets/{name}/materialize/",
            "assets/{name}/partitions/verify/", "assets/{name}/partitions/forget/",
            "assets/{name}/partitions/orphans/", "assets/{name}/partitions/orphans/remove/",
            "assets/{name}/events/", "assets/{name}/ticks/",
            "assets/{name}/runtime-partitions/", "assets/{name}/runtime-partitions/remove/",
            "assets/{name}/pause/",
            "assets/{name}/unpause/",
            "runs/", "runs/{id}/", "runs/{id}/log/", "runs/{id}/cancel/", "runs/{id}/retry/",
            "runs/{id}/partitions/", "runs/{id}/rerun/", "runs/retry/", "gateways/", "backfills/",
            "backfills/preview/", "backfills/bulk/", "backfills/{id}/",
            "backfills/{id}/partitions/", "backfills/{id}/outcome/", "backfills/{id}/cancel/",
            "backfills/{id}/pause/", "backfills/{id}/resume/", "backfills/{id}/retry-failed/",
            "backfills/{id}/clone/", "health/", "tokens/",
            "events/", "channels/", "channels/{name}/", "channels/{name}/test/", "alert-rules/",
            "alert-rules/{name}/", "deliveries/", "deliveries/{delivery_id}/resend/",
            "lineage/",
        )
    }  # fmt: skip


def test_writes_have_examples(schema: dict) -> None:  # type: ignore[type-arg]
    for path in (
        "backfills/", "assets/{name}/materialize/", "assets/{name}/events/", "tokens/",
        "runs/retry/", "runs/{id}/retry/", "backfills/preview/", "backfills/bulk/",
        "backfills/{id}/retry-failed/", "backfills/{id}/clone/", "lineage/",
    ):  # fmt: skip
        content = schema["paths"][f"/api/v1/{path}"]["post"]["requestBody"]["content"]
        assert content["application/json"]["examples"]


def test_examples_have_the_form_that_the_document_describes(schema: dict) -> None:  # type: ignore[type-arg]
    components = {"components": schema["components"]}
    for path, method, content in _contents(schema):
        validator = Draft202012Validator(content["schema"] | components)
        for name, example in content.get("examples", {}).items():
            errors = [error.message for error in validator.iter_errors(example["value"])]
            assert not errors, (path, method, name)


def test_answers_that_follow_from_an_operation_are_described(schema: dict) -> None:  # type: ignore[type-arg]
    def statuses(path: str, method: str) -> list[str]:
        return list(schema["paths"][f"/api/v1/{path}"][method]["responses"])

    of_any_write = ["400", "401", "403", "404", "409", "413", "415", "422"]
    assert statuses("runs/{id}/rerun/", "post") == ["201", *of_any_write, "default"]
    assert statuses("runs/{id}/", "get") == ["200", "304", "401", "404", "default"]
    assert statuses("channels/", "get") == ["200", "400", "401", "default"]
    assert statuses("health/", "get") == ["200", "503", "default"]
    assert statuses("tokens/", "post") == ["201", "400", "401", "413", "415", "429", "default"]
    answers = schema["paths"]["/api/v1/runs/{id}/"]["get"]["responses"]
    assert "content" not in answers["304"]
    assert list(answers["200"]["headers"]) == list(answers["304"]["headers"]) == ["ETag"]


def test_an_unknown_field_is_refused_by_the_document_and_by_the_server(
    schema: dict,  # type: ignore[type-arg]
    api: APIClient,
) -> None:
    content = schema["paths"]["/api/v1/backfills/"]["post"]["requestBody"]["content"]
    described = content["application/json"]["schema"] | {"components": schema["components"]}
    validator = Draft202012Validator(described)
    body: dict[str, object] = {"asset": "orders", "strategy": None}
    assert validator.is_valid(body)
    assert not validator.is_valid(body | {"strateggy": "range"})
    answer = api.post("/api/v1/backfills/", body | {"strateggy": "range"}, format="json")
    assert list(answer.json()["errors"]) == ["strateggy"]


def _contents(schema: dict) -> Iterator[tuple[str, str, dict]]:  # type: ignore[type-arg]
    """Yield the address, the method and the content of each body of a request or an answer."""
    for path, operations_of_path in schema["paths"].items():
        for method, operation in operations_of_path.items():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for body in bodies:
                for content in body.get("content", {}).values():
                    yield path, method, content


def test_each_operation_is_in_one_group_of_the_page(schema: dict) -> None:  # type: ignore[type-arg]
    of_document = [operation["operationId"] for operation in operations(schema)]
    groups = grouped(list(operations(schema))).values()
    of_page = [operation["operationId"] for group in groups for operation in group]
    assert sorted(of_page) == sorted(of_document)


def test_people_read_it_as_a_page(olga: User) -> None:
    client = Client()
    assert client.get("/api/docs/").status_code == 302
    client.force_login(olga)
    page = client.get("/api/docs/")
    assert page.status_code == 200
    assert "/api/v1/backfills/preview/" in page.content.decode()
    assert "card-table as-cards" in page.content.decode()
    assert "`" not in page.content.decode()
    assert "<code>next</code>" in page.content.decode()

"""Pages of partitions that runs find, and of assets that are made together."""

import pytest
from django.test import Client

from accounts_app.models import User
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, Run
from tests.execution.conftest import alice, gateway, sent
from tests.factories import DAILY_2013, asset, together
from tests.pages.markup import page_at
from tests.runtime_keys import CUSTOMERS, Position, discover, discovering

__all__ = ["alice", "gateway", "sent"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def models(db: None) -> Asset:
    return asset("models", CUSTOMERS)


def test_discovered_partitions_are_in_the_grid(
    browser: Client, models: Asset, alice: User, gateway: Gateway
) -> None:
    asset("prediction", CUSTOMERS)
    assert "acme" not in page_at(browser, "/assets/prediction/")
    discover(models, alice, gateway, "acme", Position(1, 2))
    for name in ("models", "prediction"):
        page = page_at(browser, f"/assets/{name}/")
        assert "acme" in page
        assert "1 right, 2 up" in page
    assert "of 2 expected" in page_at(browser, "/assets/prediction/")
    assert "Missing" in page_at(browser, "/assets/prediction/partitions/acme/")
    assert browser.get("/assets/prediction/partitions/globex/").status_code == 404


def test_a_run_that_looks_for_partitions_is_asked_for_by_an_empty_selection(
    browser: Client, models: Asset
) -> None:
    assert "let the run discover partitions" in page_at(browser, "/assets/models/materialize/")
    answer = browser.post("/assets/models/materialize/", {"selection": ""})
    assert answer.status_code == 302
    page = page_at(browser, f"/runs/{Run.objects.get().pk}/")
    assert "Determined at run time." in page
    assert "unpartitioned" not in page.lower()


def test_a_run_shows_what_it_has_found(
    browser: Client, models: Asset, alice: User, gateway: Gateway
) -> None:
    page = page_at(browser, f"/runs/{discover(models, alice, gateway, 'acme').pk}/")
    assert "/assets/models/partitions/acme/" in page
    assert "unpartitioned" not in page.lower()
    page = page_at(browser, f"/runs/{discover(models, alice, gateway).pk}/")
    assert "No partitions found." in page


def test_the_api_tells_what_was_found(
    browser: Client, models: Asset, alice: User, gateway: Gateway
) -> None:
    run = discover(models, alice, gateway, "acme", "apex", "globex")
    lines = browser.get("/api/v1/assets/models/partitions/?selection=a*").json()["results"]
    assert [(line["key"], line["state"]) for line in lines] == [
        ("acme", "materialized"),
        ("apex", "materialized"),
    ]
    body = browser.get("/api/v1/assets/models/").json()
    assert (body["expected"], body["counts"], body["in_flight"]) == (3, {"materialized": 3}, 0)
    assert browser.get(f"/api/v1/runs/{run.pk}/").json()["partitions"] == {"succeeded": 3}
    discovering(models, alice, gateway)
    assert browser.get("/api/v1/assets/models/").json()["in_flight"] == 0


def test_pages_name_the_other_outlets_of_a_function(browser: Client, alice: User) -> None:
    train, _ = together("split", ["train", "test"], DAILY_2013)
    group = materialize(MaterializeRequest(asset=train, selection="2013-01-01"), user=alice)
    run = group.runs.get()
    assert "Multi-asset with" in page_at(browser, "/assets/test/")
    assert "Also materializes train." in page_at(browser, "/assets/test/materialize/")
    assert f"/runs/{run.pk}/" in page_at(browser, "/assets/test/?tab=runs")
    page = page_at(browser, f"/runs/{run.pk}/")
    assert "/assets/train/partitions/2013-01-01/" in page
    assert "/assets/test/partitions/2013-01-01/" in page
    body = browser.get("/api/v1/assets/test/").json()
    assert (body["materialized_with"], body["in_flight"]) == (["train"], 1)

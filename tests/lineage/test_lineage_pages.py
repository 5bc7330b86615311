"""The page of lineage, and the edges of other tools on the page of an asset."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset, Gateway, RunAttempt
from slicewise_server.lineage.models import (
    LineageEdge,
    LineageEvent,
    LineageReceiver,
    ReceivedWrite,
)
from slicewise_server.lineage.outbox import write_starts
from slicewise_server.lineage.posting import send_due
from slicewise_server.metrics.scheduling import collect_outboxes
from tests.alerts.conftest import Receiver
from tests.attempts import begun, publish
from tests.factories import DAILY_2013, asset, external, together

pytestmark = pytest.mark.django_db
PAGE = "/lineage/"


@pytest.fixture
def browser(vera: User) -> Client:
    client = Client()
    client.force_login(vera, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def flights(db: None) -> Asset:
    return asset("flights", DAILY_2013)


def text_of(browser: Client, address: str = PAGE) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def add_edge(upstream: Asset | None, downstream: Asset | None) -> None:
    now = timezone.now()
    LineageEdge.objects.create(
        digest="1", upstream=upstream, upstream_namespace="kafka://broker", upstream_name="clicks",
        downstream=downstream, downstream_namespace="bi://tool", downstream_name="dashboard",
        job_namespace="imports", job_name="nightly", last_run_id=UUID(int=1),
        first_seen_at=now, last_seen_at=now,
    )  # fmt: skip


def test_an_empty_page_says_how_to_begin(browser: Client) -> None:
    for name in ("OPENLINEAGE_URL", "OPENLINEAGE__TRANSPORT", "OPENLINEAGE_CONFIG"):
        assert name in text_of(browser)
    assert "No events are recorded until a receiver is set." in text_of(browser)
    for tab in ("received", "edges"):
        assert "POST /api/v1/lineage/" in text_of(browser, f"{PAGE}?tab={tab}")
    assert text_of(browser, f"{PAGE}?tab=nonsense&state=nonsense&page=-1")


def test_a_page_of_disabled_lineage_names_the_variable(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    text = text_of(browser)
    assert "OPENLINEAGE_DISABLED is true." in text
    assert "OPENLINEAGE_URL" not in text


@pytest.mark.usefixtures("lineage")
def test_without_events_a_page_with_a_receiver_says_when_events_come(browser: Client) -> None:
    text = text_of(browser)
    assert "Each attempt of a run adds a start and an end." in text
    assert "No events are recorded" not in text


def test_events_show_what_waits_and_what_the_receiver_answered(
    lineage: Receiver, browser: Client, flights: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = begun(flights, alice, gateway)
    write_starts()
    text = text_of(browser)
    assert "card-table as-cards" in text
    for expected in ("Ready", "1\n", "START", "flights", f"Run {attempt.run.pk}", "Waiting"):
        assert expected in text
    now = timezone.now()
    LineageReceiver.objects.create(pk=1, failures=2, error="at postgres://a:s3cret@h", retry_at=now)
    LineageEvent.objects.update(refusals=1, error="The receiver refused", not_before=now)
    text = text_of(browser)
    assert "Failing" in text
    assert "s3cret" not in text
    assert "The receiver refused" in text
    assert "flights" in text_of(browser, f"{PAGE}?state=refused")
    assert "Run " not in text_of(browser, f"{PAGE}?state=sent")
    LineageEvent.objects.update(sent_at=now + timedelta(seconds=1))
    assert "Run " in text_of(browser, f"{PAGE}?state=sent")


def test_the_age_of_the_oldest_waiting_event_and_the_receiver_are_told(
    lineage: Receiver, browser: Client, flights: Asset, alice: User, gateway: Gateway
) -> None:
    begun(flights, alice, gateway)
    write_starts()
    text = " ".join(text_of(browser).split())
    host = lineage.address.removeprefix("http://").split("/")[0]
    assert f'receiver <span class="key">{host}</span>' in text
    assert "the oldest since <time" in text
    assert "Ready" in text
    version = browser.get(PAGE).context["version"]
    LineageEvent.objects.update(at=timezone.now() - timedelta(minutes=6))
    assert browser.get(f"{PAGE}listed/", {"version": version}).status_code == 200
    text = text_of(browser)
    assert "Ready" not in text
    assert "<code>worker-bulk</code>" in text
    # A refused event waits for its next try.
    LineageEvent.objects.update(not_before=timezone.now())
    assert "Ready" in text_of(browser)


def test_a_start_that_nobody_writes_is_late(
    lineage: Receiver, browser: Client, flights: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = begun(flights, alice, gateway)
    text = " ".join(text_of(browser).split())
    assert "1 event waiting, the oldest since <time" in text
    assert "Ready" in text
    RunAttempt.objects.filter(pk=attempt.row.pk).update(
        started_at=timezone.now() - timedelta(minutes=6)
    )
    assert "<code>worker-bulk</code>" in text_of(browser)
    (age,) = (
        sample.value
        for family in collect_outboxes()
        for sample in family.samples
        if sample.name == "slicewise_outbox_oldest_entry_age_seconds"
        and sample.labels["outbox"] == "lineage"
    )
    assert 360 <= age < 600
    publish(attempt)
    send_due()
    assert "Ready" in text_of(browser)
    assert "0 events waiting" in " ".join(text_of(browser).split())


def test_names_of_facets_are_set_as_code(browser: Client) -> None:
    ReceivedWrite.objects.create(
        asset=external("stock"), run_id=UUID(int=1), selection="", selection_digest="",
        job_name="nightly", job_namespace="imports", producer="urn:x",
        problem="Add the facet `subset` <b>.",
    )  # fmt: skip
    text = text_of(browser, f"{PAGE}?tab=received")
    assert "Add the facet <code>subset</code> &lt;b&gt;." in text


def test_events_of_a_function_with_several_assets_name_all_of_them(
    lineage: Receiver, browser: Client, alice: User, gateway: Gateway
) -> None:
    train, _, gone = together("split", ["train", "validate", "gone"], DAILY_2013)
    Asset.objects.filter(pk=gone.pk).update(active=False)
    begun(train, alice, gateway)
    write_starts()
    text = text_of(browser)
    assert "/assets/train/" in text
    assert "/assets/validate/" in text
    assert "/assets/gone/" not in text


def test_an_unchanged_page_is_not_sent_again(
    lineage: Receiver, browser: Client, flights: Asset, alice: User, gateway: Gateway
) -> None:
    begun(flights, alice, gateway)
    write_starts()
    version = browser.get(PAGE).context["version"]
    assert browser.get(f"{PAGE}listed/", {"version": version}).status_code == 204
    LineageEvent.objects.update(sent_at=timezone.now())
    assert browser.get(f"{PAGE}listed/", {"version": version}).status_code == 200


def test_received_writes_and_edges_are_listed(browser: Client, flights: Asset) -> None:
    stock = external("stock")
    ReceivedWrite.objects.create(
        asset=stock, run_id=UUID(int=1), selection="", selection_digest="", job_name="nightly",
        job_namespace="imports", producer="urn:x", problem="names no partitions",
    )  # fmt: skip
    add_edge(None, stock)
    received = text_of(browser, f"{PAGE}?tab=received")
    assert "card-table as-cards" in received
    for expected in ("stock", "nightly", "Not counted", "names no partitions"):
        assert expected in received
    edges = text_of(browser, f"{PAGE}?tab=edges")
    assert "card-table as-cards" in edges
    for expected in ("clicks", "stock", "nightly"):
        assert expected in edges
    assert "clicks" in text_of(browser, "/lineage/assets/stock/")
    assert "clicks" not in text_of(browser, "/lineage/assets/flights/")
    assert "/lineage/assets/stock/" in text_of(browser, "/assets/stock/?tab=neighbours")
    assert browser.get("/lineage/assets/nowhere/").status_code == 404


@pytest.mark.parametrize("address", [PAGE, f"{PAGE}?tab=received", f"{PAGE}?tab=edges"])
def test_a_page_takes_few_statements(
    address: str, browser: Client, django_assert_max_num_queries: object
) -> None:
    with django_assert_max_num_queries(12):  # type: ignore[operator]
        browser.get(address)

"""The admin: to look at by role, written through services alone."""

import re
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts_app.models import AuditEntry, Grant, User
from accounts_app.policy import Action, Role, may_for_assets
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Run, RunAttempt
from backfills_app.services import request_from_text
from tests import factories
from tests.clients import browser_of
from tests.created_backfills import create_backfill

SHOWN = [
    "assets_app.asset", "assets_app.bundle", "assets_app.gateway", "assets_app.materialization",
    "assets_app.run", "backfills_app.backfill", "partitions_app.partitiondefinition",
    "accounts_app.auditentry", "accounts_app.user", "auth.group", "knox.authtoken",
    "accounts_app.grant",
]  # fmt: skip
SERVICE_OWNED = SHOWN[:8]


@pytest.fixture
def ada(db: None) -> User:
    return factories.person("ada", Role.ADMIN, is_staff=True)


@pytest.fixture
def client(ada: User) -> Client:
    return browser_of(ada)


def test_headings_name_the_content_of_the_tables(client: Client) -> None:
    page = client.get("/admin/").content.decode()
    headings = re.findall(r'<a href="/admin/(\w+)/" class="section"[^>]*>\s*(.+?)\s*</a>', page)
    assert dict(headings)["axes"] == "Sign-ins"
    assert dict(headings)["knox"] == "API tokens"
    assert not {"Axes", "Knox"} & set(dict(headings).values())


@pytest.fixture
def carriers(db: None) -> Asset:
    return factories.asset("carriers", uri="postgres://bob:secret@host:5432/db/schema/table")


@pytest.fixture
def run(carriers: Asset, ada: User) -> Run:
    return materialize(MaterializeRequest(asset=carriers), user=ada).runs.get()


def page(name: str, view: str = "changelist", *args: object) -> str:
    return reverse(f"admin:{name.replace('.', '_')}_{view}", args=args)


def test_the_dates_of_an_account_are_no_fields_of_a_form(client: Client, ada: User) -> None:
    form = client.get(page("accounts_app.user", "change", ada.pk)).context["adminform"].form
    assert "username" in form.fields
    assert not {"last_login", "date_joined"} & form.fields.keys()


def test_a_filter_and_a_column_of_related_rows_have_names(client: Client, run: Run) -> None:
    assets = client.get(page("assets_app.asset")).content.decode()
    assert re.search(r'<a href="\?group=">\s*None\s*</a>|<a href="\?group=">None</a>', assets)
    attempts = client.get(page("assets_app.run", "change", run.pk)).content.decode()
    assert not re.search(r"<th[^>]*>\s*</th>", attempts)


def test_everything_is_registered() -> None:
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert set(SHOWN) <= registered


@pytest.mark.parametrize("name", ["index", *SHOWN])
def test_a_browser_is_told_where_the_icon_is(client: Client, name: str) -> None:
    address = reverse("admin:index") if name == "index" else page(name)
    for answer in (client.get(address), Client().get("/admin/login/")):
        assert re.search(
            r'<link rel="icon" href="/static/icon\.\w{12}\.svg"', answer.content.decode()
        )


def test_the_admin_site_has_the_look_and_the_theme_of_the_pages(client: Client) -> None:
    for answer in (client.get("/admin/"), Client().get("/admin/login/")):
        page = answer.content.decode()
        assert re.search(r'<link rel="stylesheet" href="/static/admin_site\.\w{12}\.css">', page)
        assert re.findall(r'<script src="/static/([^"]*theme)\.', page) == ["theme"]
        assert "data-theme-switch" in page
        assert 'href="/" title="Back to Slicewise"' in page


@pytest.mark.parametrize("name", SHOWN)
def test_lists_open_and_search(client: Client, run: Run, name: str) -> None:
    assert client.get(page(name)).status_code == 200
    assert client.get(page(name), {"q": "carriers"}).status_code == 200
    # A list without a search shows all rows, whatever is searched for.
    missed = client.get(page(name), {"q": "no such row"})
    assert missed.context["cl"].result_count == 0


@pytest.mark.parametrize("name", SERVICE_OWNED)
def test_rows_owned_by_a_service_are_neither_added_nor_deleted(
    client: Client, run: Run, name: str
) -> None:
    assert client.get(page(name, "add")).status_code == 403


def test_details_open_and_cannot_be_changed(client: Client, run: Run, carriers: Asset) -> None:
    asset = client.get(page("assets_app.asset", "change", carriers.pk))
    assert asset.status_code == 200
    assert "secret" not in asset.content.decode()
    assert client.get(page("assets_app.run", "change", run.pk)).status_code == 200
    bundle = page("assets_app.bundle", "change", carriers.bundle_id)
    assert client.get(bundle).status_code == 200
    assert client.post(bundle, {"name": "other"}).status_code == 403


def test_a_run_is_canceled_through_the_service(client: Client, run: Run) -> None:
    act = {"action": "cancel", "_selected_action": [run.pk]}
    client.post(page("assets_app.run"), act)
    run.refresh_from_db()
    assert run.state == "canceled"
    assert AuditEntry.objects.filter(action="cancel", subject=str(run.pk)).exists()
    again = client.post(page("assets_app.run"), act, follow=True)
    assert "ended already" in again.content.decode()


def test_a_backfill_is_controlled_through_the_services(client: Client, ada: User) -> None:
    factories.asset("raw_flights", factories.DAILY_2013)
    request = request_from_text("raw_flights", "2013-01-01", "2013-01-03")
    backfill = create_backfill(request, user=ada)
    detail = page("backfills_app.backfill", "change", backfill.pk)
    assert client.get(detail).status_code == 200
    listed = page("backfills_app.backfill")
    for search in ("raw_flights", "ada", "2013-01", "nothing"):
        assert client.get(listed, {"q": search}).status_code == 200
    for action, message in (
        ("pause", "is paused."), ("pause", "is paused already"), ("resume", "is creating."),
        ("retry", "has no partitions to retry"), ("delete", "Only a backfill that has ended"),
        ("cancel", "is canceled."), ("delete", "is deleted."),
    ):  # fmt: skip
        act = {"action": action, "_selected_action": [backfill.pk]}
        assert message in client.post(listed, act, follow=True).content.decode()
    backfill.refresh_from_db()
    assert (backfill.state, backfill.deleted) == ("canceled", True)
    trail = AuditEntry.objects.filter(subject_type="backfill").order_by("id")
    actions = ["create", "pause", "resume", "cancel", "delete"]
    assert list(trail.values_list("action", flat=True)) == actions


def test_an_asset_without_a_schedule_is_not_paused(client: Client, carriers: Asset) -> None:
    act = {"action": "pause", "_selected_action": [carriers.pk]}
    answer = client.post(page("assets_app.asset"), act, follow=True)
    assert "Not paused: carriers (no schedule)." in answer.content.decode()
    carriers.refresh_from_db()
    assert not carriers.paused


def test_a_viewer_on_the_staff_looks_and_has_no_actions(run: Run) -> None:
    client = browser_of(factories.person("vera", Role.VIEWER, is_staff=True))
    assert client.get(page("assets_app.run")).status_code == 200
    client.post(page("assets_app.run"), {"action": "cancel", "_selected_action": [run.pk]})
    run.refresh_from_db()
    assert run.state == "queued"
    assert client.get(page("accounts_app.user")).status_code == 403


def test_changes_to_people_are_audited(client: Client, ada: User) -> None:
    added = client.post(page("auth.group", "add"), {"name": "night shift", "permissions": []})
    assert added.status_code == 302
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.subject) == (ada, "create", "night shift")


def test_a_permission_on_an_asset_is_granted_audited_and_taken_back(
    client: Client, ada: User, carriers: Asset
) -> None:
    vera = factories.person("vera", Role.VIEWER)
    typed = {"permission": "backfill", "person": vera.pk, "asset": "carriers", "asset_group": ""}
    assert client.post(page("accounts_app.grant", "add"), typed).status_code == 302
    assert may_for_assets(vera, Action.BACKFILL, [carriers])
    grant = Grant.objects.get()
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == (ada, "create")
    assert entry.subject == "vera: backfill carriers"
    assert client.get(page("accounts_app.grant"), {"q": "vera"}).status_code == 200
    client.post(page("accounts_app.grant", "delete", grant.pk), {"post": "yes"})
    assert not may_for_assets(vera, Action.BACKFILL, [carriers])
    assert AuditEntry.objects.filter(action="delete", subject=entry.subject).exists()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"asset": "carier"}, "There is no asset"),
        ({"asset_group": "fleet"}, "No asset is in a group"),
        ({}, "Name one asset or one group of assets."),
        ({"asset": "carriers", "people": True}, "Name one person or one group of people."),
    ],
)
def test_a_grant_that_would_reach_nobody_or_nothing_is_refused_with_a_sentence(
    client: Client, ada: User, carriers: Asset, typed: dict[str, object], message: str
) -> None:
    people = {"people": Group.objects.get(name="viewer").pk} if typed.pop("people", None) else {}
    answer = client.post(
        page("accounts_app.grant", "add"),
        {"permission": "backfill", "person": ada.pk} | typed | people,
    )
    assert answer.status_code == 200
    assert message in answer.content.decode()
    assert not Grant.objects.exists()


def test_only_admins_grant(carriers: Asset) -> None:
    client = browser_of(factories.person("edna", Role.EDITOR, is_staff=True))
    assert client.get(page("accounts_app.grant")).status_code == 403
    assert client.get(page("accounts_app.grant", "add")).status_code == 403


def test_the_staff_controls_the_backfills_that_were_granted(ada: User) -> None:
    factories.asset("raw_flights", factories.DAILY_2013)
    request = request_from_text("raw_flights", "2013-01-01", "2013-01-03")
    backfill = create_backfill(request, user=ada)
    vera, client = factories.person("vera", Role.VIEWER, is_staff=True), Client()
    client.force_login(vera)
    act = {"action": "pause", "_selected_action": [backfill.pk]}
    client.post(page("backfills_app.backfill"), act)
    backfill.refresh_from_db()
    assert backfill.state == "creating"
    Grant.objects.create(person=vera, asset="weather")
    text = client.post(page("backfills_app.backfill"), act, follow=True).content.decode()
    assert "era may not backfill raw_flights" in text
    Grant.objects.create(person=vera, asset="raw_flights")
    client.post(page("backfills_app.backfill"), act)
    backfill.refresh_from_db()
    assert backfill.state == "paused"


def test_the_admin_site_calls_the_processes_that_execute_runs_workers(
    client: Client, run: Run
) -> None:
    RunAttempt.objects.create(run=run, number=1, token=uuid4(), started_at=timezone.now())
    opened_run = page("assets_app.run", "change", run.pk)
    for address in (reverse("admin:index"), page("assets_app.gateway"), opened_run):
        text = re.sub(r"<[^>]*>", " ", client.get(address).content.decode())
        assert re.search(r"\bworkers?\b", text, re.IGNORECASE), address
        assert not re.search(r"\bgateways?\b", text, re.IGNORECASE), address


def test_a_backfill_is_described_in_words_of_the_pages(client: Client, ada: User) -> None:
    factories.asset("raw_flights", factories.DAILY_2013)
    request = request_from_text("raw_flights", "2013-01-01", "2013-01-03")
    backfill = create_backfill(request, user=ada)
    text = client.get(page("backfills_app.backfill", "change", backfill.pk)).content.decode()
    labels = {label.strip(": \n") for label in re.findall(r"<label>([^<]*)</label>", text)}
    assert {"Partitions", "Partitions to run", "Definition file", "Run granularity"} <= labels
    assert not {"Logical dates", "Relative fileloc", "Existing"} & labels
    assert "one run per partition" in text
    assert "&quot;partition&quot;" not in text
    rows = re.findall(
        r'<td class="field-asset" data-label="Asset">\s*<p>(?:<a[^>]*>)?([^<]*)', text
    )
    assert rows == ["raw_flights"]


def test_times_of_the_audit_trail_have_seconds(client: Client, run: Run) -> None:
    entry = AuditEntry.objects.get(action="materialize", subject=run.asset.name)
    text = client.get(page("accounts_app.auditentry")).content.decode()
    assert f"{entry.at:%Y-%m-%d %H:%M:%S}</a>" in text


def test_fingerprints_are_short_in_the_list_of_partition_definitions(client: Client) -> None:
    definition = factories.asset("raw_flights", factories.DAILY_2013).partition_definition
    assert definition
    text = client.get(page("partitions_app.partitiondefinition")).content.decode()
    assert definition.fingerprint[:12] in text
    assert definition.fingerprint not in text


def test_values_of_related_rows_are_labelled_for_phones(client: Client, run: Run) -> None:
    now = timezone.now()
    RunAttempt.objects.create(run=run, number=1, token=uuid4(), started_at=now)
    text = client.get(page("assets_app.run", "change", run.pk)).content.decode()
    assert '<td class="field-started_at" data-label="Started at">' in text

"""Passwords in URIs are for the function alone: no page, answer or admin shows a password."""

import pytest
from django.test import Client

from accounts_app.models import User
from assets_app.models import ProducerVersion, RunState
from backfills_app.models import Backfill
from slicewise import normalize_uri
from tests.factories import DAILY_2013, asset
from tests.pages.markup import compact, page_at
from tests.pages.run_records import recorded_run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "uri",
    [
        "postgres://bob:s3cret@host/db/schema/table",
        "jdbc:postgresql://bob:s3cret@host/db",
        "x-mine://bob:s3/cret@host/db",
        "mysql://host/db/table?password=s3cret",
    ],
)
def test_neither_pages_nor_api_nor_admin_show_a_password(browser: Client, uri: str) -> None:
    User.objects.filter(username="vera").update(is_staff=True)
    # As an earlier version stored it, with the canonical form as written.
    for canonical in (uri, normalize_uri(uri)):
        secret_asset = asset(f"a{len(canonical)}", DAILY_2013, uri=uri, canonical_uri=canonical)
        ProducerVersion.objects.update(source=f'@asset(uri="{uri}")\ndef kept(): ...')
        form = {"asset": secret_asset.name, "start": "2013-01-01", "end": "2013-01-01"}
        form |= {"max_active_runs": "1", "existing": "all"}
        assert browser.post("/backfills/new/", form).status_code == 302
        backfill = Backfill.objects.latest("pk")
        for address in (
            f"/assets/{secret_asset.name}/?tab=definition",
            f"/backfills/{backfill.pk}/",
            f"/admin/assets_app/asset/{secret_asset.pk}/change/",
            f"/admin/backfills_app/backfill/{backfill.pk}/change/",
            "/api/v1/assets/",
            f"/api/v1/assets/{secret_asset.name}/",
            f"/api/v1/backfills/{backfill.pk}/",
        ):
            answer = browser.get(address)
            assert answer.status_code == 200, address
            text = answer.content.decode()
            assert "cret@" not in text, address
            assert "=s3cret" not in text, address


def test_the_page_of_a_run_shows_params_without_their_secrets(browser: Client) -> None:
    params = {"db_password": "hunter2", "horizon_hours": 24}
    run = recorded_run(asset("forecast", DAILY_2013), RunState.QUEUED, params=params)
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/status/"):
        page = browser.get(address).content.decode()
        assert "hunter2" not in page, address
    assert "horizon_hours=24" in compact(page_at(browser, f"/runs/{run.pk}/"))

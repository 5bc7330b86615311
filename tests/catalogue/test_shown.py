"""The part of an asset's page on the file that declares the asset."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts_app.policy import Role
from assets_app.catalogue.services import retire_bundles, sync_bundle
from assets_app.models import Asset, BundleVersion
from assets_app.models import Bundle as BundleRow
from assets_app.queries.pages import bundle_rows
from tests.catalogue.conftest import Bundle
from tests.clients import browser_of
from tests.factories import person
from tests.pages.markup import compact, page_at

pytestmark = pytest.mark.django_db

HEADER = "from slicewise import *\n"


@pytest.fixture
def browser() -> Client:
    return browser_of(person("vera"))


def page(browser: Client, name: str, tab: str = "") -> str:
    answer = browser.get(f"/assets/{name}/", {"tab": tab} if tab else {})
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_refused_asset_says_so_and_what_stands_beside_it_does_not(
    bundle: Bundle, browser: Client, settings: object
) -> None:
    settings.SPARK_MASTER = ""  # type: ignore[attr-defined]
    fine = "@asset()\ndef fine(): ...\n"
    folder = bundle(a=f"{HEADER}{fine}@asset()\ndef flights(): ...\n")
    sync_bundle("trials", folder)
    (folder / "a.py").write_text(f"{HEADER}{fine}@asset(engine='submit')\ndef flights(): ...\n")
    sync_bundle("trials", folder)
    assert "a.py failed to load" in page(browser, "flights")
    assert "needs a Spark master, and this server has none" in page(browser, "flights")
    assert "a.py" not in page(browser, "fine")
    bundles = compact(browser.get("/bundles/").content.decode())
    assert "1 error<" in bundles
    assert "a.py:4" in bundles


def test_every_asset_of_a_broken_file_says_so_and_stays_in_force(
    bundle: Bundle, browser: Client
) -> None:
    folder = bundle(a=f"{HEADER}raw = Asset('raw')\n@asset()\ndef flights(): ...\n")
    sync_bundle("trials", folder)
    (folder / "a.py").write_text(f"{HEADER}1 / 0\n")
    sync_bundle("trials", folder)
    assert Asset.objects.filter(active=True).count() == 2
    for name in ("raw", "flights"):
        assert "a.py failed to import" in page(browser, name)


def test_a_problem_of_a_uri_is_shown_on_the_page(bundle: Bundle, browser: Client) -> None:
    sync_bundle("trials", bundle(a=f"{HEADER}odd = Asset('odd', uri='s3://')\n"))
    assert "stays as written" in page(browser, "odd", "definition")


def test_pages_say_which_assets_of_broken_files_stay_in_force(
    bundle: Bundle, browser: Client
) -> None:
    folder = bundle(a=f"{HEADER}@asset()\ndef flights(): ...\n", b=f"{HEADER}1 / 0\n")
    sync_bundle("trials", folder)
    overview = compact(browser.get("/").content.decode())
    assert "1 import error; no earlier version is in use." in overview
    page_text = compact(browser.get("/bundles/").content.decode())
    assert "No version of b.py is loaded. Other files are not affected." in page_text
    assert "A corrected file is loaded at the next sync, within 30 seconds" in page_text
    (folder / "a.py").write_text(f"{HEADER}1 / 0\n")
    sync_bundle("trials", folder)
    overview = compact(browser.get("/").content.decode())
    assert "2 import errors; the last good version stays in use." in overview
    page_text = compact(browser.get("/bundles/").content.decode())
    assert 'At their last good version:<a href="/assets/flights/">flights</a>.' in page_text


def test_a_bundle_has_the_time_at_which_the_files_were_first_loaded(
    bundle: Bundle, browser: Client, django_assert_num_queries: Any
) -> None:
    folder = bundle(a=f"{HEADER}1 / 0\n", b=f"{HEADER}raw = Asset('raw')\n")
    for text in ("1 / 0", "", "1 / 0"):
        (folder / "a.py").write_text(f"{HEADER}{text}\n")
        sync_bundle("trials", folder)
    first, _mended = BundleVersion.objects.order_by("pk")
    first_at = first.created_at.isoformat(timespec="milliseconds")
    page_text = compact(browser.get("/bundles/").content.decode())
    assert f'{first.digest[:12]}</span>, first read<time datetime="{first_at}">' in page_text
    assert page_text.count(f'datetime="{first_at}"') == 1
    with django_assert_num_queries(3):
        (row,) = bundle_rows()
    assert row.failed_names == ["a.py"]


def test_broken_bundles_come_first_and_a_sync_that_has_stopped_is_told(
    bundle: Bundle, browser: Client
) -> None:
    sync_bundle("able", bundle(a=f"{HEADER}raw = Asset('raw')\n"))
    sync_bundle("broken", bundle(a=f"{HEADER}1 / 0\n"))
    sync_bundle("former", bundle(a=f"{HEADER}other = Asset('other')\n"))
    retire_bundles({"able", "broken"})
    assert [row.bundle.name for row in bundle_rows()] == ["broken", "able", "former"]
    long_ago = timezone.now() - timedelta(hours=2)
    BundleRow.objects.filter(name="able").update(checked_at=long_ago)
    told = "The last check of all bundles was"
    assert told not in page_at(browser, "/bundles/")
    BundleRow.objects.filter(name="broken").update(checked_at=long_ago)
    page_text = compact(page_at(browser, "/bundles/"))
    assert told in page_text
    assert "<code>beat</code>and<code>worker-bulk</code>run" in page_text


def test_the_admin_site_counts_the_import_errors_of_a_bundle(bundle: Bundle) -> None:
    sync_bundle("trials", bundle(a=f"{HEADER}1 / 0\n"))
    admin = browser_of(person("ada", Role.ADMIN, is_staff=True))
    page_text = admin.get("/admin/assets_app/bundle/").content.decode()
    assert '<td class="field-import_errors">1</td>' in page_text

"""The page of a run that a backfill has replaced: a reason in place of the button to retry."""

from accounts_app.models import User
from assets_app.models import Gateway, RunState
from backfills_app.services import retry_failed
from tests.backfills.backfill_states import Desk
from tests.clients import browser_of
from tests.pages.markup import compact, page_at


def test_the_page_of_a_superseded_run_says_why_the_run_cannot_be_retried(
    alice: User, worker: Gateway
) -> None:
    desk = Desk(alice, worker)
    desk.end_all("2013-01-03")
    failed = desk.backfill.group.runs.get(state=RunState.FAILED)
    browser = browser_of(alice)
    retry = f'href="/runs/{failed.pk}/retry/"'
    page = compact(page_at(browser, f"/runs/{failed.pk}/"))
    assert retry in page
    assert "is superseded" not in page
    retry_failed(desk.backfill, user=alice)
    page = compact(page_at(browser, f"/runs/{failed.pk}/"))
    assert retry not in page
    assert f"Run {failed.pk} is superseded: {desk.backfill.name} has queued" in page
    assert f'href="/runs/{failed.pk}/rerun/"' in page

"""Pages answer nonsense in words: no address and nothing typed ends in an error of the server."""

import pytest
from django.test import Client

from assets_app.models import Asset, Run
from backfills_app.models import Backfill
from tests.factories import DAILY_2013, asset

pytestmark = pytest.mark.django_db
BACKFILL = {
    "asset": "raw_flights", "start": "2013-01-01", "end": "2013-01-31", "description": "",
    "max_active_runs": "3", "strategy": "", "existing": "missing", "params": "",
}  # fmt: skip
UNFIT_PARAMS = {
    "NUL": '{"limit": "\\u0000"}',
    "NUL in a name": '{"\\u0000": 1}',
    "surrogate": '{"limit": "\\ud800"}',
    "NaN": '{"limit": NaN}',
    "infinite": '{"limit": -Infinity}',
    "too large for a float": '{"limit": [1e999]}',
    "deep": '{"limit": ' + "[" * 200 + "]" * 200 + "}",
    "very deep": "[" * 100_000,
    "many digits": '{"limit": ' + "9" * 2000 + "}",
    "very many digits": '{"limit": ' + "9" * 5000 + "}",
    "a list": "[1]",
    "open": "{",
}


@pytest.fixture
def flights() -> Asset:
    return asset("raw_flights", DAILY_2013, params={"limit": 1})


@pytest.mark.parametrize(
    "address",
    [
        "/assets/?q=%00",
        "/assets/?%00=1",
        "/assets/?sort=%00",
        "/assets/%00/",
        "/assets/%00/materialize/",
        "/assets/raw_flights/?at=%00",
        "/assets/raw_flights/partitions/%00/",
        "/assets/raw_flights/partitions/2013-01-01%00/",
        "/runs/?asset=%00",
        "/runs/?state=%00",
        "/runs/?trigger=a%00b",
        "/runs/?group=%00",
        "/backfills/?person=%00",
        "/backfills/?asset=%00",
        "/backfills/?state=%00",
        "/backfills/new/?asset=%00",
        "/sign-in/?next=%00",
        "/admin/assets_app/asset/?q=%00",
        "/%00",
    ],
)
def test_an_address_that_holds_nul_is_refused_in_words(
    browser: Client, flights: Asset, address: str
) -> None:
    answer = browser.get(address)
    assert answer.status_code == 400
    assert "Bad request" in answer.content.decode()


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/runs/99999999999999999999/", 404),
        ("/backfills/99999999999999999999/", 404),
        ("/runs/?group=99999999999999999999", 200),
        ("/runs/?page=99999999999999999999", 200),
        ("/assets/?q=%ff%fe", 200),
        ("/assets/raw_flights/?at=99999-01-01&zoom=day", 200),
        ("/assets/raw_flights/?at=0001-01-01&zoom=year&page=9999", 200),
        ("/assets/raw_flights/partitions/%F0%9F%8D%94/", 404),
        (f"/assets/raw_flights/partitions/{'x' * 3000}/", 404),
        (f"/assets/raw_flights/materialize/?selection={'2013,' * 3000}", 200),
        (f"/backfills/new/?asset=raw_flights&selection={'2013,' * 3000}", 200),
    ],
)
def test_an_address_that_makes_no_sense_is_answered(
    browser: Client, flights: Asset, address: str, status: int
) -> None:
    assert browser.get(address).status_code == status


@pytest.mark.parametrize("page", ["/assets/raw_flights/materialize/", "/backfills/new/"])
@pytest.mark.parametrize(
    "typed",
    [
        *({"params": text} for text in UNFIT_PARAMS.values()),
        {"strategy": "9" * 5000},
        {"strategy": "\0"},
        {"strategy": "\u0663" * 5000},
    ],
    ids=[*UNFIT_PARAMS, "strategy of many digits", "strategy of NUL", "strategy in other digits"],
)
def test_values_that_cannot_be_stored_are_refused_at_their_field(
    browser: Client, flights: Asset, page: str, typed: dict[str, str]
) -> None:
    form = BACKFILL if page == "/backfills/new/" else {"selection": "2013-01-01"}
    answer = browser.post(page, form | typed)
    assert answer.status_code == 400
    assert set(answer.context["form"].errors) == set(typed)
    preview = browser.get(page, form | typed, headers={"hx-request": "true"})
    assert preview.status_code in (200, 400)  # 400 where the address itself holds NUL
    assert not Run.objects.exists()
    assert not Backfill.objects.exists()


@pytest.mark.parametrize(
    "typed",
    [
        {"start": "\0"}, {"end": "2013,\0"}, {"description": "a\0b"}, {"asset": "\0"},
        {"max_active_runs": "9" * 5000}, {"start": "2013-01-01," * 20_000},
    ],
    ids=str,
)  # fmt: skip
def test_the_other_fields_of_a_backfill_are_refused_as_well(
    browser: Client, flights: Asset, typed: dict[str, str]
) -> None:
    answer = browser.post("/backfills/new/", BACKFILL | typed)
    assert answer.status_code == 400
    assert set(typed) <= set(answer.context["form"].errors)


def test_a_selection_of_endless_length_is_refused_at_its_field(
    browser: Client, flights: Asset
) -> None:
    selection = {"selection": "2013-01-01," * 20_000}
    answer = browser.post("/assets/raw_flights/materialize/", selection)
    assert answer.status_code == 400
    assert "at most 10,000 characters" in str(answer.context["form"].errors["selection"])

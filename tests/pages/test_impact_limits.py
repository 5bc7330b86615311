"""The page of the impact where not all assets are followed: numbers are lower bounds."""

import pytest
from django.test import Client

from assets_app.models import AssetDependency
from assets_app.queries import asset_walk
from assets_app.queries import impact as impact_module
from tests.factories import DAILY_2013, asset
from tests.pages.markup import compact, page_at
from tests.partition_records import made

pytestmark = pytest.mark.django_db


def beyond_the_limit(monkeypatch: pytest.MonkeyPatch, *, is_upstream: bool) -> None:
    """Create assets at one side of ``start``, of which ``hidden`` is not shown: ``hidden`` leads
    to ``joined``, ``joined`` to ``behind``, and neither leads to ``apart``.
    """
    monkeypatch.setattr(asset_walk, "_MOST_ASSETS", 3)
    names = ("start", "joined", "behind", "apart", "hidden")
    by_name = {name: asset(name, DAILY_2013) for name in names}
    for name in names:
        made(by_name[name], "2013-03")
    edges = [("start", name) for name in names[1:]]
    for near, far in [*edges, ("hidden", "joined"), ("joined", "behind")]:
        downstream, upstream = (near, far) if is_upstream else (far, near)
        AssetDependency.objects.create(
            upstream=by_name[upstream], downstream=by_name[downstream], inlet=True
        )


def cells_of(text: str, name: str) -> str:
    """Return the markup of the row of an asset, without the name."""
    return text.partition(f'href="/assets/{name}/">{name}</a>')[2].partition("</tr>")[0]


@pytest.mark.parametrize(("is_upstream", "told"), [(False, "2013-03-05"), (True, "1 partition")])
def test_beyond_the_limit_of_assets_the_numbers_of_partitions_are_lower_bounds(
    browser: Client, monkeypatch: pytest.MonkeyPatch, is_upstream: bool, told: str
) -> None:
    beyond_the_limit(monkeypatch, is_upstream=is_upstream)
    text = compact(page_at(browser, "/assets/start/impact/?selection=2013-03-05"))
    assert "1 further asset is not shown" in text
    for name, is_bound, is_beside in (
        ("joined", True, True), ("behind", True, False), ("apart", False, False),
    ):  # fmt: skip
        cells = cells_of(text, name)
        assert told in cells
        assert ("at least 1" in cells) == is_bound
        assert ("and 1 asset not shown" in cells) == is_beside


def test_beyond_the_limit_no_stale_partition_is_not_an_exact_answer(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    beyond_the_limit(monkeypatch, is_upstream=False)
    text = compact(page_at(browser, "/assets/start/impact/?selection=2013-04-05"))
    assert "At least 0" in cells_of(text, "behind")
    assert "None" in cells_of(text, "apart")
    monkeypatch.setattr(impact_module, "_MOST_KEYS", 0)
    text = compact(page_at(browser, "/assets/start/impact/?selection=2013-03-05"))
    assert "about 1" in cells_of(text, "behind")
    assert "up to 1" in cells_of(text, "apart")

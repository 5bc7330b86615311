"""The asset graph in a real browser: keys, pointer, search, folds, the panel, and the address."""

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from django.test import Client
from playwright.sync_api import Locator, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from assets_app.models import Asset, AssetDependency, AssetPartition, RunState
from slicewise import Offset
from tests.browser import PATIENCE_MILLISECONDS, chromium
from tests.factories import DAILY_2013, asset
from tests.page_complaints import PageComplaints
from tests.pages.run_records import recorded_run
from tests.partition_records import made, record

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
GRAPH = "/assets/graph/all/"
# Stops the icons that turn at a time of their animation.
_TURNED = """milliseconds => {
    const turning = document.getAnimations();
    if (!turning.length) throw new Error("nothing turns");
    for (const one of turning) { one.pause(); one.currentTime = milliseconds; }
}"""
# The edges that run behind a node: points of the line inside of a frame.
_HIDDEN_EDGES = """paths => {
    const frames = [...document.querySelectorAll(".nodes .frame")]
        .map(frame => frame.getBoundingClientRect());
    const isHidden = ({ x, y }) => frames.some(frame => (
        x > frame.left + 2 && x < frame.right - 2 && y > frame.top + 2 && y < frame.bottom - 2
    ));
    const pointsOf = path => Array.from({ length: 200 }, (_, at) => (
        path.getPointAtLength(path.getTotalLength() * at / 199).matrixTransform(path.getScreenCTM())
    ));
    return paths.filter(path => pointsOf(path).some(isHidden))
        .map(path => path.previousSibling.textContent);
}"""
_ANSWERED = """() => document.body.addEventListener(
    "htmx:afterRequest", () => { document.body.dataset.answered = "yes"; }
)"""


@pytest.fixture
def page(live_server: LiveServer, vera: User, browser: Client) -> Iterator[Page]:
    """Open Vera's browser, whose session may end; a complaint about a page fails the test."""
    with chromium() as started:
        page = started.new_page(base_url=live_server.url, viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        session = browser.cookies["sessionid"].value
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        complaints = PageComplaints(live_server.url, expected_errors=(401,))
        complaints.listen(page)
        yield page
    complaints.fail_if_any()


def row(*names: str, group: str = "") -> list[Asset]:
    """Create assets, each of which reads the one before."""
    assets = [asset(name, DAILY_2013, group=group) for name in names]
    for upstream, downstream in pairwise(assets):
        AssetDependency.objects.create(upstream=upstream, downstream=downstream, inlet=True)
    return assets


def node(page: Page, name: str) -> Locator:
    """Find the node of an asset or a group by the begin of its spoken name."""
    return page.locator("[data-node]").filter(has=page.locator("title", has_text=name))


def test_a_click_tells_the_state_and_what_becomes_stale(page: Page) -> None:
    raw, clean, _ = row("raw", "clean", "report")
    record(raw, "2013-01", lambda n: "failed" if n < 3 else "materialized")
    made(clean, "2013-01")
    page.goto(GRAPH)
    expect(page.get_by_role("status")).to_have_text("3 assets")
    expect(node(page, "raw").locator(".summary")).to_contain_text("3 failed")
    node(page, "raw").click()
    panel = page.get_by_label("Selected asset")
    expect(panel.get_by_role("heading", name="raw")).to_be_visible()
    expect(panel).to_contain_text("1 downstream (2 in all)")
    panel.get_by_label("Partitions that change").fill("2013-01-30..2013-02-03")
    panel.get_by_role("button", name="Show").click()
    expect(panel).to_contain_text("5 partitions selected")
    expect(panel).to_contain_text("2013-01-30..2013-01-31")
    # The address keeps the selection, and the form starts with the partitions.
    assert page.url.endswith(f"{GRAPH}?selected=raw")
    panel.get_by_role("link", name="Backfill these and downstream").click()
    expect(page.locator("#id_start")).to_have_value("2013-01-30")


def test_the_legend_has_the_states_and_the_marks_of_the_picture(page: Page) -> None:
    raw, clean, report = row("raw", "clean", "report")
    record(raw, "2013", lambda n: "failed" if n < 3 else "materialized")
    page.goto(GRAPH)
    entries = page.locator("#graph-legend li:visible")
    expect(entries).to_have_text(["Failed", "Missing"])
    Asset.objects.filter(pk=clean.pk).update(paused=True)
    AssetDependency.objects.filter(downstream=report).update(inlet=False, scheduling=True)
    page.reload()
    expect(entries).to_have_text(["Failed", "Missing", "Paused", "Dashed edge: trigger only"])


def scale(page: Page) -> float:
    """Return the scale of the picture."""
    transform = page.locator("[data-layer]").get_attribute("transform") or ""
    match = re.search(r"scale\(([\d.]+)\)", transform)
    assert match, transform
    return float(match[1])


def test_edges_have_words_the_picture_is_zoomed_and_a_node_is_materialized(page: Page) -> None:
    _, clean, report = row("raw", "clean", "report")
    AssetDependency.objects.filter(downstream=report).update(
        mapping=Offset(-6, 0).to_json(), scheduling=True
    )
    page.goto(GRAPH)
    expect(page.get_by_role("status")).to_have_text("3 assets")
    whole = scale(page)
    page.get_by_role("button", name="Zoom in").click()
    assert scale(page) == pytest.approx(whole * 1.25)
    page.get_by_role("button", name="Zoom out").click()
    assert scale(page) == pytest.approx(whole)
    node(page, "clean").focus()
    page.keyboard.press("+")
    assert scale(page) == pytest.approx(whole * 1.25)
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert scale(page) == pytest.approx(whole / 1.25)
    page.get_by_role("button", name="Fit").click()
    assert scale(page) == pytest.approx(whole)
    node(page, "clean").click()
    words = page.locator(".words text")
    expect(words.filter(has_text="same partition")).to_be_visible()
    expect(words.filter(has_text="trigger")).to_have_text(re.compile("7 windows, trigger"))
    page.get_by_label("Selected asset").get_by_role("link", name="Materialize").click()
    page.locator("#id_selection").fill("2013-01-01")
    page.locator("main form").get_by_role("button", name="Materialize").click()
    page.wait_for_url(re.compile(r"/runs/\d+/"))
    assert clean.runs.get().selection == "2013-01-01"


def test_the_graph_is_walked_by_keys_alone(page: Page) -> None:
    row("raw", "clean", "report")
    page.goto(GRAPH)
    expect(page.get_by_role("status")).to_have_text("3 assets")
    node(page, "raw").focus()
    page.keyboard.press("ArrowRight")
    expect(node(page, "clean")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(node(page, "report")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press(" ")
    expect(page.get_by_label("Selected asset")).to_contain_text("clean")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Selected asset")).to_be_hidden()
    expect(node(page, "clean")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="clean")).to_be_visible()
    assert page.url.endswith("/assets/clean/")


def test_one_node_alone_is_in_the_tab_order(page: Page) -> None:
    row("raw", "clean", "report")
    page.goto(GRAPH)
    expect(page.locator('[data-node][tabindex="0"]')).to_have_count(1)


def test_many_assets_are_folded_and_found(page: Page) -> None:
    for team in ("sales", "stock"):
        row(*(f"{team}_{number:02}" for number in range(60)), group=team)
    page.goto(GRAPH)
    status = page.get_by_role("status")
    expect(status).to_have_text("120 assets folded in 2 groups")
    group = node(page, "sales, folded, 60 assets")
    expect(group).to_have_attribute("aria-expanded", "false")
    group.focus()
    page.keyboard.press("Enter")
    expect(status).to_have_text("60 assets, 60 assets folded in 1 group")
    expect(page.locator("[data-node]:focus title")).to_contain_text("sales_")
    page.keyboard.press("Escape")
    expect(status).to_have_text("120 assets folded in 2 groups")
    expect(page.locator("[data-node]:focus title")).to_contain_text("sales, folded")

    page.get_by_label("Find an asset in the graph").fill("stock_5")
    expect(status).to_have_text("10 assets match")
    page.keyboard.press("Enter")
    expect(node(page, "stock_50;")).to_be_focused()
    # A link leads to the same picture.
    page.goto(page.url)
    expect(status).to_have_text("60 assets, 60 assets folded in 1 group")
    expect(node(page, "stock_50;")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Fold stock").click()
    expect(status).to_have_text("120 assets folded in 2 groups")


def test_no_edge_runs_behind_a_node(page: Page) -> None:
    names = ("clicks", "weather", "orders", "conversion", "revenue", "export", "board", "yearly")
    assets = {name: asset(name, DAILY_2013) for name in names}
    edges = [
        "clicks conversion", "orders conversion", "weather revenue", "orders revenue",
        "orders export", "revenue board", "clicks board", "board yearly", "weather yearly",
        "orders yearly",
    ]  # fmt: skip
    for edge in edges:
        upstream, downstream = edge.split()
        AssetDependency.objects.create(
            upstream=assets[upstream], downstream=assets[downstream], inlet=True
        )
    page.goto(GRAPH)
    expect(page.get_by_role("status")).to_have_text("8 assets")
    lines = page.locator(".edge path")
    expect(lines).to_have_count(10)
    assert lines.evaluate_all(_HIDDEN_EDGES) == []


def test_a_paused_asset_has_a_mark(page: Page) -> None:
    raw, _ = row("raw", "clean")
    Asset.objects.filter(pk=raw.pk).update(paused=True)
    page.goto(GRAPH)
    expect(node(page, "raw").locator(".pause-mark")).to_be_visible()
    expect(node(page, "clean").locator(".pause-mark")).to_have_count(0)


def test_states_change_by_themselves(page: Page) -> None:
    raw, _ = row("raw", "clean")
    page.goto(GRAPH)
    expect(node(page, "raw").locator(".summary")).to_have_text("365 missing")
    record(raw, "2013")
    expect(node(page, "raw").locator(".summary")).to_have_text("Complete · 365")


def test_the_turning_icon_of_a_running_asset_stays_in_its_node(page: Page) -> None:
    raw, _ = row("raw", "clean")
    run = recorded_run(raw, RunState.RUNNING, "2013-01-05")
    record(raw, "2013-01-05", lambda _: "failed")
    AssetPartition.objects.update(held_by=run)
    page.goto(GRAPH)
    expect(node(page, "raw").locator(".summary")).to_contain_text("1 running")
    frame = node(page, "raw").locator(".frame").bounding_box()
    assert frame is not None
    for milliseconds in (250, 900, 1500):
        page.evaluate(_TURNED, milliseconds)
        icon = node(page, "raw").locator(".icon use").bounding_box()
        assert icon is not None
        assert frame["x"] < icon["x"] < frame["x"] + frame["width"] / 4
        assert frame["y"] < icon["y"] < frame["y"] + frame["height"] - icon["height"] / 2


def test_a_drag_moves_the_picture_and_selects_nothing(page: Page) -> None:
    row("raw", "clean")
    page.goto(GRAPH)
    expect(page.get_by_role("status")).to_have_text("2 assets")
    before = node(page, "raw").bounding_box()
    assert before is not None
    x, y = before["x"] + 40, before["y"] + 20
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 30, steps=4)
    page.mouse.up()
    after = node(page, "raw").bounding_box()
    assert after is not None
    assert abs(after["x"] - before["x"] - 60) < 8
    assert page.url.endswith(GRAPH)


def test_several_are_selected_for_one_backfill(page: Page) -> None:
    row("raw", "clean", "report")
    page.goto(GRAPH)
    node(page, "raw").click()
    expect(page.get_by_label("Selected asset")).to_be_visible()
    page.get_by_role("button", name="Fit").click()
    node(page, "report").click(modifiers=["Shift"])
    panel = page.get_by_label("Selected asset")
    expect(panel).to_contain_text("2 selected")
    panel.get_by_role("link", name="Backfill these and downstream").click()
    for name in ("raw", "report"):
        expect(page.locator(f'input[name="assets"][value="{name}"]')).to_be_checked()


def test_a_late_answer_about_one_asset_does_not_replace_what_is_selected_since(page: Page) -> None:
    row("raw", "clean", "report")
    page.goto(GRAPH)
    held: list[Route] = []
    page.route(re.compile("/raw/.*fragment=panel"), lambda route: held.append(route))
    with page.expect_request(re.compile("/raw/.*fragment=panel")):
        node(page, "raw").click()
    page.get_by_role("button", name="Fit").click()
    node(page, "report").click(modifiers=["Shift"])
    panel = page.get_by_label("Selected asset")
    expect(panel).to_contain_text("2 selected")
    page.evaluate(_ANSWERED)
    held[0].continue_()
    expect(page.locator("body[data-answered]")).to_be_attached()
    assert "2 selected" in panel.inner_text()


def test_no_address_is_longer_than_servers_read(page: Page) -> None:
    for number in range(30):
        row(*(f"a{number:02}_{step}_{'x' * 60}" for step in range(3)), group=f"g{number:02}" * 45)
    row(*(f"sales_{number:02}_{'x' * 100}" for number in range(60)), group="sales")
    page.goto(GRAPH)
    expect(page.get_by_role("status")).to_have_text("150 assets folded in 31 groups")
    node(page, "sales, folded").click(modifiers=["Shift"])
    panel = page.get_by_label("Selected asset")
    expect(panel).to_contain_text("60 assets")
    expect(panel).to_contain_text("No link names so many assets")
    expect(panel.get_by_role("link")).to_have_count(0)
    page.get_by_role("button", name="Unfold", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("150 assets")
    assert len(page.url) < 4_500


def test_the_page_of_an_asset_draws_its_neighbourhood(page: Page) -> None:
    row("a", "b", "c", "d", "e", "f")
    page.goto("/assets/c/?tab=neighbours")
    expect(page.get_by_role("status")).to_have_text("5 assets")
    assert page.locator("[data-node]").count() == 5


def test_the_table_is_there_without_a_script(page: Page, live_server: LiveServer) -> None:
    row("raw", "clean")
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    context.add_cookies([
        {"name": cookie["name"], "value": cookie["value"], "url": live_server.url}
        for cookie in page.context.cookies()
    ])  # fmt: skip
    plain = context.new_page()
    plain.goto(GRAPH)
    expect(plain.locator("svg.graph-canvas")).to_be_hidden()
    expect(plain.get_by_role("row").filter(has_text="clean").first).to_be_visible()
    plain.get_by_role("link", name="Impact").first.click()
    expect(plain.get_by_role("heading", name="Impact of clean")).to_be_visible()
    context.close()


def test_an_ended_session_ends_the_questions_and_leads_to_the_sign_in_page_and_back(
    page: Page,
) -> None:
    row("raw", "clean")
    page.clock.install()
    page.goto(GRAPH)
    expect(page.get_by_role("status")).to_have_text("2 assets")
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "/states/" in sent.url else None)
    node(page, "raw").press(" ")
    page.context.clear_cookies()
    page.clock.fast_forward(11_000)
    expect(page.locator(".graph-status")).to_contain_text("Signed out")
    expect(page.locator("#connection")).to_contain_text("Your session has ended.")
    count = len(asked)
    for _ in range(3):
        page.clock.fast_forward(31_000)
        page.wait_for_timeout(200)
    assert len(asked) == count > 0
    page.get_by_role("link", name="Sign in").click()
    page.wait_for_url("**/sign-in/?next=*selected*")

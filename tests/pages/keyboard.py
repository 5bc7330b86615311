"""A person who uses a real browser by the keyboard alone, and never loses sight of the focus."""

from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

# A page has fewer stops; a list of many rows has a search before the rows.
_MOST_STOPS = 120
# The focus is on an element that shows a ring or a shadow, or is in text that shows a caret.
_FOCUS_FAULT = """() => {
    const focused = document.activeElement;
    if (!focused || focused === document.body) return "";
    const name = focused.outerHTML.slice(0, 120);
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(focused);
    const isOutlined = outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
    if (!isOutlined && boxShadow === "none") return `no visible focus: ${name}`;
    const box = focused.getBoundingClientRect();
    const isInSight = box.bottom > 0 && box.top < innerHeight && box.right > 0
        && box.left < innerWidth && box.width > 0;
    return isInSight ? "" : `focus out of sight: ${name}`;
}"""
# A swap that takes the focus away is an error on the console, which the test's watch hears.
_REPORT_LOST_FOCUS = """
let focusedBefore = null;
document.addEventListener("htmx:beforeSwap", () => {
    focusedBefore = document.activeElement === document.body ? null : document.activeElement;
});
document.addEventListener("htmx:afterSettle", ({ detail }) => {
    if (!focusedBefore || document.activeElement !== document.body) return;
    console.error(`focus lost by a swap of ${detail.target.id}: ${focusedBefore.outerHTML}`);
});
"""


@dataclass
class Keyboard:
    """The keys of a page."""

    page: Page

    def report_lost_focus(self) -> None:
        """Let each page report a swap that takes the focus away, as an error on the console."""
        self.page.add_init_script(_REPORT_LOST_FOCUS)

    def tab_to(self, target: Locator) -> None:
        """Press Tab until the element has the focus; the focus is in sight at each stop."""
        expect(target).to_be_visible()
        for _ in range(_MOST_STOPS):
            self.page.keyboard.press("Tab")
            fault = self.page.evaluate(_FOCUS_FAULT)
            assert not fault, f"{self.page.url}: {fault}"
            if target.evaluate("element => element === document.activeElement"):
                return
        raise AssertionError(f"{self.page.url}: Tab does not lead to {target}")

    def follow(self, target: Locator) -> None:
        """Go to a link or button, and press Enter."""
        self.tab_to(target)
        self.page.keyboard.press("Enter")

    def fill(self, target: Locator, text: str) -> None:
        """Go to a field, and type."""
        self.tab_to(target)
        self.page.keyboard.type(text)

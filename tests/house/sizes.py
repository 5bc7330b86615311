"""Measure sizes: long modules, long template lines, and files outside the rooms of the SDK."""

from tests.house.checkout import Checkout
from tests.house.measure import Measure

MODULE_LINES = 300
TEMPLATE_COLUMNS = 120


def measures(checkout: Checkout) -> list[Measure]:
    """Measure the sizes of a checkout."""
    files = [str(m.path) for m in checkout.modules if m.path.parent.as_posix() == "slicewise"]
    lines = [
        f"{path}:{number} {len(line)} characters"
        for path, text in checkout.templates.items()
        for number, line in enumerate(text, 1)
        if len(line) > TEMPLATE_COLUMNS
    ]
    modules = [
        f"{m.path} {m.line_count} lines" for m in checkout.modules if m.line_count > MODULE_LINES
    ]
    return [
        Measure(
            "slicewise_files",
            "files directly in slicewise/",
            len(files),
            files,
            "Put the module into one of the packages inside slicewise/.",
        ),
        Measure(
            "template_lines",
            f"template lines over {TEMPLATE_COLUMNS} characters",
            len(lines),
            lines,
            "Break the line.",
        ),
        Measure(
            "long_modules",
            f"modules over {MODULE_LINES} lines",
            len(modules),
            modules,
            "Split the module by what its functions have in common.",
        ),
    ]

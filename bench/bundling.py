"""Row 16: the sync of a bundle of 1,000 files and 5,000 assets, and of the same bundle again."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from assets_app.catalogue.services import sync_bundle
from assets_app.models import Asset
from bench.figures import Figure, duration, seconds

FILES, ASSETS_OF_FILE = 1_000, 5

_FILE = '''"""Assets of the area {number}."""

from datetime import date

from shared.rules import DAILY, HOURLY

from slicewise import asset

'''
_ASSET = '''
@asset(
    uri="file:///tmp/lake/area_{number}/{name}",
    partition={rule},
    schedule={schedule},
    owners=["area-{number}@example.com"],
    tags=["area {number}"],
)
def {name}({reads}):
    """What the area {number} has of {name}."""
    return None

'''
_RULES = '''"""How most assets are cut."""

from datetime import date

from slicewise import PartitionByInterval

DAILY = PartitionByInterval("@daily", start=date(2024, 1, 1))
HOURLY = PartitionByInterval("@hourly", start=date(2024, 1, 1))
'''


def measure(times: int) -> Iterator[Figure]:
    """Measure the sync of a new bundle, of the same bundle, and after a change of one file."""
    with tempfile.TemporaryDirectory(prefix="slicewise-bench-bundle-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        write_bundle(folder)
        size = f"{FILES:,} files and {FILES * ASSETS_OF_FILE:,} assets"
        yield _figure(f"sync a bundle of {size}", _synced(folder, changed=True), 10)
        same = median(_synced(folder, changed=False) for _ in range(times))
        yield _figure("sync it, nothing changed", same, 1, times)
        with (folder / "area_0.py").open("a") as file:
            file.write("\n# Changed.\n")
        yield _figure("sync it, one file changed", _synced(folder, changed=True), 10)


def write_bundle(folder: Path) -> None:
    """Write the files: each area has a source, two readers, one follower and one manual asset."""
    shared = folder / "shared"
    shared.mkdir()
    (shared / "__init__.py").write_text("")
    (shared / "rules.py").write_text(_RULES)
    for number in range(FILES):
        text = _FILE.format(number=number)
        source = f"source_{number}"
        for name, rule, schedule, reads in (
            (source, "HOURLY", '"@hourly"', ""),
            (f"days_{number}", "DAILY", '"@daily"', source),
            (f"report_{number}", "DAILY", f"days_{number}", f"days_{number}"),
            (f"summary_{number}", "DAILY", f"days_{number}", f"days_{number}, report_{number}"),
            (f"extra_{number}", "None", "None", source),
        ):
            text += _ASSET.format(
                number=number, name=name, rule=rule, schedule=schedule, reads=reads
            )
        (folder / f"area_{number}.py").write_text(text)


def _synced(folder: Path, *, changed: bool) -> float:
    found = []
    took = seconds(lambda: found.append(sync_bundle("areas", folder)))
    (report,) = found
    asset_count = Asset.objects.filter(bundle__name="areas", active=True).count()
    if report.changed != changed or report.errors or asset_count != FILES * ASSETS_OF_FILE:
        raise ValueError(f"{asset_count} assets, {report.errors[:1]}")
    return took


def _figure(work: str, took: float, reach: float, times: int = 1) -> Figure:
    return Figure(
        row=16,
        work=work,
        measured=duration(took),
        seconds=took,
        reach=f"{reach:g} s",
        reached=took <= reach,
        times=times,
    )

"""The three catalogues, each a module with a function `fill`, and the settings of each."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tests.pages.page_list import Things

if TYPE_CHECKING:
    from accounts_app.models import User

_PROJECT = Path(__file__).resolve().parents[2]
_BUNDLES = {
    "nyc_flights": _PROJECT / "examples" / "nyc_flights",
    "airport": _PROJECT / "tests" / "shots" / "bundles" / "airport",
    "baggage": _PROJECT / "tests" / "shots" / "bundles" / "baggage",
}
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "empty": {},
    "busy": {
        "SLICEWISE_BUNDLES": ",".join(f"{name}={path}" for name, path in _BUNDLES.items()),
        "SPARK_UI_URL": "http://spark.example.org:4040",
        "OPENLINEAGE_URL": "https://lineage.example.org",
    },
    "huge": {"LOG_LIMIT_BYTES": "200000000"},
}


def fill(catalogue: str, user: "User") -> Things:
    """Fill a catalogue; return the things that addresses of pages name.

    The modules import models, and so are imported once Django is set up.
    """
    things: Things = import_module(f"tests.shots.{catalogue}").fill(user)
    return things

"""The page on models lists every model below its app, and every room of the SDK."""

import re

from django.apps import apps

from tests.docs.documents import PROJECT

APPS = (
    "partitions_app",
    "assets_app",
    "backfills_app",
    "accounts_app",
    "events",
    "alerts",
    "lineage",
    "metrics",
)


def listed_models() -> dict[str, list[str]]:
    """Read the models of each app from the table; an empty first cell continues the app above."""
    text = (PROJECT / "docs/internals/models.md").read_text()
    models: dict[str, list[str]] = {}
    app = ""
    for name, model in re.findall(r"^\| (\w*) ?\| `(\w+)` \|", text, re.MULTILINE):
        app = name or app
        models.setdefault(app, []).append(model)
    return models


def test_every_model_is_listed_under_its_app() -> None:
    declared = {
        app: sorted(model.__name__ for model in apps.get_app_config(app).get_models())
        for app in APPS
    }
    assert {app: sorted(models) for app, models in listed_models().items()} == declared


def test_every_room_of_the_sdk_is_listed() -> None:
    text = (PROJECT / "docs/internals/models.md").read_text().partition("## Rooms of")[2]
    listed = {name.rstrip("/") for name in re.findall(r"`([\w/]+)`", text.partition("\n")[2])}
    files = {path.stem for path in (PROJECT / "slicewise").glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in (PROJECT / "slicewise").glob("*/__init__.py")}
    assert listed == files | folders

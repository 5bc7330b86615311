"""Files of a bundle whose names are those of modules that the loader itself needs."""

import pytest

from assets_app.catalogue.loading import load, snapshot
from tests.catalogue.conftest import Bundle


@pytest.mark.parametrize("name", ["argparse", "json", "tempfile", "calendar"])
def test_a_file_replaces_no_module_of_the_loader(bundle: Bundle, name: str) -> None:
    folder = bundle(**{name: "raise SystemExit(7)", "own": "VALUE = 1", "uses": "import own"})
    files = {file["path"]: file["error"] for file in load(*snapshot(folder)).declared["files"]}
    assert {"own.py", "uses.py"} <= {path for path, error in files.items() if error is None}


def test_a_file_replaces_the_sdk_for_no_other_file(bundle: Bundle) -> None:
    folder = bundle(
        slicewise="asset = None", made="from slicewise import asset\n@asset\ndef a(): ..."
    )
    declared = load(*snapshot(folder)).declared
    assert [producer["name"] for producer in declared["producers"]] == ["a"]

"""Static files: names with a hash of their content, compressed, kept by browsers for a year."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.test import Client

from slicewise_server.static_collection import collect_static_files

KEPT = "max-age=31536000, public, immutable"


def hashed(name: str) -> str:
    """Return the address of the file's current version."""
    address: str = staticfiles_storage.url(name)
    assert re.search(r"\.[0-9a-f]{12}\.\w+$", address)
    return address


def body(address: str) -> str:
    """Return the body that a browser gets."""
    answer = Client().get(address)
    assert answer.status_code == 200, address
    return b"".join(answer).decode()


@pytest.mark.parametrize("name", ["slicewise.js", "slicewise.css", "vendor/tabler/tabler.min.css"])
def test_a_file_is_kept_for_a_year_and_compressed(name: str) -> None:
    answer = Client().get(hashed(name), headers={"accept-encoding": "gzip"})
    assert answer["Cache-Control"] == KEPT
    assert answer["Content-Encoding"] == "gzip"
    again = Client().get(hashed(name), headers={"if-none-match": answer["ETag"]})
    assert again.status_code == 304


def test_a_file_without_a_hash_is_kept_for_a_minute() -> None:
    assert Client().get("/static/icon.svg")["Cache-Control"] == "max-age=60, public"


@pytest.mark.django_db
def test_all_that_a_page_names_has_a_hash() -> None:
    page = Client().get("/sign-in/").content.decode()
    named = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert len(named) > 3
    for address in named:
        assert Client().get(address)["Cache-Control"] == KEPT, address


def test_modules_name_each_other_by_their_hashed_names() -> None:
    imported = re.findall(r'from "\./([^"]+)"', body(hashed("slicewise.js")))
    assert len(imported) > 4
    for name in imported:
        assert Client().get(f"/static/{name}")["Cache-Control"] == KEPT, name


def test_files_are_collected_anew_when_a_source_has_changed(settings: Any, tmp_path: Path) -> None:
    # Not in the folder of all tests: files of pages would be away while they are collected.
    settings.STATIC_ROOT = tmp_path
    collect_static_files()
    manifest = tmp_path / "staticfiles.json"
    before = manifest.stat().st_mtime_ns
    collect_static_files()
    assert manifest.stat().st_mtime_ns == before
    (tmp_path / ".sources").write_text("of another day")
    collect_static_files()
    assert manifest.stat().st_mtime_ns != before

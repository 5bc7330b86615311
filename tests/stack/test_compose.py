"""Production and the embedded stack run the same commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from slicewise.process.python_start import python_path
from slicewise_server.name_value_pairs import pairs
from slicewise_server.stack.commands import COMMANDS, PREPARE

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

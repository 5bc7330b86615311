"""The exact command lines for each kind of cluster, and the files that are shipped with a run."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from slicewise import spark
from slicewise.platform_failures import is_platform_failure
from slicewise.runner.shipping import bundle_archive, sdk_archive
from slicewise.runner.submit import kill_command, submit_command

CLUSTERS: list[tuple[str, dict[str, str]]] = [
    ("local[4]", {}),
    ("spark://one:7077,two:7077", {"spark.cores.max": "4"}),
    (
        "yarn",
        {
            "spark.yarn.queue": "etl",
            "spark.kerberos.principal": "etl@EXAMPLE.ORG",
            "spark.kerberos.keytab": "/etc/security/etl.keytab",
        },
    ),
    (
        "k8s://https://cluster.example.org:6443",
        {
            "spark.kubernetes.namespace": "data",
            "spark.kubernetes.container.image": "registry.example.org/spark:4.3",
        },
    ),
]


@pytest.mark.parametrize(("master", "conf"), CLUSTERS)
def test_the_command_line_says_where_what_and_with_which_configuration(
    master: str, conf: dict[str, str]
) -> None:
    facts: dict[str, Any] = {
        "spark_home": "/opt/spark",
        "master": master,
        "name": "slicewise-run-12-1",
        "conf": {**conf, "spark.jars": "a.jar,b c.jar"},
    }
    shipped = [Path("/data/slicewise.zip"), Path("/data/bundle.zip")]
    settings = [word for pair in conf.items() for word in ("--conf", "=".join(pair))]
    assert submit_command(facts, shipped, Path("/app/driver.py")) == [
        *["/bin/bash", "/opt/spark/bin/spark-submit"],
        *["--master", master, "--deploy-mode", "client", "--name", "slicewise-run-12-1"],
        *[*settings, "--conf", "spark.jars=a.jar,b c.jar"],
        *["--py-files", "/data/slicewise.zip,/data/bundle.zip", "/app/driver.py"],
    ]


@pytest.mark.parametrize(
    ("master", "conf", "command"),
    [
        ("local[2]", {}, None),
        ("spark://one:7077", {}, None),
        ("yarn", {}, "yarn application -kill app-1"),
        (
            "k8s://cluster:6443",
            {},
            "kubectl --server https://cluster:6443 --namespace default delete pods --wait=false"
            " --selector spark-app-selector=app-1,slicewise-attempt=slicewise-run-1-1",
        ),
        (
            "k8s://http://cluster:8001",
            {"spark.kubernetes.namespace": "data"},
            "kubectl --server http://cluster:8001 --namespace data delete pods --wait=false"
            " --selector spark-app-selector=app-1,slicewise-attempt=slicewise-run-1-1",
        ),
    ],
)
def test_an_application_is_ended_by_its_id_where_its_cluster_has_a_command_for_that(
    master: str, conf: dict[str, str], command: str | None
) -> None:
    command_line = kill_command(master, "app-1", "slicewise-run-1-1", conf)
    assert command_line == (None if command is None else command.split())


def test_the_sdk_is_imported_from_its_archive(tmp_path: Path) -> None:
    archive = sdk_archive(tmp_path)
    assert sdk_archive(tmp_path) == archive
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]
    code = "import slicewise as s; print(s.__file__, s.normalize_uri.__code__.co_filename)"
    # Elsewhere than in the checkout, and without it on the path.
    answer = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    # As compiled, and with the place by which lines of the SDK are told from those of people.
    places = [f"{archive}/slicewise/{name}" for name in ("__init__.pyc", "uris/canonical.py")]
    assert answer.stdout.split() == places


def test_a_bundle_is_shipped_whole_and_packed_once(tmp_path: Path) -> None:
    (tmp_path / "root/package").mkdir(parents=True)
    (tmp_path / "root/package/rules.sql").write_text("select 1")
    os.utime(tmp_path / "root/package/rules.sql", (0, 0))  # before what an archive can say
    archive = bundle_archive(tmp_path / "cache", tmp_path / "root", "0123456789abcdef0123")
    assert zipfile.ZipFile(archive).namelist() == ["package/rules.sql"]
    (tmp_path / "root/later.py").touch()
    again = bundle_archive(tmp_path / "cache", tmp_path / "root", "0123456789abcdef0123")
    assert again == archive
    assert len(zipfile.ZipFile(archive).namelist()) == 1


@pytest.mark.parametrize(
    ("message", "kind", "refusal"),
    [
        (
            "error.\n: java.lang.IllegalArgumentException: x is no size\n\tat Y",
            ValueError,
            "x is no",
        ),
        (
            "error.\n: java.lang.IllegalStateException: methods on a stopped SparkContext.",
            ConnectionError,
            "the master does not answer",
        ),
        ("", ConnectionError, "started: RuntimeError"),
    ],
)
def test_an_application_that_cannot_be_had_is_the_platforms_failure_but_for_its_configuration(
    message: str, kind: type[Exception], refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Mock()
    builder.getOrCreate.side_effect = RuntimeError(message)
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", builder)
    with pytest.raises(kind, match=refusal) as raised:
        spark.open_application()
    assert is_platform_failure(raised.value) is (kind is ConnectionError)

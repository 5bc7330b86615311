"""Packages add schemes of URIs by entry points, with a name for OpenLineage."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slicewise import normalize_uri, openlineage_name, plugins
from slicewise.uris import schemes
from slicewise.uris.schemes import UriScheme
from tests.docs.documents import PROJECT

SNOWFLAKE = UriScheme(
    name="snowflake",
    components=3,
    openlineage=lambda parts: (
        f"snowflake://{parts.netloc}",
        parts.path.strip("/").replace("/", ".").upper(),
    ),
)
KAFKA = UriScheme(name="kafka", has_port=True, components=1)
S3A = UriScheme(name="s3")
OTHER_S3 = UriScheme(name="s3", components=1)

Install = Callable[..., None]
GUIDE = PROJECT / "docs" / "guides" / "uris.md"


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install schemes, by name, as installed packages do."""

    def install(**installed: object) -> None:
        monkeypatch.setattr(plugins, "load", {plugins.URI_SCHEMES: installed}.__getitem__)
        schemes.uri_schemes.cache_clear()

    yield install
    monkeypatch.undo()
    schemes.uri_schemes.cache_clear()


def test_a_plug_in_gives_a_scheme_its_rule_and_its_name(install: Install) -> None:
    install(snowflake=SNOWFLAKE, SF=SNOWFLAKE)
    assert normalize_uri("snowflake://me:pw@acc/db/s/t/") == "snowflake://acc/db/s/t"
    assert normalize_uri("sf://acc/db/s/t") == "snowflake://acc/db/s/t"
    assert openlineage_name("sf://acc/db/s/t") == ("snowflake://acc", "DB.S.T")
    with pytest.warns(UserWarning, match="3 components"):
        normalize_uri("snowflake://acc/db")


def test_a_scheme_of_hosts_without_a_default_port_needs_one(install: Install) -> None:
    install(kafka=KAFKA)
    assert normalize_uri("kafka://Broker:9092/topic") == "kafka://broker:9092/topic"
    with pytest.warns(UserWarning, match="needs a port"):
        assert normalize_uri("kafka://me@Broker/topic") == "kafka://Broker/topic"


def test_an_alias_alone_brings_its_canonical_scheme(install: Install) -> None:
    install(sf=SNOWFLAKE, s3a=S3A)
    with pytest.warns(UserWarning, match="3 components"):
        normalize_uri("snowflake://acc/db")
    assert normalize_uri("s3a://bucket/x") == "s3://bucket/x"


@pytest.mark.parametrize(
    ("name", "scheme", "why"),
    [
        ("broken", {"name": "dict"}, "not a UriScheme"),
        ("postgres", SNOWFLAKE, "postgres:// is built in"),
        ("s3x", OTHER_S3, "s3:// is built in"),
        ("airflow", SNOWFLAKE, "reserved"),
        ("x-mine", SNOWFLAKE, "reserved"),
        ("sf", UriScheme(name="kafka"), "kafka:// is another plug-in's"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_named_and_breaks_nothing(
    install: Install, name: str, scheme: object, why: str
) -> None:
    install(kafka=KAFKA, **{name: scheme})
    with pytest.warns(UserWarning, match=rf"plug-in {name} .*left out: .*{why}"):
        assert normalize_uri("kafka://h:1/t/") == "kafka://h:1/t"
    assert normalize_uri("postgres://h/d/s/t") == "postgres://h:5432/d/s/t"
    assert normalize_uri("s3://bucket/a/b") == "s3://bucket/a/b"


def test_the_package_of_the_guide_adds_its_scheme_beside_a_broken_one(tmp_path: Path) -> None:
    examples = dict(
        re.findall(r"^```(toml|python)\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.M)
    )
    project = tomllib.loads(examples["toml"])["project"]
    entries = project["entry-points"]["slicewise.uri_schemes"]
    (module,) = {value.partition(":")[0] for value in entries.values()}
    (tmp_path / f"{module}.py").write_text(examples["python"])
    info = tmp_path / f"{project['name'].replace('-', '_')}-1.dist-info"
    info.mkdir()
    lines = [f"{name} = {value}" for name, value in {**entries, "gone": "no_such_thing:X"}.items()]
    (info / "entry_points.txt").write_text("\n".join(["[slicewise.uri_schemes]", *lines]))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
    script = (
        "import slicewise as s; print(s.normalize_uri('sf://me:pw@Acme-EU/Shop/Public/Orders/'),"
    )
    script += "s.openlineage_name('snowflake://acme-eu/shop/public/orders'))"
    env = {"PYTHONPATH": f"{tmp_path}:{PROJECT}"}
    result = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert result.stdout == (
        "snowflake://Acme-EU/Shop/Public/Orders ('snowflake://acme-eu', 'shop.public.orders')\n"
    ), result.stderr
    assert "gone = no_such_thing:X" in result.stderr


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"name": "Kafka"}, "no name of a scheme"),
        ({"name": "airflow"}, "reserved"),
        ({"name": "x-kafka"}, "reserved"),
        ({"name": "kafka", "components": 0}, "from 1"),
        ({"name": "kafka", "port": 9092}, "has_port=True"),
        ({"name": "kafka", "port": 70_000, "has_port": True}, "65535"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(rule: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        UriScheme(**rule)


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("postgres://me:pw@DB/shop/public/orders", "postgres://db:5432", "shop.public.orders"),
        ("mariadb://db/shop/orders%20new", "mysql://db:3306", "shop.orders new"),
        ("trino://h/hive/web/clicks", "trino://h:8080", "hive.web.clicks"),
        ("bigquery://project/set/table", "bigquery", "project.set.table"),
        ("s3://bucket/raw/a%20b/", "s3://bucket", "raw/a b"),
        ("s3://bucket", "s3://bucket", "/"),
        ("gs://bucket/raw", "gs://bucket", "raw"),
        ("abfss://raw@lake.example/x/y", "abfss://raw@lake.example", "x/y"),
        ("file:///lake/raw flights", "file", "/lake/raw flights"),
        ("file://server/lake", "file://server", "/lake"),
        ("hdfs://node:8020/lake/raw", "hdfs://node:8020", "/lake/raw"),
        ("hdfs:///lake", "hdfs", "/lake"),
        ("service://token@h/data?y=2&x=1", "service://h", "/data?x=1&y=2"),
        ("x-mine://me:pw@Host/A", "x-mine://Host", "/A"),
        ("x-mine://[", "slicewise", "x-mine://["),
        ("just some text", "slicewise", "just some text"),
        ("see s3://bucket/x", "slicewise", "see s3://bucket/x"),
        ("jdbc:mysql://u:pw@h/db", "slicewise", "jdbc:mysql://u:***@h/db"),
        ("postgres://me:pw@h/only_db", "slicewise", "postgres://h/only_db"),
    ],
)
def test_every_place_has_a_name_for_openlineage(uri: str, namespace: str, name: str) -> None:
    assert openlineage_name(uri) == (namespace, name)


def test_openlineage_has_no_name_for_the_reserved_scheme() -> None:
    with pytest.raises(ValueError, match="reserved"):
        openlineage_name("airflow://x")

"""Names of datasets in OpenLineage, from URIs and back (AIP-60)."""

import pytest

from slicewise import normalize_uri, openlineage_name, openlineage_uri


@pytest.mark.parametrize(
    "uri",
    [
        "file:///lake/orders",
        "file://far/lake/orders",
        "file:///lake/a%20b/100%25",
        "s3://lake/raw/orders",
        "s3://lake",
        "gs://lake/raw",
        "postgres://db/shop/public/orders",
        "mysql://db/shop/orders",
        "bigquery://acme/shop/orders",
        "trino://t/hive/shop/orders",
        "hdfs://node:8020/lake/orders",
        "hdfs:///lake/orders",
        "abfss://container@account.dfs.core.windows.net/raw",
        "kafka://broker:9092/topic",
        "service://location/path/to/data?y=2,3&x=1",
        "orders of the shop",
    ],
)
def test_a_name_leads_back_to_its_uri(uri: str) -> None:
    assert openlineage_uri(*openlineage_name(uri)) == normalize_uri(uri)


@pytest.mark.parametrize(
    ("namespace", "name", "uri"),
    [
        ("s3a://lake", "raw/orders/", "s3://lake/raw/orders"),
        ("postgres://DB", "shop.public.orders", "postgres://db:5432/shop/public/orders"),
        ("bigquery", "example.com:acme.shop.orders", None),
        ("postgres://db:5432", "orders", None),
        ("postgres://db:5432", "", None),
        ("airflow://x", "orders", None),
        ("file", "/lake/orders", "file://localhost/lake/orders"),
        ("not a scheme", "orders", None),
        ("", "", None),
    ],
)
def test_names_of_other_tools_lead_to_a_uri_or_to_none(
    namespace: str, name: str, uri: str | None
) -> None:
    assert openlineage_uri(namespace, name) == uri

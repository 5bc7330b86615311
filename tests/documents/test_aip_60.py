"""AIP-60, standard URIs: the examples of the document, and the rules of its text."""

import warnings

import pytest

from slicewise import Asset, normalize_uri, openlineage_name


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        # "each pair of URIs are equivalent semantically, with the latter being canonical"
        ("s3://s3_default@some_bucket/order_data", "s3://some_bucket/order_data"),
        (
            "postgres://localhost/my_db/public/my_data",
            "postgres://localhost:5432/my_db/public/my_data",
        ),
        (
            "service://token@location/path/to/data?y=2,3&x=1",
            "service://location/path/to/data?x=1&y=2,3",
        ),
        # "The final / in path is stripped, unless it is the only character present"
        ("s3://bucket/foo/bar/", "s3://bucket/foo/bar"),
        ("s3://bucket/", "s3://bucket/"),
        # "Each path component (path separated by /) is percent-encoded if needed"
        ("s3://bucket/order data/ü", "s3://bucket/order%20data/%C3%BC"),
        ("s3://bucket/order%20data", "s3://bucket/order%20data"),
        # "should not contain a fragment"
        ("s3://bucket/orders#january", "s3://bucket/orders"),
        # "normalised by ordering by the key's Unicode code point value"
        ("service://host/?é=1&z=2&Z=3", "service://host/?Z=3&z=2&é=1"),
        # "Local file": "can be empty, which is normalised into localhost"; a port "is ignored"
        ("file:///data/orders", "file://localhost/data/orders"),
        ("file://localhost:80/data", "file://localhost/data"),
        # "Amazon Simple Storage Service", "Google Cloud Storage"
        ("s3://bucket/key", "s3://bucket/key"),
        ("gs://bucket/object", "gcs://bucket/object"),
        ("gcs://bucket/object", "gcs://bucket/object"),
        # "Postgres"
        ("postgresql://db:1234/a/b/c", "postgres://db:1234/a/b/c"),
        # "MySQL"
        ("mysql://db/shop/orders", "mysql://db:3306/shop/orders"),
        ("mariadb://db/shop/orders", "mysql://db:3306/shop/orders"),
        # "Google BigQuery"
        ("bigquery://project/dataset/table", "bigquery://project/dataset/table"),
        # "Trino"
        ("trino://host/catalog/schema/table", "trino://host:8080/catalog/schema/table"),
    ],
)
def test_one_resource_has_one_canonical_uri(written: str, canonical: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert normalize_uri(written) == canonical
        assert normalize_uri(canonical) == canonical


def test_the_protocol_airflow_is_reserved() -> None:
    with pytest.raises(ValueError, match="reserved"):
        normalize_uri("airflow://dag/task")


def test_protocols_that_begin_with_x_are_the_users() -> None:
    assert normalize_uri("x-mine://WHAT ever//?b=1&a=2#part") == "x-mine://WHAT ever//?b=1&a=2#part"


@pytest.mark.parametrize("text", ["orders", "a text of one's own", "C:\\data", "/foo/bar/"])
def test_text_that_is_no_uri_is_left_unchanged(text: str) -> None:
    assert normalize_uri(text) == text


@pytest.mark.parametrize(
    "uri",
    [
        "postgres://localhost/my_db/my_data",  # "The schema value is required"
        "mysql://db/shop",
        "bigquery://project/dataset",
        "trino://host/catalog/table",
    ],
)
def test_a_uri_that_breaks_its_rule_stays_as_it_is_and_somebody_is_told(uri: str) -> None:
    # "log.exception("Failed to normalize %s", uri)"
    with pytest.warns(UserWarning, match="stays as written"):
        assert normalize_uri(uri) == uri


def test_auth_information_is_never_part_of_a_canonical_uri() -> None:
    assert "secret" not in normalize_uri("postgres://ada:secret@db/a/b/c")
    assert "secret" not in normalize_uri("trino://ada:secret@host/c/s/t")


def test_the_uri_is_kept_as_a_raw_string_beside_its_canonical_form() -> None:
    written = "postgres://localhost/my_db/public/my_data"
    orders = Asset("orders", uri=written)
    assert orders.uri == written
    assert orders.canonical_uri == "postgres://localhost:5432/my_db/public/my_data"


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        # a comment: "the crucial difference … is that naming cannot contain connection names"
        ("s3://s3_default@some_bucket/order_data", "s3://some_bucket", "order_data"),
        (
            "postgres://localhost/my_db/public/my_data",
            "postgres://localhost:5432",
            "my_db.public.my_data",  # "instead of dots (.) used by OpenLineage"
        ),
        ("file:///data/orders", "file", "/data/orders"),
    ],
)
def test_a_uri_has_a_name_in_openlineage(uri: str, namespace: str, name: str) -> None:
    # the comment's `airflow_to_ol_dataset`
    assert openlineage_name(uri) == (namespace, name)

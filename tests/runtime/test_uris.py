"""URIs have one canonical form (AIP-60)."""

import warnings
from pathlib import Path

import pytest

from slicewise import normalize_uri
from slicewise.uris import masked_text, masked_uri, uri_path


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("s3://s3_default@some_bucket/order_data", "s3://some_bucket/order_data"),
        ("postgres://localhost/my_db/public/t", "postgres://localhost:5432/my_db/public/t"),
        (
            "service://token@location/path/to/data?y=2,3&x=1",
            "service://location/path/to/data?x=1&y=2,3",
        ),
        ("file:///lake/raw/", "file://localhost/lake/raw"),
        ("FILE://LocalHost:80/lake//", "file://localhost/lake"),
        ("file:///lake/a b/%2Fü%", "file://localhost/lake/a%20b/%2F%C3%BC%25"),
        ("file://", "file://localhost/"),
        ("gs://Bucket/x/#part", "gcs://Bucket/x"),
        ("postgresql://me:pw@DB:5433/a/b/c/", "postgres://db:5433/a/b/c"),
        ("mariadb://db/shop/orders", "mysql://db:3306/shop/orders"),
        ("bigquery://project/set/table", "bigquery://project/set/table"),
        ("trino://host/c/s/t", "trino://host:8080/c/s/t"),
        ("hdfs:///x//y/", "hdfs:///x//y"),
        ("x-Mine://me@Host/As It Is/#so", "x-Mine://me@Host/As It Is/#so"),
        ("just some text", "just some text"),
        ("mailto:someone", "mailto:someone"),
    ],
)
def test_one_place_has_one_name(written: str, canonical: str) -> None:
    assert normalize_uri(written) == canonical
    assert normalize_uri(canonical) == canonical


@pytest.mark.parametrize(
    "written",
    [
        "postgres://me:secret@host/only_a_database",
        "s3:///no-bucket",
        "s3://bucket:80/x",
        "mysql://host:notaport/a/b",
        "bigquery://project/set",
        "file://[broken/x",
    ],
)
def test_a_uri_that_breaks_its_rule_stays_as_written_with_a_warning(written: str) -> None:
    with pytest.warns(UserWarning, match="stays as written"):
        kept = normalize_uri(written)
    assert kept == written.replace("me:secret@", "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert normalize_uri(kept) == kept


@pytest.mark.parametrize(
    ("written", "masked"),
    [
        ("postgres://u:s3cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("jdbc:postgresql://u:s3cret@h/db", "jdbc:postgresql://u:***@h/db"),
        ("x-mine://u:s3cret@h/db", "x-mine://u:***@h/db"),
        ("postgres://u:s3/cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("postgres://u:s3?cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("postgres://u:s3#cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("postgres://u:s3@cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("postgres://u:12/s3cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("service://u:s3/cret@h/a", "service://u:***@h/a"),
        ("jdbc:mysql://h/d?user=u&password=s3cret", "jdbc:mysql://h/d?user=u&password=***"),
        ("mysql://h/d/t?Password=s3#cret&x=1", "mysql://h/d/t?Password=***&x=1"),
        ("jdbc:sqlserver://h;user=u;pwd=s3cret;x=1", "jdbc:sqlserver://h;user=u;pwd=***;x=1"),
        ("s3://bucket/a:b@c?key=x", "s3://bucket/a:b@c?key=x"),
        ("file:///lake/a:b@c", "file:///lake/a:b@c"),
        ("just: some @text", "just: some @text"),
    ],
)
def test_a_password_is_neither_shown_nor_part_of_a_canonical_uri(written: str, masked: str) -> None:
    assert masked_uri(written) == masked == masked_uri(masked)
    assert masked_text(f'@asset(uri="{written}", x="a@b")') == f'@asset(uri="{masked}", x="a@b")'
    canonical = normalize_uri(written)
    assert "cret" not in canonical
    assert normalize_uri(canonical) == canonical


def test_the_scheme_of_the_peer_is_refused() -> None:
    with pytest.raises(ValueError, match="reserved"):
        normalize_uri("airflow://anything")


def test_a_file_uri_is_decoded_to_a_folder() -> None:
    assert uri_path(normalize_uri("file:///lake/a b/%2525")) == Path("/lake/a b/%25")
    with pytest.raises(ValueError, match="not a file"):
        uri_path("s3://bucket/x")
    with pytest.raises(ValueError, match="not on this one"):
        uri_path("file://elsewhere/lake")

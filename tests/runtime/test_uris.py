"""URIs have one canonical form (AIP-60)."""

import warnings
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slicewise import Asset, DefinitionError, asset, normalize_uri
from slicewise.texts.masking import masked_text, masked_uri
from slicewise.uris.canonical import checked_uri, uri_path

SCHEMES = [
    *("file", "s3", "S3", "gs", "gcs", "postgres", "postgresql", "mysql", "mariadb", "bigquery"),
    *("trino", "abfss", "wasb", "hdfs", "service", "X-y"),
]
# After an "@" a slash could as well begin the path, so a password has one or the other.
PASSWORDS = st.one_of(st.text("ab1:?#/%&= ü", max_size=8), st.text("ab1:@%&= ü", max_size=8))


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("s3://s3_default@some_bucket/order_data", "s3://some_bucket/order_data"),
        ("postgres://localhost/my_db/public/my_data", "postgres://localhost:5432/my_db/public/my_data"),
        (
            "service://token@location/path/to/data?y=2,3&x=1",
            "service://location/path/to/data?x=1&y=2,3",
        ),
        ("service://h/foo/bar/", "service://h/foo/bar"),
        ("service://h/", "service://h/"),
        ("just some text", "just some text"),
        ("", ""),
        ("/lake/raw", "/lake/raw"),
        ("mailto:someone", "mailto:someone"),
        ("s3:/one/slash", "s3:/one/slash"),
        (" s3://b/x ", " s3://b/x "),
        ("x-Mine://me@Host/As It Is/#so", "x-Mine://me@Host/As It Is/#so"),
    ],
)  # fmt: skip
def test_the_pairs_of_the_document_and_what_stays_as_it_is(written: str, canonical: str) -> None:
    assert normalize_uri(written) == canonical
    assert normalize_uri(canonical) == canonical


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("service://h", "service://h/"),
        ("service://h/foo/bar///", "service://h/foo/bar"),
        ("service://h//", "service://h/"),
        ("service://h//foo//bar/", "service://h//foo//bar"),
        ("service://h/a b/ü", "service://h/a%20b/%C3%BC"),
        ("service://h/a%20b/%2F/%2f", "service://h/a%20b/%2F/%2f"),
        ("service://h/100%/%zz/%2525", "service://h/100%25/%25zz/%2525"),
        ("service://h/-._~!$&'()*+,;=:@", "service://h/-._~!$&'()*+,;=:@"),
        ("service://h/[\"<>\\^`{|}]", "service://h/%5B%22%3C%3E%5C%5E%60%7B%7C%7D%5D"),
        ("service://h/x#part?no=query", "service://h/x"),
        ("service://h/x?", "service://h/x"),
    ],
)  # fmt: skip
def test_a_path_has_no_slash_at_its_end_and_is_encoded_once(written: str, canonical: str) -> None:
    assert normalize_uri(written) == canonical
    assert normalize_uri(canonical) == canonical


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("y=2,3&x=1", "x=1&y=2,3"),
        ("b=1&B=1&ä=1&_=1", "B=1&_=1&b=1&ä=1"),
        ("x=2&a=1&x=1", "a=1&x=2&x=1"),
        ("x-y=1&x=2", "x=2&x-y=1"),
        ("b=a%20b+c ü/?&a", "a&b=a%20b+c ü/?"),
        ("a=1=0&a=1", "a=1=0&a=1"),
    ],
)
def test_a_query_is_ordered_by_key_and_its_values_untouched(query: str, ordered: str) -> None:
    for place in ("service://h/x", "s3://bucket/x", "postgres://h:5432/d/s/t"):
        assert normalize_uri(f"{place}?{query}#part") == f"{place}?{ordered}"
        assert normalize_uri(f"{place}?{ordered}") == f"{place}?{ordered}"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("file:///lake/raw/", "file://localhost/lake/raw"),
        ("FILE://LocalHost:80/lake//", "file://localhost/lake"),
        ("file://me:pw@Server:/lake", "file://server/lake"),
        ("file:///lake/a b/%2Fü%", "file://localhost/lake/a%20b/%C3%BC%25"),
        ("file://", "file://localhost/"),
        ("s3://Some_Bucket/", "s3://Some_Bucket/"),
        ("s3://bucket", "s3://bucket/"),
        ("gs://Bucket/x/#part", "gcs://Bucket/x"),
        ("gcs://Bucket/x", "gcs://Bucket/x"),
        ("postgresql://me:pw@DB:5433/a/b/c/", "postgres://db:5433/a/b/c"),
        ("postgres://[::1]/a/b/c", "postgres://[::1]:5432/a/b/c"),
        ("postgres://db:/a/b/c", "postgres://db:5432/a/b/c"),
        ("postgres://db:0/a/b/c", "postgres://db:0/a/b/c"),
        ("mysql://db/Shop/Orders", "mysql://db:3306/Shop/Orders"),
        ("mariadb://db/shop/orders", "mysql://db:3306/shop/orders"),
        ("bigquery://my-project/set/table", "bigquery://my-project/set/table"),
        ("trino://Host/c/s/t", "trino://host:8080/c/s/t"),
        ("hdfs:///x//y/", "hdfs:///x//y"),
        ("HDFS://Name_Node:80/x", "hdfs://Name_Node:80/x"),
        ("abfss://raw@lake.example/x/", "abfss://raw@lake.example/x"),
        ("abfs://raw:pw@lake.example/x", "abfss://raw@lake.example/x"),
        ("wasb://raw@lake.example/x", "wasbs://raw@lake.example/x"),
    ],
)
def test_every_scheme_has_its_rule(written: str, canonical: str) -> None:
    assert normalize_uri(written) == canonical
    assert normalize_uri(canonical) == canonical


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("postgres://me:secret@host/only_a_database", "3 components"),
        ("postgres://host/a//c", "3 components"),
        ("postgres://host//a/b/c", "3 components"),
        ("postgres:///a/b/c", "needs a host"),
        ("mysql://host/a/b/c", "2 components"),
        ("mysql://host:notaport/a/b", "port"),
        ("mysql://host:70000/a/b", "[Pp]ort"),
        ("trino://host/c/s", "3 components"),
        ("s3:///no-bucket", "needs a host"),
        ("s3://bucket:80/x", "has no port"),
        ("gs://me:secret@/x", "needs a host"),
        ("bigquery://project/set", "2 components"),
        ("bigquery://project:1/set/table", "has no port"),
        ("file://[broken/x", "IPv6"),
        ("service://[broken/x?b=1&a=2", "IPv6"),
        ("service://h/\ud800", "surrogates"),
    ],
)
def test_a_uri_that_breaks_its_rule_stays_as_written_with_a_warning(
    written: str, rule: str
) -> None:
    with pytest.warns(UserWarning, match=f"stays as written: .*{rule}") as warned:
        uri = normalize_uri(written)
    assert uri == written.replace("me:secret@", "")
    assert "secret" not in str(warned[0].message)
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert normalize_uri(uri) == uri


@pytest.mark.parametrize(
    ("written", "masked"),
    [
        ("postgres://u:s3cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("jdbc:postgresql://u:s3cret@h/db", "jdbc:postgresql://u:***@h/db"),
        ("s3://u:q@/s3cret@h/db", "s3://u:***@h/db"),
        ("x-mine://u:s3cret@h/db", "x-mine://u:***@h/db"),
        ("postgres://u:s3/cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("postgres://u:s3?cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("postgres://u:s3#cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("postgres://u:s3@cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("postgres://u:12/s3cret@h/d/s/t", "postgres://u:***@h/d/s/t"),
        ("service://u:s3/cret@h/a", "service://u:***@h/a"),
        ("abfss://u:s3/cret@h/a", "abfss://u:***@h/a"),
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


@given(
    scheme=st.sampled_from(SCHEMES),
    rest=st.one_of(
        st.text(max_size=40),
        st.text("ab1:/?#@[]%&=;. \t\n", max_size=40),
        st.from_regex(r"(me(:pw)?@)?[a-zH]*(:[0-9]*)?(/[a-zü %]*){0,4}(\?[a-c=&%]*)?(#x)?"),
    ),
)
@example(scheme="service", rest="a\u2100b@h/x/?b=1&a=2")
@example(scheme="service", rest="h/x?pass\nword=1")
@example(scheme="service", rest="h/%\n41")
@example(scheme="abfss", rest="@@")
@settings(deadline=None, max_examples=400)
def test_normalising_twice_changes_nothing_and_raises_nothing(scheme: str, rest: str) -> None:
    canonical, problem = checked_uri(f"{scheme}://{rest}")
    assert checked_uri(canonical) == (canonical, problem)


@given(
    scheme=st.sampled_from(SCHEMES),
    name=st.text("abc%.-", max_size=5),
    password=PASSWORDS.map(lambda text: f"q{text}cret"),
    place=st.sampled_from(["h", "h:1", "h/a/b", "h/a/b/c", "h:1/a/b?x=1", "[h/a"]),
)
@settings(deadline=None, max_examples=400)
def test_no_password_survives(scheme: str, name: str, password: str, place: str) -> None:
    canonical, problem = checked_uri(f"{scheme}://{name}:{password}@{place}")
    assert "cret" not in f"{canonical} {problem}"


@pytest.mark.parametrize("written", ["airflow://anything", "AirFlow://me:secret@x"])
def test_the_scheme_of_the_peer_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="reserved") as refused:
        normalize_uri(written)
    assert "secret" not in str(refused.value)


def test_a_file_uri_is_decoded_to_a_folder() -> None:
    assert uri_path(normalize_uri("file:///lake/a b/%2525")) == Path("/lake/a b/%25")
    with pytest.raises(ValueError, match="not a file"):
        uri_path("s3://bucket/x")
    with pytest.raises(ValueError, match="not on this one"):
        uri_path("file://elsewhere/lake")


@pytest.mark.parametrize(
    "written",
    [
        "/lake/k",
        "/lake//k/",
        "file:/lake/k",
        "FILE:/lake/k",
        "file:///lake//k",
        "file:///lake/./k/",
        "file:///lake/%6B",
        "file:///lake%2Fk",
        "file://localhost/lake/k",
    ],
)
def test_one_folder_has_one_canonical_uri_and_is_of_one_outlet(written: str) -> None:
    assert Asset("raw", uri=written).canonical_uri == "file://localhost/lake/k"
    outlets = [Asset("left", uri=written), Asset("right", uri="file:///lake/k")]
    with pytest.raises(DefinitionError, match="have the same uri"):
        asset.multi(outlets=outlets)(lambda_free)


def lambda_free() -> None: ...


def test_a_path_is_taken_as_it_stands_in_the_file_system() -> None:
    assert Asset("raw", uri="/lake/a%20b").canonical_uri == "file://localhost/lake/a%2520b"
    assert uri_path("file://localhost/lake/a%2520b") == Path("/lake/a%20b")
    assert Asset("raw", uri="/lake/../k").canonical_uri == "file://localhost/lake/../k"

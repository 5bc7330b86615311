"""Secrets in texts are masked, in a time that goes with the length of the text."""

import time

import pytest

from slicewise.masking import masked_json, masked_text


@pytest.mark.parametrize(
    ("written", "masked"),
    [
        ("ValueError: … postgres://me:hunter2@db/x", "ValueError: … postgres://me:***@db/x"),
        ("at https://h/?token=hunter2&x=1", "at https://h/?token=***&x=1"),
        ("jdbc:postgresql://h/d?user=a&password=hunter2", "jdbc:postgresql://h/d?user=a&password=***"),
        ("host=db password=hunter2 dbname=x", "host=db password=*** dbname=x"),
        ("connect('a', password='hunter2')", "connect('a', password='***')"),
        ("connect(password=hunter2)", "connect(password=***)"),
        ("DB_PASSWORD = \"hunter2\"", "DB_PASSWORD = \"***\""),
        ('{"password": "hunter2", "a": "b"}', '{"password": "***", "a": "b"}'),
        ("{'db_pwd': 'it\\'s hunter2', 'a': 1}", "{'db_pwd': '***', 'a': 1}"),
        (r'"{\"token\": \"hunter2\", \"a\": 1}"', r'"{\"token\": \"***\", \"a\": 1}"'),
        ("fs.s3a.secret.key=hunter2", "fs.s3a.secret.key=***"),
        ("aws_secret_access_key='hunter2'", "aws_secret_access_key='***'"),
        ("fs.azure.account.key.acc.dfs.net=hunter2", "fs.azure.account.key.acc.dfs.net=***"),
        ("Authorization: Bearer hunter2", "Authorization: Bearer ***"),
        ("{'Authorization': 'Basic hunter2'}", "{'Authorization': 'Basic ***'}"),
        ("key AKIAABCDEFGHIJKLMNOP is", "key *** is"),
        ("ghp_" + "hunter2" * 6, "***"),
        ("password='hunter2 and cut off", "password='***"),
        ("one\npassword=hunter2\ntwo\n", "one\npassword=***\ntwo\n"),
    ],
)  # fmt: skip
def test_a_secret_is_masked(written: str, masked: str) -> None:
    assert masked_text(written) == masked
    assert masked_text(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "Unexpected token: x at line 3",
        "def connect(password: str, token: str | None = None) -> None:",
        "connect(password=None, max_tokens=5)",
        "the key 2013-01-01 of the partition: 'x'",
        "x = 1  // 2:3@4",
        "password='' token=",
        "",
        "one\r\ntwo\x0bthree",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked_text(text) == text


def test_json_is_masked_within() -> None:
    value = {"a": ["x://me:hunter2@db", 1, None], "db_password": "hunter2", "tokens": {"b": 1}}
    assert masked_json(value) == {
        "a": ["x://me:***@db", 1, None],
        "db_password": "***",
        "tokens": {"b": 1},
    }


def test_whatever_is_named_like_a_secret_is_masked_in_json() -> None:
    value = {
        "pin_secret": 4711, "api_key": ["hunter2", 1], "token": {"from": "hunter2", "to": 7},
        "password": None, "secret": False, "passphrase": "",
    }  # fmt: skip
    assert masked_json(value) == {
        "pin_secret": "***", "api_key": "***", "token": {"from": "***", "to": "***"},
        "password": None, "secret": False, "passphrase": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    "piece",
    [
        "a", "//a:", "x//", "?pass", "&;", "pass", "password=", 'password="', "token='\\", "\\",
        "account.key.", "account.key.a.", "password=)", "authorization: ", "ghp_", "AKIA", "@", ":",
        "api key: ",
    ],
)  # fmt: skip
def test_a_hostile_text_costs_no_more_than_its_length(piece: str) -> None:
    def seconds(size: int) -> float:
        text = "x://a:@" + piece * (size // len(piece))
        started = time.process_time()
        masked_text(text)
        return time.process_time() - started

    seconds(1000)
    # Quadratic time would make it a hundredfold; tenfold is right, and machines are uneven.
    assert seconds(400_000) < 40 * max(seconds(40_000), 0.005)

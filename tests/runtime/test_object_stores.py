"""Stores that create an object only where no object exists, and stores that do not."""

from typing import Any

import pytest

from slicewise.io import Storage, StorageLocation, Writer, object_store, storage_at
from slicewise.io.object_log import LogState, ObjectLog
from slicewise.io.object_log_names import number_in_name
from slicewise.io.object_store import Store, store_at
from slicewise.storage import StorageError, TryAgainError, UnfitStoreError
from tests.runtime.bucket_server import BucketServer, bucket_server

SENTENCE = (
    r"^the store of s3://lake/sales cannot create an object only where no object exists \(.*\),"
    r" which publishing needs: keep the asset in a store that supports If-None-Match, as Amazon"
    r" S3, Google Cloud Storage and MinIO do, or at a file: or postgres: URI$"
)


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_fit", set())


def storage(server: BucketServer, **obstore: str) -> Storage:
    connection = {"arrow": server.arrow, "obstore": obstore}
    return storage_at(StorageLocation(uri="s3://lake/sales", format="json", connection=connection))


@pytest.mark.parametrize("conditions", ["ignored", "refused"])
def test_a_store_that_knows_no_conditions_is_refused_in_one_sentence(conditions: Any) -> None:
    with bucket_server(conditions) as server:
        with pytest.raises(UnfitStoreError, match=SENTENCE) as refused:
            storage(server).refuse_unfit_location()
        assert "\n" not in str(refused.value)
        assert "secret" not in str(refused.value)
        assert server.objects == {}


def test_a_publication_says_the_same_where_nobody_asked_before() -> None:
    with bucket_server("ignored") as server, pytest.raises(UnfitStoreError, match=SENTENCE):
        storage(server).publish("", [{"path": "day=mon"}], Writer(run_id=1, attempt="1-a"))


def test_a_store_that_knows_them_is_tried_once() -> None:
    with bucket_server() as server:
        storage(server).refuse_unfit_location()
        assert server.objects == {}
        server.conditions = "ignored"
        storage(server).refuse_unfit_location()


def test_a_store_that_is_throttled_is_tried_again_later() -> None:
    with bucket_server("throttled") as server:
        with pytest.raises(TryAgainError, match=r"s3://lake/sales: .* 503 Service Unavailable"):
            storage(server).refuse_unfit_location()
        server.conditions = "known"
        storage(server).refuse_unfit_location()


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 405])
def test_permanent_refusals_of_a_store_are_not_tried_again(status: int) -> None:
    writer = Writer(run_id=1, attempt="1-a")
    with bucket_server() as server:
        server.status = status
        for ask in (
            lambda: storage(server).refuse_unfit_location(),
            lambda: storage(server).publish("", [{"path": "day=mon"}], writer),
            lambda: storage(server).published(["day=mon"], writer),
        ):
            with pytest.raises(StorageError, match=r"^s3://lake/sales: ") as refused:
                ask()
            assert not isinstance(refused.value, UnfitStoreError)
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_temporary_refusals_of_a_store_are_tried_again(status: int) -> None:
    with bucket_server() as server:
        server.status = status
        for ask in (
            storage(server).refuse_unfit_location,
            lambda: storage(server).published(["day=mon"], Writer(run_id=1, attempt="1-a")),
        ):
            with pytest.raises(TryAgainError, match="s3://lake/sales: "):
                ask()


def test_a_word_that_obstore_does_not_know_is_not_tried_again() -> None:
    with bucket_server() as server, pytest.raises(StorageError, match="regoin"):
        storage(server, regoin="eu-north-1").refuse_unfit_location()


def test_a_created_object_is_recognized_though_the_answer_was_lost() -> None:
    with bucket_server("answers are lost") as server:
        store = store_at(server.arrow, {})
        assert store.create("a/1", b"ours")
        assert not store.create("a/1", b"another's")
        assert server.objects == {"a/1": b"ours"}


def log_in(server: BucketServer) -> ObjectLog:
    return ObjectLog(store_at(server.arrow, {}), "a b/day=a%2Fü", "day=a%2Fü")


def entries_of(server: BucketServer) -> list[str]:
    return [path for path in server.objects if path.endswith(".json")]


def publish_by_name(log: ObjectLog, attempt: str, mode: str) -> int:
    """Publish as a worker does that knows only logs of names."""
    numbers = [number_in_name(name) for name in log.store.names(log.folder)]
    number = 1 + max((known_number for known_number in numbers if known_number), default=0)
    assert log.store.create(f"{log.folder}/{number:012}.{mode}.{attempt}", b"{}")
    return number


def published(log: ObjectLog, attempt: str, mode: str) -> LogState:
    def step(state: LogState) -> LogState | None:
        return None if state.has(attempt) else state.published(attempt, mode, ())

    return log.change(step, lambda state: state.has(attempt))


def test_a_log_has_one_entry_by_its_number_and_names_all_that_counts() -> None:
    with bucket_server() as server:
        log = log_in(server)
        for attempt, mode in (("1-1-a", "version"), ("2-1-a", "version"), ("3-1-a", "append")):
            published(log, attempt, mode)
            assert entries_of(server) == [f"a b/day=a%2Fü/{log.state().number:012}.json"]
        assert log.state().data == ("2-1-a", "3-1-a")
        assert log.state().versions == {1: "1-1-a", 2: "2-1-a"}


def test_an_entry_that_comes_below_others_is_put_above_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bucket_server() as server:
        log, real = log_in(server), Store.create
        published(log, "1-1-a", "replace")

        def asleep(store: Store, path: str, content: bytes) -> bool:
            monkeypatch.setattr(Store, "create", real)
            for run in (3, 4, 5):
                published(log, f"{run}-1-a", "append")
            is_ours = real(store, path, content)
            assert is_ours
            assert log.state().data == ("1-1-a", "3-1-a", "4-1-a", "5-1-a")
            return is_ours

        monkeypatch.setattr(Store, "create", asleep)
        published(log, "2-1-a", "append")
        assert log.state().data == ("1-1-a", "3-1-a", "4-1-a", "5-1-a", "2-1-a")
        assert entries_of(server) == ["a b/day=a%2Fü/000000000005.json"]


def test_a_log_of_names_is_read_and_goes_on() -> None:
    """Logs were of names before each entry had all facts."""
    names = [
        *("1.replace.1-1-a", "2.append.2-1-a", "3.version.3-1-a", "4.fence-2.4-1-a"),
        *("5.version.5-1-a", "6.append.100-10-a", "6.append.100-9-a", "7.same.6-2-b"),
    ]
    with bucket_server() as server:
        log = log_in(server)
        for name in names:
            server.objects[f"a b/day=a%2Fü/00000000000{name}"] = b"{}"
        state = log.state()
        assert state == LogState(
            number=7,
            data=("5-1-a", "100-9-a", "100-10-a"),
            outside=False,
            versions={3: "3-1-a", 5: "5-1-a"},
            repeats=("6-2-b",),
            old=("1-1-a", "2-1-a"),
            fences={"4-1-a": 2},
        )
        published(log, "8-1-a", "append")
        assert entries_of(server) == ["a b/day=a%2Fü/000000000008.json"]
        assert log.state().data == (*state.data, "8-1-a")


@pytest.mark.parametrize(
    ("mode", "data"),
    [("replace", ["4"]), ("append", ["3", "4"]), ("version", ["4"])],
)
def test_a_publication_by_an_older_worker_beside_newer_workers_counts(
    mode: str, data: list[str]
) -> None:
    with bucket_server() as server:
        log = log_in(server)
        for attempt in ("1-1-a", "2-1-a", "3-1-a"):
            published(log, attempt, "version")
        number = publish_by_name(log, "4-1-a", mode)
        state = log.state()
        assert list(state.data) == [f"{run}-1-a" for run in data]
        versions = {1: "1-1-a", 2: "2-1-a", 3: "3-1-a"}
        assert state.versions == versions | ({number: "4-1-a"} if mode == "version" else {})
        published(log, "5-1-a", "append")
        assert log.state().data == (*state.data, "5-1-a")
        assert log.state().versions == state.versions
        again = publish_by_name(log, "6-1-a", "append")
        assert again > log.state().number - 1 > number
        assert log.state().data == (*state.data, "5-1-a", "6-1-a")


def test_a_newer_worker_deletes_nothing_of_one_of_that_time_that_came_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bucket_server() as server:
        log, real = log_in(server), Store.create
        published(log, "1-1-a", "replace")

        def overtaken(store: Store, path: str, content: bytes) -> bool:
            monkeypatch.setattr(Store, "create", real)
            is_ours = real(store, path, content)
            publish_by_name(log, "3-1-a", "append")
            return is_ours

        monkeypatch.setattr(Store, "create", overtaken)
        published(log, "2-1-a", "append")
        assert log.state().data == ("1-1-a", "2-1-a", "3-1-a")


def test_a_login_is_found_where_other_tools_have_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = K\naws_secret_access_key = a%b\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    login = object_store._s3_login(None, None)
    assert login == {"access_key_id": "K", "secret_access_key": "a%b"}
    assert object_store._s3_login("U", "p%2Fw") == {
        "access_key_id": "U",
        "secret_access_key": "p/w",
    }
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "E")
    assert object_store._s3_login(None, None) == {}


@pytest.mark.parametrize(
    ("options", "token"),
    [
        ({}, None),
        ({"aws_access_key_id": "K", "AWS_SECRET_ACCESS_KEY": "S"}, None),
        ({"session_token": "ours"}, "ours"),
    ],
)
def test_keys_of_a_connection_go_without_the_token_of_the_environment(
    options: dict[str, str], token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "E")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "E")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the environment")
    with bucket_server() as server:
        store_at(server.arrow, options).create("a", b"1")
        assert server.tokens == [token]


def test_keys_of_the_file_go_without_the_token_of_the_environment(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = K\naws_secret_access_key = S\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the environment")
    with bucket_server() as server:
        store_at(server.arrow.replace("key:secret@", ""), {}).create("a", b"1")
        assert server.tokens == [None]


def test_without_a_home_a_login_is_found_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "AWS_ACCESS_KEY_ID", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert object_store._s3_login(None, None) == {}


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b"aws_access_key_id = K\n", None),
        (b"\xff\xfe\n", None),
        (b"[default]\naws_access_key_id = K\n", None),
        (b"[default]\naws_access_key_id=1\naws_secret_access_key=S\n[default]\nregion=x\n", "1"),
        (b"[default]\naws_access_key_id=1\naws_access_key_id=2\naws_secret_access_key=S\n", "2"),
        (b"[default]\naws_access_key_id=1\naws_secret_access_key=S\nodd\n", "1"),
    ],
)
def test_an_odd_file_of_logins_is_read_as_far_as_it_goes(
    content: bytes, key: str | None, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_bytes(content)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    assert object_store._s3_login(None, None).get("access_key_id") == key

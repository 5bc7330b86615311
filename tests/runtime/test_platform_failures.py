"""Whose fault an error is: the platform's, or that of the asset's code."""

import socket
import urllib.request
from collections.abc import Callable, Iterator
from unittest.mock import Mock

import grpc
import pytest
from py4j.clientserver import ClientServerConnection, JavaParameters, PythonParameters
from py4j.protocol import Py4JNetworkError
from pyspark.errors.exceptions.connect import SparkConnectGrpcException, UnknownException

from slicewise import spark
from slicewise.platform_failures import PlatformError, is_platform_failure, is_spark_lost
from slicewise.texts.tracebacks import one_line
from tests.runtime.errors import raised_by


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Return a port on which no server listens, and none can while the test lasts."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        yield port


def ask_a_service(port: int) -> None:
    urllib.request.urlopen(f"http://127.0.0.1:{port}")


def ask_by_grpc(port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.unary_unary("/service/method")(b"")


def ask_a_socket(port: int) -> None:
    socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("ask", [ask_a_service, ask_a_socket, ask_by_grpc])
def test_a_service_that_user_code_cannot_reach_is_not_the_platform(
    ask: Callable[[int], None], closed_port: int
) -> None:
    assert not is_platform_failure(raised_by(lambda: ask(closed_port)))


def test_an_error_raised_while_a_lost_connection_is_handled_is_an_error_of_code(
    closed_port: int,
) -> None:
    def fall_back() -> None:
        try:
            ask_a_socket(closed_port)
        except ConnectionError:
            int("no number")

    assert not is_platform_failure(raised_by(fall_back))


def test_a_java_machine_that_is_gone_is_the_platform(closed_port: int) -> None:
    java = ClientServerConnection(
        JavaParameters(port=closed_port), PythonParameters(), Mock(), java_client=None
    )
    error = raised_by(java.connect_to_java_server)
    assert isinstance(error, ConnectionRefusedError)
    assert is_platform_failure(error)

    def explain() -> None:
        try:
            java.connect_to_java_server()
        except ConnectionError as error:
            raise ValueError("the days cannot be listed") from error

    assert is_platform_failure(raised_by(explain))


def test_a_call_of_java_that_breaks_off_is_the_platform() -> None:
    assert is_platform_failure(Py4JNetworkError("Error while sending or receiving"))


@pytest.mark.parametrize(
    "message",
    [
        # As a server of Spark 4.3 said it that was being stopped, now and then.
        "(java.lang.IllegalStateException) Cannot call methods on a stopped SparkContext.\n"
        "This stopped SparkContext was created at:\n",
        "(org.apache.spark.SparkException) Job 3 cancelled because SparkContext was shut down",
    ],
)
def test_a_spark_server_that_is_being_stopped_is_the_platform(message: str) -> None:
    assert is_platform_failure(UnknownException(message, reason=""))
    assert not is_platform_failure(ValueError(message))


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [
        (SparkConnectGrpcException("", errorClass="INVALID_HANDLE.SESSION_NOT_FOUND"), True),
        (UnknownException("Job 3 cancelled because SparkContext was shut down", reason=""), True),
        (Py4JNetworkError("Error while sending or receiving"), True),
        # Spark is there.
        (SparkConnectGrpcException("", errorClass="FAILED_READ_FILE.FILE_NOT_EXIST"), False),
        # The sentence of the error says that no session could be opened.
        (PlatformError("Spark does not answer"), False),
        (ConnectionRefusedError("a service of the code's own"), False),
    ],
    ids=repr,
)
def test_an_error_tells_whether_spark_was_lost(error: Exception, is_lost: bool) -> None:
    assert is_spark_lost(error) is is_lost


def test_a_spark_server_that_is_gone_is_the_platform(
    closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "_MAX_RETRIES", 1)
    session = "b52e3c2e-0a4e-4a5e-9b7c-6d3f0a4f9a10"
    error = raised_by(lambda: spark.open_session(f"sc://127.0.0.1:{closed_port}", session))
    assert is_platform_failure(error)


def test_a_call_that_a_server_broke_off_is_told_in_a_sentence(closed_port: int) -> None:
    broken = raised_by(lambda: ask_by_grpc(closed_port))
    # As Spark's client tells of it, which keeps the text of the call.
    of_spark = SparkConnectGrpcException(str(broken))
    for error, server in ((broken, "the server"), (of_spark, "the Spark server")):
        assert one_line(error).startswith(
            f"{type(error).__name__}: {server} did not answer, or ended while the call was under"
            " way (UNAVAILABLE: "
        )
        assert "onnection refused" in one_line(error)
        assert one_line(error).endswith(").")

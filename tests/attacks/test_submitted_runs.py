"""Code looks into programs of a run of the engine `submit`, which are open to its user."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.documents import PROJECT
from tests.runtime.conftest import runs, warm_parent
from tests.runtime.runs import Runs
from tests.waiting import wait_until

__all__ = ["runs", "warm_parent"]

# Waits as a JVM does that starts, and then starts the driver.
SPARK_SUBMIT = """
echo $$ > {ready}.new
mv {ready}.new {ready}
while [ ! -e {go} ]; do sleep 0.05; done
{python} {driver}
"""
# Takes channel and request, and says that the run has succeeded.
DRIVER = """
import os
from pathlib import Path
from slicewise.runner.channel import receive_channel
from slicewise.runner.submit import FOLDER_VARIABLE, TOKEN_VARIABLE, open_socket
from slicewise.runner.wire import encode, read_message

with open_socket(Path(os.environ[FOLDER_VARIABLE]), "connect") as connection:
    connection.sendall(encode({"token": os.environ[TOKEN_VARIABLE]}))
    channel = receive_channel(connection)
    request = read_message(connection, 10**7)
print("the driver has the request of", request["asset"], flush=True)
channel.say({"type": "finished"})
"""
THIEF = """
    import json, socket

    @asset(params={"pid": 0})
    def thief(context):
        environment = open(f"/proc/{context['params']['pid']}/environ").read()
        values = dict(line.split("=", 1) for line in environment.split("\\0") if "=" in line)
        os.chdir(values["SLICEWISE_CHANNEL"])
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect("channel")
            token = {"token": values["SLICEWISE_CHANNEL_TOKEN"]}
            # The door may be closed before the token is sent, or afterwards.
            try:
                connection.sendall(json.dumps(token).encode() + b"\\n")
                data, descriptors, _, _ = socket.recv_fds(connection, 100_000, 2)
            except ConnectionError:
                data, descriptors = b"", []
            print("the thief has", len(data), "bytes and", len(descriptors), "descriptors")
"""


@pytest.fixture
def spark_submit(tmp_path: Path) -> dict[str, Any]:
    """Write a program `spark-submit` that starts a driver once the file `go` exists."""
    binary, driver = tmp_path / "bin" / "spark-submit", tmp_path / "driver.py"
    binary.parent.mkdir()
    driver.write_text(DRIVER)
    ready, go = tmp_path / "ready", tmp_path / "go"
    script = SPARK_SUBMIT.format(ready=ready, go=go, python=sys.executable, driver=driver)
    binary.write_text(script)
    env = {"PYTHONPATH": str(PROJECT)}
    home = str(tmp_path)
    return {"engine": "submit", "spark_home": home, "master": "local", "conf": {}, "env": env}


def test_the_channel_goes_to_no_process_that_the_run_has_not_started(
    runs: Runs, tmp_path: Path, spark_submit: dict[str, Any]
) -> None:
    victims = Runs(runs.parent, tmp_path / "victims", submit=spark_submit)
    victims.folder.mkdir()
    victims.define("@asset()\ndef victim(): ...\n")
    victim = victims.launch("victim")
    messages = victim.messages(60)
    assert next(messages)["type"] == "started"
    assert wait_until((tmp_path / "ready").exists)

    runs.define(THIEF)
    outcome = runs.run("thief", params={"pid": int((tmp_path / "ready").read_text())})
    assert outcome.log == "the thief has 0 bytes and 0 descriptors\n", outcome.messages

    (tmp_path / "go").touch()
    rest = list(messages)
    assert [message["type"] for message in rest if message["type"] != "log"] == [
        "finished", "exited",
    ]  # fmt: skip
    log = "".join(message["text"] for message in rest if message["type"] == "log")
    assert "the driver has the request of victim\n" in log
    assert "is not of this run: refused\n" in log

"""An asset that looks for credentials wherever user code can look, and prints its finds."""

import os
import socket
import struct
from pathlib import Path

from slicewise import asset

_MOST = 65_536


@asset(params={"data": "", "postgresql": 0, "redis": 0})
def curious(context):
    """Prints everything that can be read, and the answers of servers to a stranger."""
    params = context["params"]
    print("user", os.getuid())
    look_at_processes()
    look_at_files(Path(params["data"]))
    greeting = b"user\0slicewise\0database\0slicewise\0\0"
    greeting = struct.pack("!ii", 8 + len(greeting), 3 << 16) + greeting
    print("postgresql says", said_by(params["postgresql"], greeting))
    print("redis says", said_by(params["redis"], b"PING\r\n"))
    for change in (os.setuid, os.setgid):
        try:
            change(0)
            print("became root")
        except PermissionError:
            print("may not become root")


def look_at_processes():
    """Prints the facts of all processes, and the descriptors of its own process."""
    for process in Path("/proc").glob("[0-9]*"):
        show(process / "environ")
        show(process / "cmdline")
        if process.name not in (str(os.getpid()), str(os.getppid())):
            for link in listed(process / "fd"):
                print("descriptor of", process.name, link)
    for link in listed(Path("/proc/self/fd")):
        print("descriptor", link)


def look_at_files(data):
    """Prints the files in the server's folder, found by listing and by well-known names."""
    for folder, _, names in os.walk(data):
        for name in names:
            show(Path(folder) / name)
    for file_name in (
        "credentials.json",
        "running.json",
        "redis/redis.conf",
        "spark/spark.properties",
    ):
        show(data / file_name)
    for file_name in ("web", "worker-scheduled", "worker-control", "worker-bulk", "beat"):
        show(data / "processes" / f"{file_name}.json")
        show(data / "logs" / f"{file_name}.log")


def show(path):
    """Prints a file that may be read."""
    try:
        if path.is_file():
            with path.open("rb") as file:
                print("read", path, file.read(_MOST))
    except OSError:
        return


def listed(folder):
    """Lists a folder that may be listed."""
    try:
        return [os.readlink(link) for link in folder.iterdir() if os.path.lexists(link)]
    except OSError:
        return []


def said_by(port, greeting):
    """Returns a server's answer to a client without a password."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(greeting)
        return connection.recv(200)

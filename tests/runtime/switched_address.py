"""An address behind which one server can take another server's place in a moment."""

import socket
import threading
from contextlib import suppress


class Door:
    """Passes connections on to a port of this host, and breaks off all when that changes."""

    def __init__(self, port: int) -> None:
        self._leads_to = port
        self._open: list[socket.socket] = []
        self._front = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._front.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def lead_to(self, port: int) -> None:
        """Lead new connections to another port, and end all open connections."""
        self._leads_to = port
        while self._open:
            with suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Refuse connections from now on."""
        self._front.close()
        self.lead_to(0)

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._front.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._leads_to))
            except OSError:
                caller.close()
                continue
            self._open += [caller, server]
            for source, target in ((caller, server), (server, caller)):
                threading.Thread(target=_pass_on, args=[source, target], daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

"""Stands before a PostgreSQL server and cuts a connection at its COMMIT."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Literal

When = Literal["", "before", "after"]
_COMMIT = b"COMMIT\0"  # psycopg ends a transaction by a simple query
_DONE = b"COMMIT\0Z"  # the answer: command complete, ready for the next query
LIMIT_S = 60.0


class CuttingProxy:
    """`cut_next`: what becomes of the next COMMIT. `cuts` counts.

    ``before``: the server never sees it. ``after``: the server has done it, and its answer is
    lost.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut_next: When = ""
        self.cuts = 0
        self._links: list[tuple[socket.socket, socket.socket]] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for link in self._links:
            _cut(link)
        for thread in self._threads[1:]:
            thread.join()
        for link in self._links:
            for end in link:
                end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server, timeout=LIMIT_S)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            link = client, server
            self._links.append(link)
            marked = threading.Event()
            for work in (self._ask, self._answer):
                thread = threading.Thread(target=work, args=(link, marked))
                self._threads.append(thread)
                thread.start()

    def _ask(self, link: tuple[socket.socket, socket.socket], marked: threading.Event) -> None:
        client, server = link
        for data in _pieces(client):
            if _COMMIT in data and self.cut_next:
                when, self.cut_next = self.cut_next, ""
                self.cuts += 1
                if when == "before":
                    break
                marked.set()
            with contextlib.suppress(OSError):
                server.sendall(data)
        if not marked.is_set():
            _cut(link)

    def _answer(self, link: tuple[socket.socket, socket.socket], marked: threading.Event) -> None:
        client, server = link
        for data in _pieces(server):
            if marked.is_set() and _DONE in data:
                break
            with contextlib.suppress(OSError):
                client.sendall(data)
        _cut(link)


def _pieces(link: socket.socket) -> Iterator[bytes]:
    """Messages here are short and asked for one by one: none comes in two pieces."""
    while True:
        try:
            data = link.recv(1 << 16)
        except OSError:
            return
        if not data:
            return
        yield data


def _cut(link: tuple[socket.socket, socket.socket]) -> None:
    for end in link:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

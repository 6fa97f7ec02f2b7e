"""A bounded log: the head is written as it comes, the tail is kept in a ring until the end."""

import os

from wire import write_all

MARKER = "\n[farm: {} bytes left out here]\n"


class BoundedLog:
    """Keeps at most `limit` bytes: half from the beginning, half from the end.

    Memory is used (half the limit) only once the head is full. All methods raise OSError
    when the disk is full; what came before is kept.
    """

    def __init__(self, path, limit):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        self._room = limit // 2
        self._size = limit - limit // 2
        self._ring = None
        self._written = 0  # bytes in the file
        self._seen = 0  # bytes that went to the ring
        self._lost = 0  # bytes that could not be written

    def write(self, data):
        """Take bytes."""
        if self._room:
            head = data[: self._room]
            self._room -= len(head)
            data = data[len(head):]
            try:
                self._put(head)
            except OSError:
                self._lost += len(data)
                raise
        if data:
            self._remember(data)

    def drop(self, data):
        """Count bytes that are not kept, because the disk is full."""
        self._lost += len(data)

    def _put(self, data):
        try:
            write_all(self._fd, data)
        except OSError:
            size = os.fstat(self._fd).st_size
            self._lost += len(data) - (size - self._written)
            self._written = size
            raise
        self._written += len(data)

    def _remember(self, data):
        if self._ring is None:
            self._ring = bytearray(self._size)
        if len(data) > self._size:
            self._seen += len(data) - self._size
            data = data[-self._size:]
        at = self._seen % self._size
        first = min(len(data), self._size - at)
        self._ring[at:at + first] = data[:first]
        self._ring[: len(data) - first] = data[first:]
        self._seen += len(data)

    def close(self):
        """Write the tail; the number of bytes left out."""
        try:
            self._finish()
        finally:
            os.close(self._fd)
            self._ring = None
        return self.cut_bytes

    @property
    def cut_bytes(self):
        """Bytes left out so far."""
        return max(0, self._seen - self._size) + self._lost

    def _finish(self):
        if self._ring is None:
            return
        if self._seen <= self._size:
            self._put(bytes(self._ring[: self._seen]))
            return
        at = self._seen % self._size
        marker = MARKER.format(self._seen - self._size).encode("ascii")
        write_all(self._fd, marker)
        self._written += len(marker)
        self._put(bytes(self._ring[at:] + self._ring[:at]))


def cut_middle(path, limit):
    """Bound a file of JSON lines that someone else wrote; the number of bytes left out."""
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        size = os.fstat(fd).st_size
        if size <= limit:
            return 0
        half = limit // 2
        tail = os.pread(fd, half, size - half)
        head_end = os.pread(fd, half, 0).rfind(b"\n") + 1
        tail = tail[tail.find(b"\n") + 1:]
        cut = size - head_end - len(tail)
        note = '{{"event": "note", "text": "[farm: {} bytes left out here]"}}\n'.format(cut)
        os.lseek(fd, head_end, os.SEEK_SET)
        write_all(fd, note.encode("ascii") + tail)
        os.ftruncate(fd, head_end + len(note) + len(tail))
        return cut
    finally:
        os.close(fd)

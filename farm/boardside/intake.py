"""Takes payload files as a tar stream, hashing each while it is written, in one pass.

A process of its own, whose start is most of its cost for a small payload. So it imports as
little as it can: neither the agent's modules nor tarfile, whose few lines that are needed
(plain files of a ustar or GNU archive) are here and take a third of the time.
"""

import hashlib
import os

from stamps import seal, stamp_of

BLOCK = 512
BUFFER = 1024 * 1024
F_SETPIPE_SZ = 1031  # linux/fcntl.h
HEX = frozenset("0123456789abcdef")


class Refused(Exception):
    """What is told to the host: `kind` is one of docs/agent-protocol.md."""

    def __init__(self, kind, text, **data):
        super(Refused, self).__init__(text)
        self.error = dict(data, kind=kind, text=text)


def main(work, root):
    """Store a tar stream from stdin below an agent's work folder; tell by one JSON line."""
    try:
        count, total = receive(work + "/blobs", _boot_id(root), 0)
        answer = '{"farm":"received","ok":true,"files":%d,"bytes":%d}' % (count, total)
    except Refused as refused:
        import json

        answer = json.dumps({"farm": "received", "ok": False, "error": refused.error})
    os.write(1, answer.encode("ascii") + b"\n")


def receive(blobs, boot_id, fd):
    """Store the files of a tar stream, each named by its SHA-256: (number, bytes).

    Raises Refused: `hash` when a file is not what its name says, `no_space`, `io`.
    """
    _widen(fd)
    stamp = stamp_of(boot_id)
    source = Source(fd)
    count, total, wrong = 0, 0, []
    try:
        os.makedirs(blobs, mode=0o700, exist_ok=True)
        os.umask(0)  # the mode that files are made with is the one they keep
        while True:
            header = source.header()
            if header is None:
                break
            sha256, size = header
            if _store(blobs + "/" + sha256, source, size, stamp):
                count, total = count + 1, total + size
            else:
                wrong.append(sha256)
    except OSError as error:
        raise _refused(error)
    if wrong:
        text = "{} files are not what was announced".format(len(wrong))
        raise Refused("hash", text, missing=wrong)
    return count, total


def _refused(error):
    import errno

    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Refused("no_space" if is_full else "io", str(error))


def _boot_id(root):
    """As the agent reads it."""
    try:
        with open(root.rstrip("/") + "/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().decode("utf-8", "replace").replace("\0", "").strip()
    except OSError:
        return ""


def _widen(fd):
    """A larger pipe, if it is one: fewer changes between sshd and us."""
    import fcntl

    try:
        fcntl.fcntl(fd, F_SETPIPE_SZ, BUFFER)
    except OSError:  # no pipe, or more than the user may have
        pass


def _store(path, source, size, stamp):
    """Write one file under a temporary name; keep it only if its hash, its name, fits."""
    temporary = "{}.{}.tmp".format(path, os.getpid())
    digest = hashlib.sha256()
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o444)
    try:
        try:
            for piece in source.pieces(size):
                digest.update(piece)
                written = os.write(fd, piece)
                while written < len(piece):
                    written += os.write(fd, piece[written:])
            seal(fd, stamp)
        finally:
            os.close(fd)
        is_right = path.endswith("/" + digest.hexdigest())
        if is_right:
            os.rename(temporary, path)
    except (OSError, Refused):
        os.unlink(temporary)
        raise
    if not is_right:
        os.unlink(temporary)
    return is_right


class Source:
    """A tar stream on a file descriptor."""

    def __init__(self, fd):
        self._file = open(fd, "rb", buffering=0, closefd=False)
        self._buffer = bytearray(BUFFER)
        self._view = memoryview(self._buffer)
        self._begin = self._end = 0

    def header(self):
        """Name and size of the next file, None at the end of the archive."""
        block = self._block()
        if not block.strip(b"\0"):
            return None
        try:
            told = int(block[148:156].rstrip(b"\0 "), 8)
            size = _number(block[124:136])
        except ValueError:
            raise Refused("io", "the stream is damaged: no tar header")
        if sum(block) - sum(block[148:156]) + 8 * 0x20 != told or size < 0:
            raise Refused("io", "the stream is damaged: a header's checksum differs")
        sha256 = block[:100].rstrip(b"\0").decode("ascii", "replace")
        if len(sha256) != 64 or not HEX.issuperset(sha256):
            raise Refused("bad_request", "not a SHA-256: {!r}".format(sha256))
        if block[156:157] not in (b"0", b"\0"):
            raise Refused("bad_request", "no regular file: " + sha256)
        return sha256, size

    def pieces(self, size):
        """The next `size` bytes, in pieces good until the next is asked for; then the padding."""
        left = size
        while left:
            if self._begin == self._end:
                self._fill()
            piece = self._view[self._begin : min(self._end, self._begin + left)]
            self._begin += len(piece)
            left -= len(piece)
            yield piece
        padding = -size % BLOCK
        while self._end - self._begin < padding:
            self._fill()
        self._begin += padding

    def _block(self):
        while self._end - self._begin < BLOCK:
            self._fill()
        self._begin += BLOCK
        return bytes(self._view[self._begin - BLOCK : self._begin])

    def _fill(self):
        """Read more; what is left over moves to the front when the buffer is nearly full."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif BUFFER - self._end < BLOCK:
            rest = bytes(self._view[self._begin : self._end])
            self._view[: len(rest)] = rest
            self._begin, self._end = 0, len(rest)
        number = self._file.readinto(self._view[self._end :])
        if not number:
            raise Refused("io", "the stream is damaged: it ended early")
        self._end += number


def _number(field):
    """A number of a tar header: octal text, or binary when its first bit is set (GNU)."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big")
    return int(field.rstrip(b"\0 ") or b"0", 8)

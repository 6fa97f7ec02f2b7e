"""What the agent says no with, and files written so that they are whole or absent."""

import base64
import binascii
import errno
import json
import os

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
PIECE = 65536


class RequestError(Exception):
    """A request that is answered with an error: `kind` is one of docs/agent-protocol.md."""

    def __init__(self, kind, text, **data):
        super(RequestError, self).__init__(text)
        self.kind = kind
        self.text = text
        self.data = data

    def as_answer(self):
        """The `error` of an answer."""
        answer = dict(self.data)
        answer["kind"] = self.kind
        answer["text"] = self.text
        return answer


def as_request_error(error):
    """An OSError as the error of an answer."""
    kind = "no_space" if error.errno in NO_SPACE else "io"
    return RequestError(kind, str(error))


# Made once: json.dumps makes a new encoder for each text that is not written its own way.
compact = json.JSONEncoder(separators=(",", ":")).encode
ordered = json.JSONEncoder(sort_keys=True).encode


def line(message):
    """A message as one ASCII line."""
    return (compact(message) + "\n").encode("ascii")


def packed(data):
    """Bytes as base64 text."""
    return base64.b64encode(data).decode("ascii")


def write_all(fd, data):
    """Write everything; raises OSError."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def sync_folder(path):
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_tree(top):
    """Make all files and names below a folder durable."""
    for folder, _, names in os.walk(top):
        for name in names:
            fd = os.open(folder + "/" + name, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_folder(folder)


def read_whole(path, flags=os.O_RDONLY):
    """A file's bytes, by few system calls. Raises OSError."""
    fd = os.open(path, flags)
    try:
        parts = [os.read(fd, PIECE)]
        while len(parts[-1]) == PIECE:
            parts.append(os.read(fd, PIECE))
    finally:
        os.close(fd)
    return b"".join(parts) if len(parts) > 1 else parts[0]


def write_new(path, data):
    """Make a file that is not there, where nobody looks yet. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def write_file(path, data, is_durable=False):
    """Write a file under a temporary name and rename it: it appears whole or not at all."""
    temporary = "{}.{}.tmp".format(path, os.getpid())
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(fd, data)
        if is_durable:
            os.fsync(fd)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(fd)
    os.rename(temporary, path)
    if is_durable:
        sync_folder(os.path.dirname(path))


def read_json(path):
    """A JSON object from a file, or None when it is absent or is no JSON object."""
    try:
        value = json.loads(read_whole(path).decode("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def text_of(request, name, default=None):
    """A text field of a request; RequestError if it is absent or no text."""
    value = request.get(name, default)
    if not isinstance(value, str):
        raise RequestError("bad_request", "{} must be text".format(name))
    return value


def bytes_of(request, name):
    """Bytes that came as base64 text, b"" if there are none; RequestError if it is none."""
    try:
        return base64.b64decode(text_of(request, name, "").encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise RequestError("bad_request", "{} must be base64".format(name))


def number_of(request, name, default=None):
    """A number of a request; RequestError if it is absent or no number."""
    value = request.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RequestError("bad_request", "{} must be a number".format(name))
    return value


def texts_of(request, name):
    """A list of texts of a request; RequestError otherwise."""
    value = request.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise RequestError("bad_request", "{} must be a list of texts".format(name))
    return value

"""The board side as one file, and the few lines that put it on a board and run it.

`build` zips `farm/boardside/`; the same sources give the same bytes on every host. BOOTSTRAP
is given to the board's Python with ``-c``: it runs the bundle that lies there, or asks for it
over the same channel first. It must parse on any Python, also on 2.7, so that an old one is
told of rather than seen as a syntax error.
"""

import functools
import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from farm.model.board import Board

OLDEST_PYTHON = (3, 5)  # Ubuntu 16.04, which is L4T R28 (TX1, TX2)
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)

BOOTSTRAP = r"""
import sys
sys.path[:] = [p for p in sys.path if p]
import errno, hashlib, json, os
def say(**message):
    os.write(1, (json.dumps(message) + "\n").encode("ascii"))
if sys.version_info < (3, 5):
    say(farm="old", python="%d.%d" % sys.version_info[:2], path=sys.executable)
    sys.exit(3)
work, digest, size, root = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
folder = os.path.join(os.path.abspath(os.path.expanduser(work)), "agent")
path = os.path.join(folder, "farm-agent-" + digest + ".pyz")
def is_here():
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == digest
    except OSError:
        return False
def install():
    os.makedirs(folder, mode=0o700, exist_ok=True)
    say(farm="need", digest=digest)
    parts, left = [], size
    while left:
        part = os.read(0, min(left, 65536))
        if not part:
            sys.exit(4)
        parts.append(part)
        left -= len(part)
    data = b"".join(parts)
    if hashlib.sha256(data).hexdigest() != digest:
        say(farm="fail", kind="hash", text="the agent arrived damaged")
        sys.exit(5)
    temporary = "%s.%d.tmp" % (path, os.getpid())
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
try:
    if not is_here():
        install()
except OSError as error:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    say(farm="fail", kind="no_space" if full else "io", text=str(error))
    sys.exit(6)
sys.path.insert(0, path)
import agent
agent.serve(work, root, path)
"""


def _sources(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        name = prefix + entry.name
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry, name + "/")
        elif name.endswith((".py", ".sh")):
            yield name, entry.read_bytes()


@functools.cache
def build() -> tuple[bytes, str]:
    """The zip application and its SHA-256: fixed dates, fixed order, stored uncompressed."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as bundle:
        for name, data in _sources(files("farm") / "boardside"):
            entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
            entry.create_system = 3  # Unix, also when built elsewhere
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, data)
    data = target.getvalue()
    return data, hashlib.sha256(data).hexdigest()


def serve_argv(board: Board) -> list[str]:
    """The command that starts the agent on a board, by way of the bootstrap."""
    data, digest = build()
    flags = [board.python, *_FLAGS, "-c", BOOTSTRAP]
    return [*flags, board.work_dir, digest, str(len(data)), board.root_prefix]


def receive_argv(board: Board, pyz: str, work_dir: str) -> list[str]:
    """The command that takes payload files from its stdin as a tar stream."""
    return [board.python, *_FLAGS, "-c", _RECEIVE, pyz, "receive", work_dir, board.root_prefix]


# The same as running the bundle, without the modules that Python needs to run a zip file.
_RECEIVE = """
import sys
sys.path[:] = [sys.argv[1]] + [p for p in sys.path if p]
import intake
intake.main(*sys.argv[3:])
"""

# -u: nothing of ours waits in a buffer; -E -s -S: the user's PYTHON* settings and packages
# are not ours, and not looking for them starts quicker. Python 2.7 knows them all.
_FLAGS = ("-u", "-E", "-s", "-S")

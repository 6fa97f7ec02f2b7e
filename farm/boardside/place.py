"""Where things lie on the board: the work folder, and the root prefix for absolute paths."""

import os
import re
import time

from wire import RequestError

CLOCK_BOOTTIME = 7  # linux/time.h; the name came with Python 3.7
ATTEMPT_ID = re.compile(r"\A[A-Za-z0-9_][A-Za-z0-9._-]{0,199}\Z")
DIGEST = re.compile(r"\A[0-9a-f]{64}\Z")


def boot_time():
    """Seconds since boot, sleep included: one clock for all processes of this boot."""
    return time.clock_gettime(CLOCK_BOOTTIME)


def checked_digest(value):
    """A SHA-256 in hexadecimal, or RequestError."""
    if not isinstance(value, str) or not DIGEST.match(value):
        raise RequestError("bad_request", "not a SHA-256: {!r}".format(value))
    return value


def inside(path):
    """A relative path that stays inside its folder, or RequestError."""
    parts = path.split("/") if isinstance(path, str) else [""]
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise RequestError("bad_request", "not a path inside the folder: {!r}".format(path))
    return path


class Place:
    """The folders of one work folder.

    `root` is put before absolute paths that the host asks for, so that a simulated or
    containerised board offers its own ``/sys`` and ``/etc``.
    """

    def __init__(self, work, root, pyz):
        self.work = os.path.abspath(os.path.expanduser(work))
        self.root = root.rstrip("/")
        self.pyz = pyz
        self.attempts = self.work + "/attempts"
        self.payloads = self.work + "/payloads"
        self.blobs = self.work + "/blobs"
        self.aliases = self.work + "/p"
        self.trash = self.work + "/trash"
        self.spare = self.work + "/spare"
        self._boot_id = None

    def make(self):
        """Make the folders. Raises OSError."""
        parts = (self.attempts, self.payloads, self.blobs, self.aliases, self.trash, self.spare)
        for folder in (self.work,) + parts:
            os.makedirs(folder, mode=0o700, exist_ok=True)

    def rooted(self, path):
        """An absolute path of the host's request as a path to open."""
        if not path.startswith("/") or "\0" in path:
            raise RequestError("bad_request", "not an absolute path: {!r}".format(path))
        return self.root + os.path.normpath("/" + path.lstrip("/"))

    def read(self, path, limit=65536):
        """The beginning of a file under the root prefix, or None."""
        try:
            with open(self.rooted(path), "rb") as file:
                return file.read(limit)
        except OSError:  # EAGAIN of a sensor, ENOENT, EACCES: not readable
            return None

    def read_text(self, path):
        """A short file as text without NULs and outer blanks, or ''."""
        data = self.read(path) or b""
        return data.decode("utf-8", "replace").replace("\0", "").strip()

    def boot_id(self):
        """What the kernel calls this boot. We do not outlive it, so we ask once."""
        if self._boot_id is None:
            self._boot_id = self.read_text("/proc/sys/kernel/random/boot_id")
        return self._boot_id

    def attempt(self, attempt_id):
        """The folder of an attempt; RequestError for an id that is no plain name."""
        if not isinstance(attempt_id, str) or not ATTEMPT_ID.match(attempt_id):
            raise RequestError("bad_request", "not an attempt id: {!r}".format(attempt_id))
        return self.attempts + "/" + attempt_id

    def helpers(self):
        """Where the payload helpers of this version lie."""
        name = os.path.basename(self.pyz).replace("farm-agent-", "helpers-")
        return os.path.join(os.path.dirname(self.pyz), name.rsplit(".", 1)[0])

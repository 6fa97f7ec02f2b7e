"""What an attempt leaves: its files with sizes and hashes, and exit.json."""

import hashlib
import json
import os
import re
import stat

from output import cut_middle
from removal import FOLDER
from wire import compact, packed, sync_folder, write_all

RESERVE = 4096  # room for exit.json, taken before the payload can fill the disk
LARGEST_READ = 1024 * 1024
EVENTS_LIMIT = 16 * 1024 * 1024
MOST_ARTIFACTS = 10000
FULL_BYTES = 65536  # less free space than this is a full disk
INLINE_BYTES = 65536
DURABLE_AFTER_S = 1.0
"""Attempts longer than this get their files fsynced. Shorter ones are cheaper to repeat than to
sync (an SD card takes up to a second), and a power cut shows: an exit.json that is absent or
empty is an attempt that is lost, and a whole one holds the hashes of the other files."""
UNKEPT_NAME = re.compile("[\x00-\x1f\x7f\ud800-\udfff\\\\]")
GLOB_PARTS = re.compile(r"(\*\*/|\*\*|\*|\?)")
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def take_reserve(folder):
    """Make the file that becomes exit.json. Its bytes are the file system's promise of room."""
    fd = os.open(folder + "/exit.json.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(fd, b" " * RESERVE)
    finally:
        os.close(fd)


def is_disk_full(folder):
    """Whether the file system has no room left for us."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < FULL_BYTES


def glob_pattern(glob):
    """A glob as a regular expression: ``**`` crosses folders, ``*`` and ``?`` do not."""
    parts = []
    for piece in GLOB_PARTS.split(glob):
        known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        parts.append(known.get(piece, re.escape(piece)))
    return re.compile("(?s)\\A" + "".join(parts) + "\\Z")


def find_artifacts(folder, globs):
    """Files below `folder` that a glob names, and those left out with the reason."""
    try:
        if _is_empty(folder):
            return [], []
    except OSError as error:  # removed, or a link in its place
        return [], [{"path": ".", "reason": error.strerror}]
    patterns = [glob_pattern(glob) for glob in globs]
    found, skipped = [], []

    def note(error):
        path = error.filename[len(folder) + 1 :]
        skipped.append({"path": ascii(path)[1:-1], "reason": error.strerror})

    for base, folders, names in os.walk(folder, onerror=note):
        folders.sort()
        for name in sorted(names) + folders:
            path = os.path.join(base, name)
            relative = path[len(folder) + 1 :]
            reason = _refusal(path, relative, patterns, len(found))
            if reason is None:
                found.append(relative)
            elif reason:
                skipped.append({"path": ascii(relative)[1:-1], "reason": reason})
    return found, skipped[:MOST_ARTIFACTS]


def _is_empty(folder):
    fd = os.open(folder, FOLDER)
    try:
        return not os.listdir(fd)
    finally:
        os.close(fd)


def _refusal(path, relative, patterns, count):
    """None: take it. '': a folder, walked into. Else why it is left out."""
    mode = os.lstat(path).st_mode
    if stat.S_ISDIR(mode):
        return ""
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if not stat.S_ISREG(mode):
        return "no regular file"
    if UNKEPT_NAME.search(relative):
        return "a name with characters that are not kept"
    if not any(pattern.match(relative) for pattern in patterns):
        return "no artifact by the payload's manifest"
    return None if count < MOST_ARTIFACTS else "too many artifacts"


class Inline:
    """Contents of small files, base64 by path: in order, while there is room."""

    def __init__(self):
        self.contents = {}
        self.room = INLINE_BYTES

    def offer(self, path, data):
        """Take a whole file, if there is room for it."""
        if len(data) <= self.room:
            self.contents[path] = packed(data)
            self.room -= len(data)


class _Gathering:
    """Reads each of the attempt's files once: for its record, and for who wants it inline."""

    def __init__(self, folder, is_durable):
        self._folder, self._is_durable = folder, is_durable
        self.inline = Inline()
        self.files = []

    def take(self, path, cut_bytes=0, limit=None):
        """Size and SHA-256 of a regular file. Raises OSError.

        `limit`: JSON lines, of which only so many bytes are kept.
        """
        fd = os.open(self._folder + "/" + path, READ_FLAGS)
        try:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode):
                raise OSError("{} is no regular file".format(path))
            if limit is not None and about.st_size > limit:
                cut_bytes = cut_middle(self._folder + "/" + path, limit)
            # One byte more than there is: a file that grew is read on.
            data = os.read(fd, min(about.st_size + 1, LARGEST_READ))
            digest, size = hashlib.sha256(data), len(data)
            if size == about.st_size:
                self.inline.offer(path, data)
            while data and size != about.st_size:
                data = os.read(fd, LARGEST_READ)
                digest.update(data)
                size += len(data)
            if self._is_durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        sha256 = digest.hexdigest()
        record = {"path": path, "size": size, "sha256": sha256, "cut_bytes": cut_bytes}
        self.files.append(record)


def write_exit(folder, job, record, cuts):
    """Complete the record with its files and make it exit.json; the exit event, a line."""
    is_durable = record["end_s"] - record["begin_s"] > DURABLE_AFTER_S
    gathering = _Gathering(folder, is_durable)
    _gather(gathering, folder, job, cuts)
    record["files"] = gathering.files
    try:
        text = _write_reserved(folder, record, is_durable)
    except OSError as error:
        # No room even for the list of files: say so in what the reserve holds.
        record["ended_by"], record["message"] = "full", str(error)
        record["files"] = record["files"][:3]
        text = _write_reserved(folder, record, is_durable)
    names = compact({key: record[key] for key in ("attempt_id", "boot_id")})
    event = '{{"event":"exit","attempt":{},"phase":"finished","exit":{},"inline":{}}}}}\n'
    return event.format(names[:-1], text, compact(gathering.inline.contents)).encode("ascii")


def _gather(gathering, folder, job, cuts):
    for name in ("stdout.log", "stderr.log"):
        gathering.take(name, cuts[name])
    try:
        gathering.take("events.jsonl", limit=EVENTS_LIMIT)
    except OSError:  # the payload wrote none, or put something else there
        pass
    found, skipped = find_artifacts(folder + "/artifacts", job["artifacts"])
    for path in found:
        try:
            gathering.take("artifacts/" + path)
        except OSError as error:
            skipped.append({"path": path, "reason": str(error)})
    if skipped and not is_disk_full(folder):
        with open(folder + "/skipped.json", "w") as file:
            json.dump(skipped, file, indent=1)
        gathering.take("skipped.json")


def _write_reserved(folder, record, is_durable):
    """Write into the space taken at the start, then rename: never half an exit.json.

    Blanks after JSON are JSON: filling the reserve is cheaper than cutting the file. Returns
    the JSON text.
    """
    text = compact(record)
    data = text.encode("ascii")
    fd = os.open(folder + "/exit.json.tmp", os.O_WRONLY)
    try:
        write_all(fd, data + b" " * max(0, RESERVE - len(data)))
        if os.fstat(fd).st_size > max(RESERVE, len(data)):  # a longer try failed before
            os.ftruncate(fd, max(RESERVE, len(data)))
        if is_durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(folder + "/exit.json.tmp", folder + "/exit.json")
    if is_durable:
        sync_folder(folder)
    return text

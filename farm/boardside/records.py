"""What an attempt leaves: its files with sizes and hashes, and exit.json."""

import hashlib
import json
import os
import re
import stat

from output import cut_middle
from wire import sync_folder, write_all

RESERVE = 4096  # room for exit.json, taken before the payload can fill the disk
EVENTS_LIMIT = 16 * 1024 * 1024
MOST_ARTIFACTS = 10000
FULL_BYTES = 65536  # less free space than this is a full disk
DURABLE_AFTER_S = 1.0
"""Attempts longer than this get their logs and artifacts fsynced too. Shorter ones are cheaper
to repeat than to sync, and a power cut shows: exit.json holds the hashes."""
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
    patterns = [glob_pattern(glob) for glob in globs]
    found, skipped = [], []

    def note(error):
        path = error.filename[len(folder) + 1:]
        skipped.append({"path": ascii(path)[1:-1], "reason": error.strerror})

    for base, folders, names in os.walk(folder, onerror=note):
        folders.sort()
        for name in sorted(names) + folders:
            path = os.path.join(base, name)
            relative = path[len(folder) + 1:]
            reason = _refusal(path, relative, patterns, len(found))
            if reason is None:
                found.append(relative)
            elif reason:
                skipped.append({"path": ascii(relative)[1:-1], "reason": reason})
    return found, skipped[:MOST_ARTIFACTS]


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


def file_record(folder, path, cut_bytes=0, is_durable=False):
    """Size and SHA-256 of a regular file of the attempt. Raises OSError."""
    fd = os.open(folder + "/" + path, READ_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("{} is no regular file".format(path))
        digest, size = hashlib.sha256(), 0
        while True:
            data = os.read(fd, 1024 * 1024)
            if not data:
                break
            digest.update(data)
            size += len(data)
        if is_durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    return {"path": path, "size": size, "sha256": digest.hexdigest(), "cut_bytes": cut_bytes}


def write_exit(folder, job, record, cuts):
    """Complete the record with its files and make it exit.json, durably."""
    is_durable = record["end_s"] - record["begin_s"] > DURABLE_AFTER_S
    record["files"] = list(_file_records(folder, job, cuts, is_durable))
    try:
        _write_reserved(folder, record)
    except OSError as error:
        # No room even for the list of files: say so in what the reserve holds.
        record["ended_by"], record["message"] = "full", str(error)
        record["files"] = record["files"][:3]
        _write_reserved(folder, record)


def _file_records(folder, job, cuts, is_durable):
    for name in ("stdout.log", "stderr.log"):
        yield file_record(folder, name, cuts[name], is_durable)
    try:
        cut = cut_middle(folder + "/events.jsonl", EVENTS_LIMIT)
        yield file_record(folder, "events.jsonl", cut, is_durable)
    except OSError:  # the payload removed it, or put something else there
        pass
    found, skipped = find_artifacts(folder + "/artifacts", job["artifacts"])
    for path in found:
        try:
            yield file_record(folder, "artifacts/" + path, 0, is_durable)
        except OSError as error:
            skipped.append({"path": path, "reason": str(error)})
    if skipped and not is_disk_full(folder):
        with open(folder + "/skipped.json", "w") as file:
            json.dump(skipped, file, indent=1)
        yield file_record(folder, "skipped.json", 0, is_durable)


def _write_reserved(folder, record):
    """Write into the space taken at the start, then rename: never half an exit.json.

    Blanks after JSON are JSON: filling the reserve is cheaper than cutting the file.
    """
    data = json.dumps(record, separators=(",", ":")).encode("ascii")
    fd = os.open(folder + "/exit.json.tmp", os.O_WRONLY)
    try:
        write_all(fd, data + b" " * max(0, RESERVE - len(data)))
        if os.fstat(fd).st_size > max(RESERVE, len(data)):  # a longer try failed before
            os.ftruncate(fd, max(RESERVE, len(data)))
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(folder + "/exit.json.tmp", folder + "/exit.json")
    sync_folder(folder)

"""Payloads on this board: files by content (`blobs/`), and folders made of them (`payloads/`).

A stored file gets one fixed time of change and no write permission. Whoever writes into it
through a payload's folder (root can) changes that time, so each start sees, for one lstat a
file, that a payload is what was sent. After a reboot the hashes are computed again, once:
that is cheaper than an fsync for each of some hundred files, and sees more.
"""

import hashlib
import os
import stat

from place import checked_digest, inside
from removal import remove_tree
from wire import (
    NO_SPACE,
    RequestError,
    as_request_error,
    compact,
    read_json,
    write_all,
    write_file,
)

STAMP_NS = 10**18  # 2001-09-09: no clock of ours will say so again
PIECE = 256 * 1024


PLAIN, EXECUTABLE = stat.S_IFREG | 0o444, stat.S_IFREG | 0o555
ALIAS_DIGITS = 12


def is_untouched(path, mode):
    """Whether a stored file is as it was stored, by its time of change and mode."""
    try:
        about = os.lstat(path)
    except OSError:
        return False
    return about.st_mtime_ns == STAMP_NS and about.st_mode == mode


def sha256_of(path):
    """Hash of a file, '' if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for data in iter(lambda: file.read(PIECE), b""):
                digest.update(data)
    except OSError:
        return ""
    return digest.hexdigest()


class Payloads:
    """The payloads of one work folder."""

    def __init__(self, place):
        self._place = place
        self._seen = {}  # marker -> (what its stat says, what it says)

    def _blob(self, sha256):
        return self._place.blobs + "/" + checked_digest(sha256)

    def missing_files(self, hashes):
        """Which files are not here."""
        return [sha for sha in hashes if not is_untouched(self._blob(sha), PLAIN)]

    def is_complete(self, digest):
        """Whether the payload's folder is here and untouched; a damaged one is thrown away."""
        folder, marker = self._folder(digest)
        about = self._marked(marker)
        if about is None:
            return False
        is_proven = about.get("boot_id") == self._place.boot_id()
        for file in about["files"]:
            path = folder + "/" + file["path"]
            is_good = is_untouched(path, EXECUTABLE if file["is_executable"] else PLAIN)
            if not is_good or not (is_proven or sha256_of(path) == file["sha256"]):
                self._discard(digest, file["sha256"])
                return False
        if not is_proven:
            self._mark(marker, about["files"])
        return True

    def _marked(self, marker):
        """What a payload's marker says; parsed again only when it changed."""
        try:
            seen = os.stat(marker)
        except OSError:
            return None
        stamp = (seen.st_ino, seen.st_size, seen.st_mtime_ns)
        if marker not in self._seen or self._seen[marker][0] != stamp:
            self._seen[marker] = (stamp, read_json(marker))
        return self._seen[marker][1]

    def alias(self, digest):
        """A short path of the payload's folder: short links need no block of the disk."""
        folder, link = self._folder(digest)[0], self._place.aliases + "/" + digest[:ALIAS_DIGITS]
        target = "../payloads/" + digest
        try:
            if not os.path.lexists(link):
                os.symlink(target, link)
            return link if os.readlink(link) == target else folder
        except OSError:  # no link, or made by another agent at the same time
            return folder

    def intact(self, digest):
        """The payload's folder; RequestError `not_found` when it must be sent again."""
        if not self.is_complete(digest):
            raise RequestError("not_found", "payload {} is not here".format(digest))
        return self._folder(digest)[0]

    def build(self, digest, files):
        """Make the payload's folder from stored files by hard link, atomically."""
        if self.is_complete(digest):
            return
        folder, marker = self._folder(digest)
        bad = [
            sha
            for sha in sorted({checked_digest(file.get("sha256")) for file in files})
            if sha256_of(self._blob(sha)) != sha
        ]
        if bad:
            for sha in bad:
                self._forget(sha)
            text = "{} files are absent or damaged".format(len(bad))
            raise RequestError("hash", text, missing=bad)
        temporary = "{}/tmp-{}-{}".format(self._place.payloads, os.getpid(), digest[:16])
        try:
            remove_tree(folder)
            os.makedirs(temporary)
            for file in files:
                self._place_file(temporary, file)
            _seal_folders(temporary)
            os.rename(temporary, folder)
            self._mark(marker, files)
        except OSError as error:
            raise as_request_error(error)
        finally:
            if os.path.isdir(temporary):
                remove_tree(temporary)

    def _place_file(self, folder, file):
        target = folder + "/" + inside(file.get("path"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        source = self._blob(file["sha256"])
        if file.get("is_executable"):
            # The mode belongs to the inode: the same content may be needed in both modes.
            if not is_untouched(source + ".x", EXECUTABLE):
                _store_copy(source, source + ".x", 0o555)
            source += ".x"
        try:
            os.link(source, target)
        except FileExistsError:
            raise RequestError("bad_request", "twice in the payload: {!r}".format(file["path"]))
        except OSError as error:  # a file system without hard links, or with all of them used
            if error.errno in NO_SPACE:
                raise
            _store_copy(source, target, stat.S_IMODE(os.stat(source).st_mode))

    def _folder(self, digest):
        folder = self._place.payloads + "/" + checked_digest(digest)
        return folder, folder + ".json"

    def _mark(self, marker, files):
        kept = [
            {key: file.get(key, False) for key in ("path", "sha256", "is_executable")}
            for file in files
        ]
        about = {"boot_id": self._place.boot_id(), "files": kept}
        write_file(marker, compact(about).encode("ascii"))

    def _discard(self, digest, bad_sha):
        folder, marker = self._folder(digest)
        os.unlink(marker)
        remove_tree(folder)
        self._forget(bad_sha)

    def _forget(self, sha256):
        for path in (self._blob(sha256), self._blob(sha256) + ".x"):
            if os.path.exists(path):
                os.unlink(path)

    def clean(self, digests_in_use):
        """Remove what no running attempt uses; the number of bytes freed."""
        before = os.statvfs(self._place.work)
        for name in os.listdir(self._place.payloads):
            if name.split(".")[0] not in digests_in_use:
                path = self._place.payloads + "/" + name
                remove_tree(path) if os.path.isdir(path) else os.unlink(path)
        for name in os.listdir(self._place.blobs):
            os.unlink(self._place.blobs + "/" + name)
        for name in os.listdir(self._place.aliases):
            if not any(digest.startswith(name) for digest in digests_in_use):
                os.unlink(self._place.aliases + "/" + name)
        after = os.statvfs(self._place.work)
        return max(0, (after.f_bavail - before.f_bavail) * after.f_frsize)


def _seal_folders(top):
    for base, _folders, _names in os.walk(top):
        os.chmod(base, 0o555)


def _seal(path, mode):
    os.chmod(path, mode)
    os.utime(path, ns=(STAMP_NS, STAMP_NS))


def _store_copy(source, target, mode):
    temporary = "{}.{}.tmp".format(target, os.getpid())
    with open(source, "rb") as given, open(temporary, "wb") as taken:
        for data in iter(lambda: given.read(PIECE), b""):
            taken.write(data)
    _seal(temporary, mode)
    os.rename(temporary, target)


def receive(place, stream):
    """Store the files of a tar stream, each named by its SHA-256: (number, bytes).

    Raises RequestError: `hash` when a file is not what its name says, `no_space`, `io`.
    """
    import tarfile  # here: the agent itself stays small, each fork copies its page tables

    count, total, wrong = 0, 0, []
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                sha256 = checked_digest(member.name)
                if not member.isreg():
                    raise RequestError("bad_request", "no regular file: " + sha256)
                if _store(place, sha256, tar.extractfile(member)):
                    count, total = count + 1, total + member.size
                else:
                    wrong.append(sha256)
    except tarfile.TarError as error:
        raise RequestError("io", "the stream is damaged: {}".format(error))
    except OSError as error:
        raise as_request_error(error)
    if wrong:
        text = "{} files are not what was announced".format(len(wrong))
        raise RequestError("hash", text, missing=wrong)
    return count, total


def _store(place, sha256, source):
    """Write one file under a temporary name; keep it only if its hash fits."""
    temporary = "{}/{}.{}.tmp".format(place.blobs, sha256, os.getpid())
    digest = hashlib.sha256()
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        try:
            for data in iter(lambda: source.read(PIECE), b""):
                digest.update(data)
                write_all(fd, data)
        finally:
            os.close(fd)
        if digest.hexdigest() != sha256:
            return False
        _seal(temporary, 0o444)
        os.rename(temporary, place.blobs + "/" + sha256)
        return True
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)

"""Payloads on this board: files by content (`blobs/`), and folders made of them (`payloads/`).

A stored file gets a time of change that only we give (stamps.py) and no write permission.
Whoever writes into it through a payload's folder (root can) changes that time, so each start
sees, for one lstat a file, that a payload is what was sent. After a reboot the hashes are
computed again, once: that is cheaper than an fsync for each of some hundred files, and sees more.
"""

import hashlib
import os
import stat

from place import checked_digest, inside
from removal import remove_tree
from stamps import EXECUTABLE, PLAIN, is_untouched, seal, stamp_of
from wire import NO_SPACE, RequestError, as_request_error, compact, read_json, write_file

PIECE = 256 * 1024
ALIAS_DIGITS = 12


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
        hashes = sorted({checked_digest(file.get("sha256")) for file in files})
        bad = [sha for sha in hashes if not self._is_proven(sha)]
        if bad:
            for sha in bad:
                self._forget(sha)
            text = "{} files are absent or damaged".format(len(bad))
            raise RequestError("hash", text, missing=bad)
        temporary = "{}/tmp-{}-{}".format(self._place.payloads, os.getpid(), digest[:16])
        try:
            remove_tree(folder)
            os.makedirs(temporary)
            made = {temporary}
            for file in files:
                self._place_file(temporary, file, made)
            _seal_folders(temporary)
            os.rename(temporary, folder)
            self._mark(marker, files)
        except OSError as error:
            raise as_request_error(error)
        finally:
            if os.path.isdir(temporary):
                remove_tree(temporary)

    def _is_proven(self, sha):
        """Whether a stored file is what its name says: hashed in this boot, or else now."""
        path, stamp = self._blob(sha), self._stamp()
        if is_untouched(path, PLAIN, stamp):
            return True
        if sha256_of(path) != sha:
            return False
        try:
            seal(path, stamp, stat.S_IMODE(PLAIN))
        except OSError as error:
            raise as_request_error(error)
        return True

    def _stamp(self):
        return stamp_of(self._place.boot_id())

    def _place_file(self, folder, file, made):
        target = folder + "/" + inside(file.get("path"))
        above = os.path.dirname(target)
        if above not in made:
            os.makedirs(above, exist_ok=True)
            made.add(above)
        source = self._blob(file["sha256"])
        if file.get("is_executable"):
            # The mode belongs to the inode: the same content may be needed in both modes.
            if not is_untouched(source + ".x", EXECUTABLE, self._stamp()):
                _store_copy(source, source + ".x", 0o555, self._stamp())
            source += ".x"
        try:
            os.link(source, target)
        except FileExistsError:
            raise RequestError("bad_request", "twice in the payload: {!r}".format(file["path"]))
        except OSError as error:  # a file system without hard links, or with all of them used
            if error.errno in NO_SPACE:
                raise
            mode = stat.S_IMODE(os.stat(source).st_mode)
            _store_copy(source, target, mode, self._stamp())

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


def _store_copy(source, target, mode, stamp):
    temporary = "{}.{}.tmp".format(target, os.getpid())
    with open(source, "rb") as given, open(temporary, "wb") as taken:
        for data in iter(lambda: given.read(PIECE), b""):
            taken.write(data)
    seal(temporary, stamp, mode)
    os.rename(temporary, target)

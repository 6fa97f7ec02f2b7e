"""Folders removed with all that payloads left in them, whoever made it how deep."""

import binascii
import os

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def remove_tree(folder):
    """Remove a folder, also one whose folders were made read-only. Never raises.

    What cannot be removed (another user's) stays: the caller sees that the folder is there.
    """
    for is_unlocked in (False, True):
        try:
            _remove_all(folder)
        except FileNotFoundError:
            return
        except OSError:
            if not is_unlocked:
                _unlock_folders(folder)


def throw_away(folder, trash):
    """Move a folder to the trash: to the caller it is gone, whatever it takes to remove it."""
    name = os.path.basename(folder) + "." + binascii.hexlify(os.urandom(4)).decode("ascii")
    try:
        os.rename(folder, trash + "/" + name)
    except OSError:  # a folder that was made read-only
        remove_tree(folder)


class Sweeper:
    """Empties the trash. What cannot be removed (another user's) is tried once.

    `save(folder)` may first move away what is worth keeping.
    """

    def __init__(self, trash, save):
        self._trash, self._save = trash, save
        self._stuck = set()

    def sweep(self):
        """Remove what is there."""
        try:
            names = os.listdir(self._trash)
        except OSError:
            return
        for name in names:
            if name not in self._stuck:
                self._save(self._trash + "/" + name)
                remove_tree(self._trash + "/" + name)
                if os.path.lexists(self._trash + "/" + name):
                    self._stuck.add(name)


def _remove_all(folder):
    """Descriptors, not paths, lead the way down: links are not followed. Raises OSError.

    Folders below the first are moved up before they are emptied, so that a tree of any
    depth needs two descriptors and no recursion.
    """
    top = os.open(folder, FOLDER)
    try:
        waiting = _unlink_files(top)
        moved, prefix = 0, ".farm-" + os.urandom(6).hex() + "-"
        while waiting:
            name = waiting.pop()
            here = os.open(name, FOLDER, dir_fd=top)
            try:
                for below in _unlink_files(here):
                    moved += 1
                    os.rename(below, prefix + str(moved), src_dir_fd=here, dst_dir_fd=top)
                    waiting.append(prefix + str(moved))
            finally:
                os.close(here)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _unlink_files(fd):
    """Remove all but folders; the names of those."""
    folders = []
    for name in os.listdir(fd):
        try:
            os.unlink(name, dir_fd=fd)
        except IsADirectoryError:
            folders.append(name)
    return folders


def _unlock_folders(top):
    """Let us into all folders; from the top, so that the walk gets further each time."""
    for base, folders, _names in os.walk(top):
        for path in [base] + [base + "/" + name for name in folders]:
            try:
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
            except OSError:  # another user's
                continue

"""The mark that a stored file carries: its time of change, and no write permission.

The time is one second of 2001, which no clock of ours will say again. Its nanoseconds name the
boot in which the content was hashed: what an earlier boot wrote may have been torn by a power
cut under its name and time. A file system that keeps no nanoseconds only costs more hashing.
"""

import hashlib
import os
import stat

SECOND_NS = 10**9
STAMP_NS = SECOND_NS * SECOND_NS
PLAIN, EXECUTABLE = stat.S_IFREG | 0o444, stat.S_IFREG | 0o555


def stamp_of(boot_id):
    """The time of change, in ns, of a file that was hashed in this boot."""
    digest = hashlib.sha256(boot_id.encode("utf-8", "replace")).hexdigest()
    return STAMP_NS + 1 + int(digest[:7], 16)


def is_untouched(path, mode, stamp=None):
    """Whether a stored file is as it was stored; with `stamp`, and was hashed in that boot."""
    try:
        about = os.lstat(path)
    except OSError:
        return False
    changed = about.st_mtime_ns
    is_ours = STAMP_NS <= changed < STAMP_NS + SECOND_NS if stamp is None else changed == stamp
    return is_ours and about.st_mode == mode


def seal(path, stamp, mode=None):
    """Mark a file, or an open one, as stored. Raises OSError."""
    if mode is not None:
        os.chmod(path, mode)
    os.utime(path, ns=(stamp, stamp))

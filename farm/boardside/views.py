"""An attempt's working folder: a link to each entry of its payload, which costs no copy.

A folder that its attempt left as it was given is kept for the next one of that payload: links
are made and removed more dearly than looked at, and some file systems (ext4) find free inodes
the slower the more of them were freed within the last seconds.
"""

import os
import stat

from removal import FOLDER, remove_tree

MODE = 0o755


class Views:
    """Makes working folders; `spare/` has at most one for each payload."""

    def __init__(self, place):
        self._spare, self._aliases = place.spare, place.aliases

    def make(self, source, target):
        """A folder `target` with links to all in `source`. Raises OSError."""
        aliases, _, name = source.rpartition("/")
        if aliases == self._aliases:
            try:
                os.rename(self._spare + "/" + name, target)
                return
            except OSError:  # there is none
                pass
        os.mkdir(target)
        os.chmod(target, MODE)
        for name in os.listdir(source):
            os.symlink(source + "/" + name, target + "/" + name)

    def keep(self, view):
        """Make a folder that is no more needed a spare one, if it is as it was made."""
        try:
            source = self._source(view)
            if source is not None:
                os.rename(view, self._spare + "/" + os.path.basename(source))
        except OSError:  # there is a spare one, or the payload is gone
            return

    def _source(self, view):
        """What an untouched view links to, or None."""
        here = os.open(view, FOLDER)
        try:
            names = os.listdir(here)
            if not names or stat.S_IMODE(os.fstat(here).st_mode) != MODE:
                return None
            source = os.path.dirname(os.readlink(names[0], dir_fd=here))
            if os.path.dirname(source) != self._aliases:
                return None
            if sorted(names) != sorted(os.listdir(source)):
                return None
            for name in names:
                if os.readlink(name, dir_fd=here) != source + "/" + name:
                    return None
            return source
        finally:
            os.close(here)

    def clear(self):
        """Remove the spare ones."""
        for name in os.listdir(self._spare):
            remove_tree(self._spare + "/" + name)

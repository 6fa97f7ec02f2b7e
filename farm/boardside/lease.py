"""Who holds the board: a file with an expiry on the boot-time clock."""

import fcntl
import json
import os

from place import boot_time
from wire import RequestError, read_json, write_file

LONGEST_S = 7 * 24 * 3600.0


class LeaseFile:
    """`lease.json` in the work folder, changed only under its lock.

    A lease of another boot is void: the clock it is told in began anew.
    """

    def __init__(self, place):
        self._place = place
        self.path = place.work + "/lease.json"

    def take(self, run_id, holder, ttl_s):
        """Take or renew; RequestError `held` while another run holds it."""
        if not 0 < ttl_s <= LONGEST_S:
            raise RequestError("bad_request", "ttl_s must be in (0, {}]".format(LONGEST_S))
        with locked(self.path):
            present = self._valid()
            if present is not None and present["run_id"] != run_id:
                left = present["expires_s"] - boot_time()
                text = "run {run_id} of {holder} holds the board".format(**present)
                text = "{} for {:.0f} s more".format(text, left)
                raise RequestError("held", text, lease=present, left_s=left)
            return self.seize(run_id, holder, ttl_s)

    def seize(self, run_id, holder, ttl_s):
        """Write the lease, whoever had it; the caller holds the lock."""
        lease = {
            "run_id": run_id,
            "holder": holder,
            "boot_id": self._place.boot_id(),
            "expires_s": boot_time() + ttl_s,
        }
        write_file(self.path, json.dumps(lease).encode("ascii"), is_durable=True)
        return lease

    def release(self, run_id):
        """Give back; not ours is no error."""
        with locked(self.path):
            self.forget(run_id)

    def forget(self, run_id):
        """Remove the run's lease; the caller holds the lock."""
        present = read_json(self.path)
        if present is not None and present.get("run_id") == run_id:
            os.unlink(self.path)

    def show(self):
        """The lease that holds now, or None."""
        return self._valid()

    def _valid(self):
        lease = read_json(self.path)
        if lease is None or set(lease) != {"run_id", "holder", "boot_id", "expires_s"}:
            return None
        is_current = lease["boot_id"] == self._place.boot_id()
        return lease if is_current and lease["expires_s"] > boot_time() else None


class locked:
    """Holds the lock of a file; the work under it takes milliseconds."""

    def __init__(self, path):
        self._path = path + ".lock"
        self._fd = -1

    def __enter__(self):
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_):
        os.close(self._fd)

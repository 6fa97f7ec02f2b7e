"""Attempts on this board: started once, told of, stopped, read, removed."""

import fcntl
import os
import signal
import stat
import time

import processes
import records
from launch import STOP_MODE
from place import boot_time, inside
from removal import remove_tree, throw_away
from wire import (
    RequestError,
    as_request_error,
    number_of,
    ordered,
    read_json,
    texts_of,
    write_new,
)

YOUNG_S = 10.0  # a folder without a lock file may still be in the making for this long
LARGEST_PIECE = 1024 * 1024


def checked_job(request):
    """The job of a start request with every field of the right type; RequestError otherwise."""
    job = request.get("job")
    if not isinstance(job, dict):
        raise RequestError("bad_request", "job must be an object")
    environment = job.get("environment", {})
    if not isinstance(environment, dict) or not isinstance(job.get("params", {}), dict):
        raise RequestError("bad_request", "environment and params must be objects")
    if not texts_of(job, "argv"):
        raise RequestError("bad_request", "argv is empty")
    for text in job["argv"] + list(environment) + list(environment.values()):
        if not isinstance(text, str) or "\0" in text:
            raise RequestError("bad_request", "argv and environment must be texts without NUL")
    if any("=" in name or not name for name in environment):
        raise RequestError("bad_request", "a name of the environment has '='")
    limits = {}
    for name in ("time_limit_s", "memory_limit_mb"):
        limits[name] = None if job.get(name) is None else number_of(job, name)
    checked = {
        "attempt_id": job.get("attempt_id"),
        "payload_digest": job.get("payload_digest"),
        "argv": job["argv"],
        "params": job.get("params", {}),
        "environment": environment,
        "output_limit": max(4096, int(number_of(job, "output_limit", 16 * 1024 * 1024))),
        "artifacts": texts_of(job, "artifacts"),
    }
    checked.update(limits)
    return checked


class Attempts:
    """The attempts of one work folder. `payloads` tells where a payload lies, intact."""

    def __init__(self, place, payloads, supervisors, views):
        self._place = place
        self._payloads = payloads
        self._supervisors, self._views = supervisors, views

    def start(self, request):
        """Start a job unless its attempt exists: (its id, whether it was started now)."""
        job = checked_job(request)
        folder = self._place.attempt(job["attempt_id"])
        if os.path.isdir(folder):
            return job["attempt_id"], False
        payload = self._payloads.intact(job["payload_digest"])
        try:
            os.mkdir(folder)
        except FileExistsError:
            return job["attempt_id"], False
        try:
            environment = self._lay_out(folder, job, payload)
            order = dict(job, params=None, environment=environment)
            self._supervisors.begin(job["attempt_id"], folder, order)
        except OSError as error:
            remove_tree(folder)
            raise as_request_error(error)
        return job["attempt_id"], True

    def _lay_out(self, folder, job, payload):
        """Write what the payload gets; what its environment gets beside the agent's."""
        about = dict(job, boot_id=self._place.boot_id(), t=boot_time())
        write_new(folder + "/job.json", ordered(about).encode("ascii"))
        write_new(folder + "/params.json", ordered(job["params"]).encode("ascii"))
        records.take_reserve(folder)
        os.mkdir(folder + "/artifacts")
        self._views.make(self._payloads.alias(job["payload_digest"]), folder + "/work")
        helpers = self._place.helpers()
        environment = dict(job["environment"])
        inherited = environment.get("PYTHONPATH", os.environ.get("PYTHONPATH"))
        environment["PYTHONPATH"] = helpers + (":" + inherited if inherited else "")
        environment["FARM_PARAMS"] = folder + "/params.json"
        environment["FARM_EVENTS"] = folder + "/events.jsonl"
        environment["FARM_OUT"] = folder + "/artifacts"
        environment["FARM_ATTEMPT"] = job["attempt_id"]
        environment["FARM_PAYLOAD"] = payload
        environment["FARM_SH"] = helpers + "/farm_payload.sh"
        return environment

    def status(self, attempt_id):
        """What is known of an attempt, as the host's AttemptStatus; small files inline."""
        folder = self._place.attempt(attempt_id)
        answer = {"attempt_id": attempt_id, "boot_id": self._place.boot_id(), "phase": "absent"}
        if not os.path.isdir(folder):
            return answer
        is_alive = self.is_alive(folder)  # asked first: exit.json is written before it dies
        record = read_json(folder + "/exit.json")
        if record is not None:
            answer.update(phase="finished", boot_id=record.get("boot_id", ""), exit=record)
            answer["inline"] = self._inline(folder, record)
            return answer
        about = read_json(folder + "/job.json") or {}
        is_same_boot = about.get("boot_id", answer["boot_id"]) == answer["boot_id"]
        answer["boot_id"] = about.get("boot_id", answer["boot_id"])
        answer["phase"] = "running" if is_alive and is_same_boot else "lost"
        if answer["phase"] == "lost" and is_same_boot:
            processes.kill_all(processes.marked(folder), signal.SIGKILL)
        return answer

    def is_alive(self, folder):
        """Whether a supervisor holds the attempt's lock, or may be about to."""
        try:
            fd = os.open(folder + "/lock", os.O_RDONLY)
        except OSError:
            return self._is_young(folder)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def _is_young(self, folder):
        try:
            return abs(time.time() - os.stat(folder).st_mtime) < YOUNG_S
        except OSError:
            return False

    def _inline(self, folder, record):
        """Contents of the files, smallest needs first come: in order, while there is room."""
        inline = records.Inline()
        for file in record.get("files", []):
            if file["size"] <= inline.room:
                try:
                    data = self._piece(folder, file["path"], 0, inline.room)
                except (OSError, RequestError):  # changed since: the host asks, and is told
                    continue
                inline.offer(file["path"], data)
        return inline.contents

    def stop(self, attempt_id):
        """Ask the supervisor to end the payload."""
        folder = self._place.attempt(attempt_id)
        if not os.path.exists(folder + "/exit.json") and self.is_alive(folder):
            self._ask_to_stop(folder)
        return self.status(attempt_id)

    def _ask_to_stop(self, folder):
        """The lock's mode says which attempt the signal is for: the supervisor may be at the next.

        It looks at it when a signal comes, and once it has written who it is. A mode can be
        changed also when the disk is full.
        """
        try:
            os.chmod(folder + "/lock", STOP_MODE)
        except OSError as error:
            raise as_request_error(error)
        who = read_json(folder + "/lock")
        if who is not None and processes.start_ticks(who.get("pid")) == who.get("start"):
            processes.kill_all([who["pid"]], signal.SIGUSR1)

    def read_file(self, attempt_id, path, offset, limit):
        """A piece of one of the attempt's files: (data, size)."""
        folder = self._place.attempt(attempt_id)
        try:
            data = self._piece(folder, path, offset, min(limit, LARGEST_PIECE))
            return data, os.stat(folder + "/" + path).st_size
        except FileNotFoundError:
            raise RequestError("not_found", "no {} in {}".format(path, attempt_id))
        except OSError as error:
            raise as_request_error(error)

    def _piece(self, folder, path, offset, limit):
        full = folder + "/" + inside(path)
        if os.path.realpath(full) != os.path.realpath(folder) + "/" + path:  # a link on the way
            raise RequestError("bad_request", "outside the attempt: {!r}".format(path))
        fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise RequestError("bad_request", "no regular file: {!r}".format(path))
            return os.pread(fd, limit, offset)
        finally:
            os.close(fd)

    def remove(self, attempt_ids):
        """Remove attempts that do not run: (removed, kept)."""
        removed, kept = [], []
        for attempt_id in attempt_ids:
            folder = self._place.attempt(attempt_id)
            if not os.path.isdir(folder):
                removed.append(attempt_id)
            elif not os.path.exists(folder + "/exit.json") and self.is_alive(folder):
                kept.append(attempt_id)
            else:
                remove_tree(folder)
                (kept if os.path.isdir(folder) else removed).append(attempt_id)
        return removed, kept

    def throw_away(self, attempt_ids):
        """Let attempts that do not run be gone; their files are removed beside us."""
        for attempt_id in attempt_ids:
            folder = self._place.attempt(attempt_id)
            is_over = os.path.exists(folder + "/exit.json") or not self.is_alive(folder)
            if is_over and os.path.isdir(folder):
                throw_away(folder, self._place.trash)
        self._supervisors.sweep()

    def all_ids(self):
        """Ids of all attempts that lie here."""
        return sorted(os.listdir(self._place.attempts))

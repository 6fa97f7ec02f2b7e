"""What can be asked of the agent: one method an operation."""

import os

import facts
from attempts import Attempts
from blobs import Payloads
from commands import Command
from lease import LeaseFile
from place import boot_time
from removal import Sweeper, remove_tree
from standing import Supervisors
from telemetry import Telemetry
from views import Views
from watchdog import Restore
from wire import RequestError, line, number_of, packed, read_json, sync_tree, text_of, texts_of

READ_LIMIT = 1024 * 1024
PIECE = 128 * 1024


class Operations:
    """The table of operations. A method's None means: answered later."""

    def __init__(self, agent):
        self._agent = agent
        self._place = agent.place
        self._payloads = Payloads(agent.place)
        self._views = Views(agent.place)
        sweeper = Sweeper(agent.place.trash, lambda folder: self._views.keep(folder + "/work"))
        supervisors = Supervisors(agent, agent.place.boot_id(), sweeper, self._tell_end)
        self._attempts = Attempts(agent.place, self._payloads, supervisors, self._views)
        self._lease = LeaseFile(agent.place)
        self._restore = Restore(agent.place, self._lease, self._attempts)
        self._watched = set()  # attempts whose end will be told
        self._telemetry = Telemetry(agent, self._own_trees, lambda: len(self._watched))
        agent.call_when_due(self._telemetry)
        names = (
            "clock hello facts run read temperature has build clean start status stop watch"
            " telemetry_start telemetry_stop"
            " read_file follow remove list lease_take lease_release lease_show"
            " restore_keep restore_show restore_drop"
        )
        self._table = {name: getattr(self, "_" + name) for name in names.split()}

    def serve(self, request):
        """Do one request; the fields of its answer."""
        operation = self._table.get(request.get("op"))
        if operation is None:
            raise RequestError("bad_request", "no such operation: {!r}".format(request.get("op")))
        return operation(request)

    def _clock(self, _request):
        return {"t": boot_time()}

    def _hello(self, _request):
        return facts.hello(self._place)

    def _facts(self, _request):
        return facts.facts(self._place)

    def _temperature(self, _request):
        return {"celsius": facts.temperature(self._place)}

    def _run(self, request):
        self._agent.run_command(Command(request), request.get("id"))

    def _read(self, request):
        limit = min(int(number_of(request, "limit", READ_LIMIT)), READ_LIMIT)
        data = self._place.read(text_of(request, "path"), limit)
        return {"data": None if data is None else packed(data)}

    def _has(self, request):
        digests = texts_of(request, "payloads")
        absent = [digest for digest in digests if not self._payloads.is_complete(digest)]
        files = self._payloads.missing_files(texts_of(request, "files"))
        return {"missing_files": files, "missing_payloads": absent}

    def _build(self, request):
        files = request.get("files")
        if not isinstance(files, list) or not all(isinstance(file, dict) for file in files):
            raise RequestError("bad_request", "files must be a list of objects")
        self._payloads.build(text_of(request, "digest"), files)
        return {}

    def _clean(self, _request):
        in_use = set()
        for attempt_id in self._attempts.all_ids():
            if self._attempts.status(attempt_id)["phase"] == "running":
                about = read_json(self._place.attempt(attempt_id) + "/job.json") or {}
                in_use.add(str(about.get("payload_digest")))
        self._views.clear()
        return {"freed": self._payloads.clean(in_use)}

    def _start(self, request):
        attempt_id, is_begun = self._attempts.start(request)
        removals = texts_of(request, "remove")
        if removals:
            self._agent.later(lambda: self._attempts.throw_away(removals))
        if not is_begun:
            return {"status": self._watched_status(attempt_id)}
        self._watched.add(attempt_id)
        self._agent.later(self._telemetry.mark)
        status = {"attempt_id": attempt_id, "phase": "running", "boot_id": self._place.boot_id()}
        return {"status": status}

    def _tell_end(self, attempt_id, event):
        """Send the exit event; without one by what lies in the attempt's folder."""
        if event is None:
            status = self._attempts.status(attempt_id)
            if status["phase"] == "running":  # a dying supervisor's pipe may close before its lock
                self._watch_lock(attempt_id)
                return
            event = line({"event": "exit", "attempt": status})
        self._watched.discard(attempt_id)
        self._agent.send_line(event)
        self._agent.later(self._telemetry.mark)  # after the event: it holds up nobody

    def _watch_lock(self, attempt_id):
        watcher = Watcher(self._tell_end, self._attempts, self._place, attempt_id)
        self._agent.add_ticker(watcher)

    def _watched_status(self, attempt_id):
        """The status; when it runs, its end is told, also if another agent started it."""
        status = self._attempts.status(attempt_id)
        if status["phase"] == "running" and attempt_id not in self._watched:
            self._watched.add(attempt_id)
            self._watch_lock(attempt_id)
        return status

    def _telemetry_start(self, request):
        return self._telemetry.start(request)

    def _telemetry_stop(self, _request):
        self._telemetry.stop()
        return {}

    def _own_trees(self):
        """The processes below which all are ours: this one, and supervisors of earlier agents."""
        locks = [self._place.attempt(each) + "/lock" for each in self._watched]
        return [os.getpid()] + [(read_json(lock) or {}).get("pid") for lock in locks]

    def close(self):
        """The agent ends."""
        self._telemetry.stop()

    def _status(self, request):
        return {"status": self._attempts.status(text_of(request, "attempt"))}

    def _watch(self, request):
        return {"status": self._watched_status(text_of(request, "attempt"))}

    def _stop(self, request):
        return {"status": self._attempts.stop(text_of(request, "attempt"))}

    def _read_file(self, request):
        data, size = self._attempts.read_file(
            text_of(request, "attempt"),
            text_of(request, "path"),
            int(number_of(request, "offset", 0)),
            int(number_of(request, "limit", PIECE)),
        )
        is_end = int(number_of(request, "offset", 0)) + len(data) >= size
        return {"data": packed(data), "size": size, "is_end": is_end}

    def _follow(self, request):
        attempt_id, path = text_of(request, "attempt"), text_of(request, "path")
        if request.get("stop"):
            self._agent.drop_tickers(lambda each: each.name == (attempt_id, path))
            return {}
        offset = int(number_of(request, "offset", 0))
        follower = Follower(self._agent, self._attempts, attempt_id, path, offset)
        self._agent.drop_tickers(lambda each: each.name == follower.name)
        self._agent.add_ticker(follower)
        return {}

    def _remove(self, request):
        removed, kept = self._attempts.remove(texts_of(request, "attempts"))
        return {"removed": removed, "kept": kept}

    def _list(self, _request):
        found = []
        for attempt_id in self._attempts.all_ids():
            status = self._attempts.status(attempt_id)
            status.pop("inline", None)
            found.append(status)
        return {"attempts": found}

    def _lease_take(self, request):
        lease = self._lease.take(
            text_of(request, "run"), text_of(request, "holder"), number_of(request, "ttl_s")
        )
        return {"lease": lease}

    def _lease_release(self, request):
        self._lease.release(text_of(request, "run"))
        self._restore.wake()
        return {}

    def _lease_show(self, _request):
        return {"lease": self._lease.show()}

    def _restore_keep(self, request):
        steps = request.get("steps")
        if not isinstance(steps, list):
            raise RequestError("bad_request", "steps must be a list")
        self._restore.keep(text_of(request, "run"), steps)
        return {}

    def _restore_show(self, _request):
        return {"restore": self._restore.show()}

    def _restore_drop(self, request):
        self._restore.drop(text_of(request, "run"))
        return {}


class Watcher:
    """Notices by its lock that an attempt ended whose supervisor tells us nothing."""

    is_busy = False

    def __init__(self, tell, attempts, place, attempt_id):
        self.name = (attempt_id, None)
        self._tell, self._attempts = tell, attempts
        self._folder = place.attempt(attempt_id)

    def tick(self):
        """Look; False at the end."""
        if self._attempts.is_alive(self._folder):
            return True
        self._tell(self.name[0], None)
        return False


class Follower:
    """Sends what is new in a file until its attempt has ended and all was sent."""

    def __init__(self, agent, attempts, attempt_id, path, offset):
        self.name = (attempt_id, path)
        self.is_busy = True
        self._agent, self._attempts, self._offset = agent, attempts, offset
        self._folder = agent.place.attempt(attempt_id)

    def tick(self):
        """Send at most one piece; False at the end."""
        is_alive = self._attempts.is_alive(self._folder)  # before the read: nothing is missed
        try:
            data, _ = self._attempts.read_file(self.name[0], self.name[1], self._offset, PIECE)
        except RequestError as error:
            if error.kind == "not_found" and is_alive:  # not written yet
                self.is_busy = False
                return True
            self._send("end", error=error.as_answer())
            return False
        if data:
            self._send("data", offset=self._offset, data=packed(data))
            self._offset += len(data)
        self.is_busy = len(data) == PIECE or bool(data and not is_alive)
        if data or is_alive:
            return True
        self._send("end")
        return False

    def _send(self, event, **fields):
        self._agent.send(dict(fields, event=event, attempt=self.name[0], path=self.name[1]))


def unpack_helpers(place):
    """Lay the payload helpers of this version where payloads find them. Raises OSError."""
    target = place.helpers()
    if os.path.isdir(target):
        return
    import py_compile  # here: needed once per version
    import zipfile

    temporary = "{}.{}.tmp".format(target, os.getpid())
    os.makedirs(temporary, exist_ok=True)
    with zipfile.ZipFile(place.pyz) as bundle:
        for name in bundle.namelist():
            if name.startswith("payload_helpers/"):
                path = temporary + "/" + os.path.basename(name)
                with open(path, "wb") as file:
                    file.write(bundle.read(name))
    # Compiled once here: payloads run with bytecode writing off.
    py_compile.compile(temporary + "/farm_payload.py", doraise=False)
    sync_tree(temporary)  # what is there after a power cut is taken to be whole
    try:
        os.rename(temporary, target)
    except OSError:  # another agent of ours was quicker
        remove_tree(temporary)
        if not os.path.isdir(target):
            raise

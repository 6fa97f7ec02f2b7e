"""fabric (over paramiko). It is given no known_hosts: unlike the others it verifies nothing."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fabric

from benchmarks.clients.payloads import Targets
from benchmarks.lab import Fleet
from benchmarks.turns import Client


def open_group(fleet: Fleet) -> fabric.ThreadingGroup:
    """All boards; connects with the first command."""
    return fabric.ThreadingGroup(
        *fleet.hosts,
        user=fleet.user,
        port=fleet.port,
        config=fabric.Config(overrides={"load_ssh_configs": False}),
        connect_timeout=120,
        connect_kwargs={
            "key_filename": str(fleet.client_key),
            "allow_agent": False,
            "look_for_keys": False,
            "banner_timeout": 120,
            "auth_timeout": 120,
        },
    )


def run_true(group: fabric.ThreadingGroup) -> None:
    """`true` on all boards."""
    if group.run("true", hide=True, in_stream=False).failed:
        raise RuntimeError("a board failed")


class FanOut(Client):
    """`true` over a fresh connection to each board, a thread a board."""

    def run(self) -> None:
        group = open_group(self.fleet)
        run_true(group)
        group.close()


class Kept(Client):
    """Commands over kept connections, one at a time a board."""

    def setup(self) -> None:
        self.group = open_group(self.fleet)
        run_true(self.group)

    def run(self) -> None:
        for _ in range(int(self.settings["operations"]) // len(self.fleet.hosts)):
            run_true(self.group)

    def close(self) -> None:
        self.group.close()


class Put(Client):
    """`put` of each file over kept connections."""

    def setup(self) -> None:
        self.targets = Targets(self.fleet, str(self.settings["shape"]))
        self.group = open_group(self.fleet)
        run_true(self.group)

    def run(self) -> None:
        with ThreadPoolExecutor(len(self.fleet.hosts)) as pool:
            list(pool.map(self._one, self.group))

    def _one(self, connection: fabric.Connection) -> None:
        source, target = self.targets.source, self.targets.folders[connection.host]
        sftp = connection.sftp()
        for folder, folders, files in os.walk(source):
            there = target / Path(folder).relative_to(source)
            for name in folders:
                sftp.mkdir(str(there / name))
            for name in files:
                connection.put(str(Path(folder) / name), str(there / name))

    def check(self) -> None:
        self.targets.check()

    def close(self) -> None:
        self.group.close()
        self.targets.remove()

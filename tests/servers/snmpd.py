"""A real snmpd on loopback whose power strip is a ``pass_persist`` script and a file."""

import json
import shutil
import signal
import socket
import sys
from pathlib import Path

from farm.testing.meter_contract import Fault
from tests.servers.program import Program

SNMPD = shutil.which("snmpd", path="/usr/local/sbin:/usr/sbin:/usr/bin")
COMMUNITY, USER, PASSPHRASE = "not-a-secret", "farm", "not-a-secret-phrase"

STRIP = """
import json, os, sys
file = sys.argv[1]

def line():
    text = sys.stdin.readline()
    if not text:
        sys.exit()
    return text.strip()

def say(*lines):
    sys.stdout.write("".join(l + chr(10) for l in lines))
    sys.stdout.flush()

while True:
    word = line()
    if not word:  # comes after the value of a SET
        continue
    if word == "PING":
        say("PONG")
    elif word == "get":
        oid = line()
        with open(file) as f:
            told = json.load(f)
        value = told.get(oid)
        if value is None:
            say("NONE")
        else:
            say(oid, "string" if isinstance(value, str) else "integer", str(value))
    elif word == "set":
        oid, value = line(), line()
        with open(file) as f:
            told = json.load(f)
        told["set"] = [oid, int(value.split()[1])]
        with open(file + ".new", "w") as f:
            json.dump(told, f)
        os.replace(file + ".new", file)
        say("DONE")
    else:
        line()
        say("NONE")
"""


class SnmpStrip(Program):
    """An async context manager; `port` is known inside. Values by object identifier."""

    def __init__(self, folder: Path, power: str) -> None:
        super().__init__()
        self._folder, self._power = folder, power
        self._file = folder / "strip.json"
        self._fault: Fault = "none"
        self._power_w = 10.0
        self.values: dict[str, object] = {}
        self.port = 0
        self.passphrase = PASSPHRASE

    async def come_up(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.tell()
        await self.start()

    def tell(self) -> None:
        """Write what the strip shows now."""
        shown: object = round(self._power_w)
        faults: dict[Fault, object] = {
            "garbage": "%&/ not this",
            "nan": "nan",
            "negative": -5,
            "spike": 12000000,
        }
        told = {f".{self._power}": faults.get(self._fault, shown)}
        told |= {f".{oid}": value for oid, value in self.values.items()}
        new = self._folder / "strip.new"
        new.write_text(json.dumps(told))
        new.replace(self._file)

    @property
    def was_set(self) -> object:
        """The object identifier and the value of the last SET."""
        return json.loads(self._file.read_text()).get("set")

    def set_power(self, power_w: float) -> None:
        self._power_w = power_w
        self.tell()

    async def set_fault(self, fault: Fault) -> None:
        """A stopped process is one that hangs; UDP tells nobody that a port is closed."""
        before, self._fault = self._fault, fault
        self.tell()
        if self._process is not None and "hang" in (before, fault) and before != fault:
            self._process.send_signal(signal.SIGSTOP if fault == "hang" else signal.SIGCONT)
        if fault == "refuse":
            await self.stop()
        elif self._process is None:
            await self.start()

    @property
    def requests(self) -> int:
        return 0  # nobody counts them: SNMP v2c refuses no login

    most_at_once = 1

    def argv(self) -> list[str]:
        script = self._folder / "strip.py"
        script.write_text(STRIP)
        root = ".1.3.6.1.4.1"
        (self._folder / "snmpd.conf").write_text(
            f"rwcommunity {COMMUNITY} 127.0.0.1\n"
            f"createUser {USER} SHA-256 {self.passphrase} AES {self.passphrase}\n"
            f"rwuser {USER} priv\nsysDescr Strip of a test\nsysName strip-1\n"
            f"pass_persist {root} {sys.executable} {script} {self._file}\n"
        )
        assert SNMPD is not None
        argv = [SNMPD, "-f", "-C", "-c", str(self._folder / "snmpd.conf"), "-Lf", "/dev/null"]
        argv += ["-I", "-smux,-agentx", f"udp:127.0.0.1:{self.port}"]
        return argv

    def environment(self) -> dict[str, str]:
        return {"SNMP_PERSISTENT_DIR": str(self._folder / "persistent"), "MIBS": ""}

    def listens(self) -> bool:
        wanted = f":{self.port:04X} "
        return any(wanted in line for line in Path("/proc/net/udp").read_text().splitlines())

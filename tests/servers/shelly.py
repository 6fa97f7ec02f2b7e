"""A Shelly on loopback: Gen1 and Gen2, digest or basic login, with faults on demand."""

import base64
import hashlib
import json
import re
import secrets
from dataclasses import dataclass

from aiohttp import web

from farm.testing.meter_contract import Fault
from tests.servers.meter_http import MeterHttpServer, json_of

MAC = "A8032ABCDEF0"


@dataclass(eq=False)
class ShellyServer(MeterHttpServer):
    """An async context manager; `port` is known inside. Counters in Wh."""

    method = "GET"
    open_path = "/shelly"

    generation: int = 2
    password: str | None = None
    component: str = "switch"
    is_simulated: bool = False
    power_w: float = 10.0
    energy_wh: float = 100.0
    is_on: bool = True
    is_valid: bool = True
    who: dict[str, object] | None = None
    filler: str = ""
    _nonce: str = ""

    def __post_init__(self) -> None:
        super().__init__(self.power_w)

    async def set_fault(self, fault: Fault) -> None:
        self._nonce = ""
        await super().set_fault(fault)

    async def reply(self, request: web.Request) -> web.Response:
        if request.path == self.open_path:
            return json_of(self._who())
        if not self._is_let_in(request):
            return self.refusal()
        if self.generation == 1:
            return self._gen1(request)
        return self._gen2(request)

    def _who(self) -> dict[str, object]:
        if self.who is not None:
            return self.who
        if self.generation == 1:
            return {"type": "SHPLG-S", "mac": MAC, "auth": bool(self.password), "fw": "v1.11.0"}
        who: dict[str, object] = {"id": f"shellyplug-{MAC.lower()}", "mac": MAC}
        who |= {"model": "SNPL-00112EU", "gen": 2, "ver": "1.4.4", "auth_en": bool(self.password)}
        return who | ({"simulated": True} if self.is_simulated else {})

    def _gen1(self, request: web.Request) -> web.Response:
        if request.path == "/relay/0":
            turn = request.query.get("turn")
            self.is_on = self.is_on if turn is None else turn == "on"
            return json_of({"ison": self.is_on})
        if request.path != "/status":
            return web.Response(status=404, text="Not Found")
        reading: dict[str, object] = {
            "power": self.shown_w,
            "is_valid": self.is_valid,
            "timestamp": 1_700_000_000,
        }
        status: dict[str, object] = {"relays": [{"ison": self.is_on}]}
        if self.component == "em1":
            reading |= {"voltage": 230.0, "total": self.energy_wh}
            return json_of(status | {"emeters": [reading]})
        return json_of(status | {"meters": [reading | {"total": self.energy_wh * 60}]})

    def _gen2(self, request: web.Request) -> web.Response:
        if request.path == "/rpc/Shelly.GetStatus":
            return json_of({f"{self.component}:0": self._status(), "sys": {}, "wifi": {}})
        names = {"switch": "Switch", "pm1": "PM1", "em1": "EM1"}
        name = names[self.component]
        if request.path == "/rpc/Switch.Set" and self.component == "switch":
            before, self.is_on = self.is_on, request.query["on"] == "true"
            return json_of({"was_on": before})
        if request.path != f"/rpc/{name}.GetStatus":
            text = f"No handler for {request.path[5:]}"
            return web.Response(status=404, text=json.dumps({"code": 404, "message": text}))
        if request.query.get("id") != "0":
            text = "Argument 'id', value 1 not found!"
            return web.Response(status=500, text=json.dumps({"code": -105, "message": text}))
        return json_of(self._status())

    def _status(self) -> dict[str, object]:
        key = "act_power" if self.component == "em1" else "apower"
        status: dict[str, object] = {"id": 0, key: self.shown_w, "voltage": 230.0}
        status |= {"current": self.power_w / 230.0, "filler": self.filler}
        if self.component != "em1":
            status["aenergy"] = {"total": self.energy_wh, "minute_ts": 1_700_000_000}
        if self.component == "switch":
            status["output"] = self.is_on
        return status

    def _is_let_in(self, request: web.Request) -> bool:
        if self.password is None:
            return True
        given = request.headers.get("Authorization", "")
        if self.generation == 1:
            wanted = base64.b64encode(f"admin:{self.password}".encode()).decode()
            return given == f"Basic {wanted}"
        told: dict[str, str] = dict(re.findall(r'(\w+)="?([^",]+)"?', given))
        if not self._nonce or told.get("nonce") != self._nonce:
            return False
        one = _sha256(f"admin:{told['realm']}:{self.password}")
        two = _sha256(f"GET:{told['uri']}")
        rest = f"{told['nonce']}:{told['nc']}:{told['cnonce']}:{told['qop']}"
        return told["uri"] == request.path_qs and told["response"] == _sha256(
            f"{one}:{rest}:{two}"
        )

    def refusal(self) -> web.Response:
        self._nonce = secrets.token_hex(8)
        offer = 'Basic realm="shelly"'
        if self.generation > 1:
            offer = (
                f'Digest qop="auth", realm="shellyplug", nonce="{self._nonce}", algorithm=SHA-256'
            )
        return web.Response(status=401, headers={"WWW-Authenticate": offer})


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

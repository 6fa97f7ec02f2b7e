"""A simulated socket meter with a switch that speaks the Shelly Gen2 HTTP RPC.

It averages: every `refresh_s` its value becomes the mean power since the last refresh, and it
is held in between. Answers have the form of the vendor's Gen2 documentation; one field more,
``simulated``, says what it is. A switch that is off cuts the power of the boards behind it.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Protocol

from aiohttp import web

from farm.errors import ConfigError, FarmError
from farm.model.board import MeterSimulation, MeterSpec
from farm.simulation.digest_auth import DigestGuard
from farm.simulation.loopback import check_loopback
from farm.simulation.meter_faults import MeterFaults

_MAINS_V = 230.0
_MAINS_HZ = 50.0
_POWER_FACTOR = 0.6  # assumed: a small supply without correction
_RESOLUTION_W = 0.01
_BODY_LIMIT = 16 * 1024

Json = dict[str, object]


class PoweredBoard(Protocol):
    """What a plug feeds."""

    @property
    def energy_j(self) -> float:
        """Energy drawn so far, joules."""

    def step(self, now_s: float) -> None:
        """Bring it up to now."""


class RpcError(Exception):
    """What the device answers instead of a result; `status` is that of a GET."""

    def __init__(self, status: int, code: int, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(message)


class SimulatedShelly:
    """One meter on its address.

    Args:
        spec: the inventory's entry, with a `simulation` section.
        fed: the boards behind it.
        now: boot-time clock, seconds.
        on_switch: called after the switch changed.
    """

    def __init__(
        self,
        spec: MeterSpec,
        fed: Sequence[PoweredBoard],
        now: Callable[[], float],
        on_switch: Callable[[], None],
    ) -> None:
        self.check(spec)
        self._spec, self._fed, self._now, self._on_switch = spec, tuple(fed), now, on_switch
        self._settings = spec.simulation or MeterSimulation()
        self._random = Random(self._settings.seed)  # noqa: S311 -- noise, no secret
        self._mac = hashlib.sha256(spec.name.encode()).hexdigest()[:12].upper()
        self._resolution_w = spec.accuracy.resolution_w or _RESOLUTION_W
        password = _password(spec)
        self._guard = DigestGuard(self._device_id, password) if password else None
        self.is_on = True
        self.faults = MeterFaults()
        self._power_w = 0.0
        self._energy_j = 0.0
        self._refreshed_s = 0.0
        self._runner: web.AppRunner | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._methods: dict[str, Callable[[Mapping[str, object]], Json]] = {
            "Shelly.GetDeviceInfo": lambda _: self.device_info(),
            "Shelly.GetStatus": lambda _: {"switch:0": self.status(), "sys": {"mac": self._mac}},
            "Switch.GetStatus": self._get_status,
            "Switch.Set": self._set,
            "Switch.Toggle": self._toggle,
        }

    @staticmethod
    def check(spec: MeterSpec) -> None:
        """Raises ConfigError when this meter cannot be simulated as it is described."""
        who = f"meter {spec.name}"
        if spec.kind.partition("-")[0] != "shelly":
            msg = f"{who}: only meters of kind shelly can be simulated, not {spec.kind!r}"
            raise ConfigError(msg)
        if spec.host is None or spec.port is None:
            msg = f"{who}: a simulated meter needs host and port"
            raise ConfigError(msg)
        check_loopback(spec.host, who)

    async def start(self) -> None:
        """Serve and refresh. Raises FarmError when the address is in use."""
        app = web.Application(
            client_max_size=_BODY_LIMIT, middlewares=[self.faults.as_middleware()]
        )
        app.router.add_get("/shelly", self._shelly)
        app.router.add_get("/rpc/{method}", self._get)
        app.router.add_post("/rpc", self._post)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._spec.host, self._spec.port)
        try:
            await site.start()
        except OSError as error:
            address = f"{self._spec.host}:{self._spec.port}"
            msg = (
                f"meter {self._spec.name}: cannot listen on {address}: "
                f"{os.strerror(error.errno or 0)}. "
                "Is another simulated lab up, or is the port taken?"
            )
            raise FarmError(msg) from error
        self._refreshed_s, self._energy_j = self._now(), self._drawn_j()
        self._refreshing = asyncio.create_task(self._refresh_for_ever())

    async def stop(self) -> None:
        """Close the server; can be called again."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
            self._refreshing = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def refresh(self, now_s: float) -> None:
        """Take the mean power since the last refresh as the new value."""
        for board in self._fed:
            board.step(now_s)
        drawn_j = self._drawn_j()
        seconds = now_s - self._refreshed_s
        if seconds <= 0 or self.faults.frozen:
            return
        mean_w = (drawn_j - self._energy_j) / seconds
        noise_w = self._random.gauss(0.0, self._settings.noise_w) if mean_w > 0 else 0.0
        self._power_w = max(0.0, mean_w + noise_w)
        self._energy_j, self._refreshed_s = drawn_j, now_s

    def device_info(self) -> Json:
        """``Shelly.GetDeviceInfo``."""
        return {
            "name": self._spec.name,
            "id": self._device_id,
            "mac": self._mac,
            "slot": 0,
            "model": "SIM-PLUG",
            "gen": 2,
            "fw_id": "20261130-000000/farm-simulation",
            "ver": "1.0.0",
            "app": "SimPlug",
            "auth_en": self._guard is not None,
            "auth_domain": self._device_id if self._guard else None,
            "simulated": True,
        }

    def status(self) -> Json:
        """``Switch.GetStatus`` as of the last refresh."""
        digits = max(0, -_decimal_exponent(self._resolution_w))
        shown_w = 0.0 if self.faults.zero else self._power_w
        power_w = round(round(shown_w / self._resolution_w) * self._resolution_w, digits)
        return {
            "id": 0,
            "source": "init",
            "output": self.is_on,
            "apower": power_w,
            "voltage": _MAINS_V if self.is_on else 0.0,
            "current": round(power_w / _MAINS_V / _POWER_FACTOR, 3),
            "pf": _POWER_FACTOR if power_w else 0.0,
            "freq": _MAINS_HZ,
            "aenergy": {"total": round(self._energy_j / 3600, 3)},
            "temperature": {"tC": 31.5, "tF": 88.7},
        }

    @property
    def _device_id(self) -> str:
        return f"simplug-{self._mac.lower()}"

    def _drawn_j(self) -> float:
        return sum(board.energy_j for board in self._fed)

    async def _refresh_for_ever(self) -> None:
        due_s = self._refreshed_s
        while True:
            due_s = max(due_s + self._settings.refresh_s, self._now())
            await asyncio.sleep(max(0.0, due_s - self._now()))
            self.refresh(self._now())

    def _get_status(self, params: Mapping[str, object]) -> Json:
        _check_id(params)
        return self.status()

    def _set(self, params: Mapping[str, object]) -> Json:
        _check_id(params)
        wanted = params.get("on")
        if not isinstance(wanted, bool):
            raise RpcError(500, -103, "Missing required argument 'on'!")
        was_on, self.is_on = self.is_on, wanted
        if was_on != wanted:
            self._on_switch()
        return {"was_on": was_on}

    def _toggle(self, params: Mapping[str, object]) -> Json:
        return self._set({**params, "on": not self.is_on})

    def _call(self, method: str, params: Mapping[str, object]) -> Json:
        function = self._methods.get(method)
        if function is None:
            raise RpcError(404, 404, f"No handler for {method}")
        return function(params)

    async def _shelly(self, request: web.Request) -> web.Response:
        del request  # answered without a password, as on the device
        return web.json_response(self.device_info())

    async def _get(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if (refusal := self._refusal(request, method)) is not None:
            return refusal
        params = {name: _query_value(text) for name, text in request.query.items()}
        try:
            return web.json_response(self._call(method, params))
        except RpcError as error:
            body = {"code": error.code, "message": error.message}
            return web.json_response(body, status=error.status)

    async def _post(self, request: web.Request) -> web.Response:
        try:
            frame = await request.json()
        except ValueError:
            frame = None
        if not isinstance(frame, dict) or not isinstance(frame.get("method"), str):
            return web.json_response({"code": -103, "message": "bad request"}, status=400)
        if (refusal := self._refusal(request, frame["method"])) is not None:
            return refusal
        params = frame.get("params")
        answer: Json = {"id": frame.get("id"), "src": self._device_id}
        try:
            answer["result"] = self._call(
                frame["method"], params if isinstance(params, dict) else {}
            )
        except RpcError as error:
            answer["error"] = {"code": error.code, "message": error.message}
        return web.json_response(answer)

    def _refusal(self, request: web.Request, method: str) -> web.Response | None:
        """The 401 with a challenge, or None when the request may pass."""
        if self._guard is None or method == "Shelly.GetDeviceInfo":
            return None
        if self._guard.allows(request.headers.get("Authorization", ""), request.method):
            return None
        return web.Response(status=401, headers={"WWW-Authenticate": self._guard.challenge()})


def _check_id(params: Mapping[str, object]) -> None:
    if "id" not in params:
        raise RpcError(500, -103, "Missing required argument 'id'!")
    if params["id"] != 0 or isinstance(params["id"], bool):
        raise RpcError(500, -105, f"Argument 'id', value {params['id']} not found!")


def _query_value(text: str) -> object:
    """A query's value as the device reads it: JSON where it is JSON, else text."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


def _decimal_exponent(resolution_w: float) -> int:
    """The exponent of the last digit that a resolution needs: 0.1 -> -1, 0.05 -> -2."""
    text = f"{resolution_w:.6f}".rstrip("0")
    return -len(text.partition(".")[2])


def _password(spec: MeterSpec) -> str:
    """The password behind the entry's secret reference; "" for none. Raises ConfigError."""
    if spec.secret is None:
        return ""
    kind, _, where = spec.secret.partition(":")
    try:
        if kind == "env":
            return os.environ[where]
        if kind == "file":
            return Path(where).expanduser().read_text(encoding="utf-8").strip()
    except (KeyError, OSError) as error:
        msg = f"meter {spec.name}: secret {spec.secret}: not found"
        raise ConfigError(msg) from error
    msg = f"meter {spec.name}: a simulated meter's secret is env:NAME or file:PATH"
    raise ConfigError(msg)

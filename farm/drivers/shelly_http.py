"""HTTP to one Shelly device: which generation it is, and one JSON answer at a time.

Shared by the meter and the outlet. Manuals: shelly-api-docs.shelly.cloud (gen1, gen2). Gen2 and
later protect their RPC with digest SHA-256 and the fixed user ``admin``, Gen1 its pages with
basic authentication; ``/shelly`` tells who they are without a login on both. Nothing a device
answers is trusted: bodies are bounded, redirects are not followed, cookies not kept.
Tried on protocol servers, not on a real Shelly yet.
"""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Literal

import aiohttp
from pydantic import Field

from farm.errors import MeterError
from farm.interfaces.meter import MeterFacts
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind

MAX_BODY = 65536
AUTH_BACKOFF_S = (30.0, 300.0)
"""First and largest pause after a refused login: repeated tries make plugs lock us out."""

Json = Mapping[str, object]


class ShellyOptions(Record):
    """What stands under ``options:`` of a Shelly in the inventory.

    `component` is where the power is read: a switch with metering, a metering-only PM1, or an
    energy meter EM1. `user` is only used by Gen1; later ones always take ``admin``.
    """

    generation: Literal["auto", 1, 2] = "auto"
    component: Literal["switch", "pm1", "em1"] = "switch"
    id: int = Field(default=0, ge=0, le=64)
    user: str = "admin"


class ShellyMiss(Exception):  # noqa: N818 - not an error of the program: it becomes a typed miss
    """The device gave no answer; `kind` says why, `status` is the HTTP status if there was one."""

    def __init__(self, kind: MissKind, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.kind, self.text, self.status = kind, text, status


class ShellyConnection:
    """One kept connection with one request in flight, and a deadline for each request."""

    def __init__(
        self,
        spec: MeterSpec,
        options: ShellyOptions,
        secret: str | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec, self._options, self._secret = spec, options, secret
        self._monotonic = monotonic
        self._session: aiohttp.ClientSession | None = None
        self._turn = asyncio.Lock()
        self._is_open = False
        self._refused_until_s = 0.0
        self._backoff_s = AUTH_BACKOFF_S[0]
        self.generation: int = 0

    async def open(self) -> MeterFacts:
        """Ask who it is. Raises MeterError."""
        if not self._spec.host:
            raise MeterError("open meter", f"{self._spec.name} has no host in the inventory")
        self._is_open = True
        try:
            told = await self.ask("/shelly")
        except ShellyMiss as miss:
            await self.close()
            raise self.error("open meter", miss) from miss
        generation = self._options.generation
        found = told.get("gen")
        if generation == "auto":
            generation = 2 if isinstance(found, int) and found > 1 else 1
        self.generation = generation
        await self._drop()  # the next connection knows how this generation wants its login
        if not isinstance(told.get("mac"), str):
            await self.close()
            raise MeterError(
                "open meter",
                f"{self._spec.host} answers, but not as a Shelly does",
                remedy="Check the meter's host and kind in the inventory.",
            )
        return MeterFacts(
            model=_text(told, "model") or _text(told, "type") or "Shelly",
            identity=_text(told, "mac").lower(),
            firmware=_text(told, "ver") or _text(told, "fw"),
            is_simulated=told.get("simulated") is True,
        )

    async def ask(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """GET a JSON object. Raises ShellyMiss; never anything else for what a device does."""
        if not self._is_open:
            raise ShellyMiss(MissKind.REFUSED, "the meter is not open")
        if self._monotonic() < self._refused_until_s:
            raise ShellyMiss(MissKind.AUTH, "the login was refused; not asked again yet")
        try:
            async with asyncio.timeout(self._spec.deadline_s), self._turn:
                answer = await self._request(path, query or {})
        except TimeoutError as error:
            await self._drop()
            text = f"no answer within {self._spec.deadline_s:g} s"
            raise ShellyMiss(MissKind.TIMEOUT, text) from error
        except (aiohttp.ClientConnectionError, OSError) as error:
            await self._drop()
            raise ShellyMiss(MissKind.REFUSED, _brief(error)) from error
        except (aiohttp.ClientError, ValueError, RecursionError) as error:
            await self._drop()
            raise ShellyMiss(MissKind.PROTOCOL, _brief(error)) from error
        except ShellyMiss as miss:
            if miss.kind is MissKind.AUTH:
                self._refused_until_s = self._monotonic() + self._backoff_s
                self._backoff_s = min(2 * self._backoff_s, AUTH_BACKOFF_S[1])
            raise
        self._backoff_s = AUTH_BACKOFF_S[0]
        return answer

    def error(self, step: str, miss: ShellyMiss) -> MeterError:
        """The miss as an error for the user, with what to do."""
        remedy = {
            MissKind.AUTH: "Check the meter's secret in the inventory and the plug's password.",
            MissKind.REFUSED: "Is the plug powered and in the network, and is the port right?",
            MissKind.TIMEOUT: "Is the plug in the network? A larger deadline_s may help.",
        }.get(miss.kind, "Is it a Shelly? Look at http://HOST/shelly in a browser.")
        seen = f"{self._spec.name} at {self._spec.host}: {miss.kind.value}: {miss.text}"
        return MeterError(step, seen, remedy=remedy)

    async def close(self) -> None:
        """Close; never raises."""
        self._is_open = False
        await self._drop()

    async def _request(self, path: str, query: Mapping[str, str]) -> Json:
        session = self._session or self._connect()
        host = self._spec.host or ""
        host = f"[{host}]" if ":" in host else host
        url = f"http://{host}:{self._spec.port or 80}{path}"
        async with session.get(url, params=query, allow_redirects=False) as response:
            if response.status in (401, 403):
                text = "needs a password" if self._secret is None else "refused the password"
                raise ShellyMiss(MissKind.AUTH, text, response.status)
            body = b""
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_BODY:
                    response.close()
                    raise ShellyMiss(MissKind.PROTOCOL, f"an answer of over {MAX_BODY} bytes")
            if response.status != 200:  # noqa: PLR2004 - HTTP's OK
                text = f"HTTP {response.status} {body[:100]!r}"
                raise ShellyMiss(MissKind.PROTOCOL, text, response.status)
        answer = json.loads(body)
        if not isinstance(answer, dict):
            raise ShellyMiss(MissKind.PROTOCOL, f"no JSON object: {body[:60]!r}")
        return answer

    def _connect(self) -> aiohttp.ClientSession:
        headers: dict[str, str] = {}
        middlewares: tuple[aiohttp.DigestAuthMiddleware, ...] = ()
        if self._secret is not None and self.generation == 1:
            login = f"{self._options.user}:{self._secret}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        elif self._secret is not None and self.generation > 1:
            middlewares = (aiohttp.DigestAuthMiddleware("admin", self._secret),)
        self._session = aiohttp.ClientSession(
            headers=headers,
            middlewares=middlewares,
            connector=aiohttp.TCPConnector(limit=1),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),  # the deadline in `ask` holds
        )
        return self._session

    async def _drop(self) -> None:
        """After a timeout the late answer must not be taken for the next one's."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def number(answer: Json, key: str) -> float | None:
    """A finite number, or None for absent and anything else (true is no number)."""
    value = answer.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) < float("inf") else None


def part(answer: Json, key: str, index: int | None = None) -> Json:
    """An object inside, or an element of a list inside; {} when it is not there."""
    value = answer.get(key)
    if index is not None:
        value = value[index] if isinstance(value, list) and index < len(value) else None
    return value if isinstance(value, dict) else {}


def _text(answer: Json, key: str) -> str:
    value = answer.get(key)
    return value[:100] if isinstance(value, str) else ""


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]

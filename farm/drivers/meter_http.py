"""HTTP to a meter: one kept connection, and bodies that are bounded.

Redirects are not followed, cookies not kept. What goes wrong is a `NoReading`.
"""

import json
from collections.abc import Mapping

import aiohttp

from farm.drivers.meter_dialogue import NoReading, brief
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

MAX_BODY = 1 << 20
Json = Mapping[str, object]


class HttpSource:
    """One server. The deadline is the `Dialogue`'s that calls."""

    def __init__(
        self, spec: MeterSpec, *, port: int, is_tls: bool, headers: Mapping[str, str] | None = None
    ) -> None:
        host = spec.host or ""
        host = f"[{host}]" if ":" in host else host
        self.base = f"{'https' if is_tls else 'http'}://{host}:{spec.port or port}"
        self._headers = dict(headers or {})
        self._session: aiohttp.ClientSession | None = None
        self.date = ""
        """The server's own time at its last answer, as in HTTP's Date."""

    async def text(
        self, path: str, query: Mapping[str, str] | None = None, post: Json | None = None
    ) -> str:
        """GET (or POST JSON) and give the body. Raises NoReading; its text holds no query."""
        method = "GET" if post is None else "POST"
        session = self._session or self._connect()
        url, body = self.base + path, b""
        try:
            async with session.request(
                method, url, params=query, json=post, allow_redirects=False
            ) as response:
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > MAX_BODY:
                        response.close()
                        raise NoReading(MissKind.PROTOCOL, f"an answer of over {MAX_BODY} bytes")
                self.date = response.headers.get("Date", "")
                _check(response.status, body)
        except aiohttp.ClientConnectionError as error:
            raise NoReading(MissKind.REFUSED, brief(error)) from error
        except aiohttp.ClientError as error:  # its text may hold the address with the password
            raise NoReading(MissKind.PROTOCOL, type(error).__name__) from error
        return body.decode("utf-8", "replace")

    async def json(
        self, path: str, query: Mapping[str, str] | None = None, post: Json | None = None
    ) -> object:
        """Like `text`, parsed. Raises NoReading, ValueError."""
        return json.loads(await self.text(path, query, post))

    async def close(self) -> None:
        """Drop the connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _connect(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(limit=1),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        return self._session


def _check(status: int, body: bytes) -> None:
    if status in (401, 403):
        raise NoReading(MissKind.AUTH, f"HTTP {status}: the login is missing or refused")
    if status == 404:  # noqa: PLR2004 - HTTP's Not Found
        raise NoReading(MissKind.NO_DATA, f"HTTP 404 {brief(body[:100])}")
    if status not in (200, 201):
        raise NoReading(MissKind.PROTOCOL, f"HTTP {status} {brief(body[:100])}")


def fields(value: object) -> Json:
    """A JSON object, or {} for anything else."""
    return value if isinstance(value, dict) else {}


def at_path(value: object, path: str) -> object:
    """What stands at a dotted path such as ``StatusSNS.ENERGY.Power`` or ``list.0``; or None."""
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value

"""A message as JSON by HTTP POST: chat services, ntfy, automation, a script of one's own.

In the inventory::

    notify:
      - kind: webhook
        on: [end, first_failure]
        url: env:FARM_WEBHOOK           # never the address itself: it is a secret
        options: {text_key: content}    # where the service wants the text under another name

The body is one flat object: ``event``, ``title``, ``text`` and the run's figures
(docs/notifications.md). Certificates are verified; redirects are followed within one origin and
only where they keep the method (307, 308). Tried on servers of our own, not on a vendor's.
"""

import asyncio
import json
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp

from farm.errors import ConfigError, NotifyError
from farm.interfaces.notifier import Notice, Notifier
from farm.model.notify import NotifySpec
from farm.model.record import Record

TRIES = 3
BACKOFF_S = (0.5, 1.5)
MOST_REDIRECTS = 3
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
PORTS = {"http": 80, "https": 443}
KEEPS_METHOD = frozenset({307, 308})


class WebhookOptions(Record):
    """`text_key` is the name under which the text is given once more, besides ``text``."""

    text_key: str = "text"


class _AgainError(Exception):
    """It did not work; another try may."""


class WebhookNotifier(Notifier):
    """One address that takes JSON."""

    Options = WebhookOptions

    def __init__(self, spec: NotifySpec, options: WebhookOptions, secret: str | None) -> None:
        if spec.url is None or spec.command:
            raise ConfigError('a webhook needs "url", and takes no "command"')
        self._options, self._secret = options, secret

    async def send(self, notice: Notice) -> None:
        """POST it; a fault that may pass is tried again twice. Raises NotifyError."""
        url = _address(self._secret)
        body = json.dumps({**notice.as_json(), self._options.text_key: notice.text}).encode()
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            for number in range(TRIES):
                try:
                    await _post(session, url, body)
                except _AgainError as fault:
                    if number == TRIES - 1:
                        raise NotifyError(f"{fault}, {TRIES} times") from None
                    await asyncio.sleep(BACKOFF_S[number])
                else:
                    return


def _address(secret: str | None) -> str:
    url = (secret or "").strip()
    if _origin(url) is None:
        raise NotifyError("the secret is no http or https URL")
    return url


async def _post(session: aiohttp.ClientSession, url: str, body: bytes) -> None:
    """One try. No message of it holds more of the address than the host."""
    headers = {"Content-Type": "application/json", "User-Agent": "farm"}
    origin = _origin(url)
    host = urlsplit(url).hostname
    for _ in range(MOST_REDIRECTS + 1):
        try:
            async with session.post(
                url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                status, location = answer.status, answer.headers.get("Location", "")
        except aiohttp.ClientSSLError as error:  # a wrong certificate: no other try mends it
            raise NotifyError(f"{host}: TLS: {type(error).__name__}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _AgainError(f"{host}: {type(error).__name__}") from None
        if status not in KEEPS_METHOD:
            return _judge(host, status)
        url = _joined(url, location)
        if _origin(url) != origin:
            raise NotifyError(f"{host} redirects to another place: not followed")
    raise NotifyError(f"{host}: more than {MOST_REDIRECTS} redirects")


def _judge(host: str | None, status: int) -> None:
    if 200 <= status < 300:  # noqa: PLR2004 - the class of HTTP statuses
        return
    if status in AGAIN:
        raise _AgainError(f"{host} answered {status}")
    raise NotifyError(f"{host} answered {status}")


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return ""


def _origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None for what is no address of a web server."""
    try:
        parts: SplitResult = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, PORTS[parts.scheme] if port is None else port

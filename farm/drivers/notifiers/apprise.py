"""A message through the library apprise: mail, chat and push services by the hundred.

In the inventory::

    notify:
      - kind: apprise
        on: [end, quarantined]
        url: file:secrets/apprise-url     # apprise's own form, e.g. mailto:// or slack://

Manual: the services' pages of apprise. The library is an extra: ``pip install 'jetfarm[notify]'``.
It blocks, so it works in a thread that nobody waits for once the time is over.
"""

import asyncio
import contextlib
import logging
import threading

import apprise

from farm.errors import ConfigError, NotifyError
from farm.interfaces.notifier import Notice, Notifier
from farm.model.notify import NotifySpec
from farm.model.record import Record


class AppriseOptions(Record):
    """None."""


class AppriseNotifier(Notifier):
    """One address of apprise's."""

    Options = AppriseOptions

    def __init__(self, spec: NotifySpec, options: AppriseOptions, secret: str | None) -> None:
        if spec.url is None or spec.command:
            raise ConfigError('apprise needs "url", and takes no "command"')
        self._secret = secret

    async def send(self, notice: Notice) -> None:
        """Send it. Raises NotifyError: the address is not understood, or it did not work."""
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # its messages hold addresses
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()

        def tell(fault: str) -> None:
            if not ended.done():
                ended.set_result(fault)

        def work() -> None:
            fault = _send((self._secret or "").strip(), notice)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(tell, fault)

        threading.Thread(target=work, name="apprise", daemon=True).start()
        fault = await ended
        if fault:
            raise NotifyError(fault)


def _send(address: str, notice: Notice) -> str:
    """Blocks, for seconds when it loads its plugins first; "" or what went wrong."""
    try:
        sender = apprise.Apprise()
        if not sender.add(address):
            return "apprise does not understand the address"
        is_sent = sender.notify(title=notice.title, body=notice.text)
    except Exception as error:  # noqa: BLE001 - a hundred plugins of others
        return f"apprise: {type(error).__name__}"
    return "" if is_sent else "apprise could not send it"

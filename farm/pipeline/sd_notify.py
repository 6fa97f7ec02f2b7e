"""Tells systemd how the service is: sd_notify(3), a datagram to the socket it names."""

import os
import socket


def sd_notify(text: str) -> bool:
    """Send assignments (``READY=1``, ``WATCHDOG=1``, ``STATUS=...``); False if nobody listens.

    Never raises, never blocks: a service must not fail of its being watched.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
            link.setblocking(False)
            link.sendto(text.encode(), address.replace("@", "\0", 1))
    except OSError:
        return False
    return True

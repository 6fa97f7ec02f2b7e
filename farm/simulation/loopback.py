"""The one rule for addresses of simulated things."""

import ipaddress

from farm.errors import ConfigError


def check_loopback(host: str, who: str) -> None:
    """Refuse an address that others could reach: a board runs any command. Raises ConfigError."""
    try:
        is_fine = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_fine = False
    if not is_fine:
        msg = f"{who}: a simulated one must have a loopback address (127.x.y.z), not {host!r}"
        raise ConfigError(msg)

"""TP-Link's two languages over python-kasa: one question, one answer, one connection.

Only the library's protocols are used, not its devices: those ask for much more at each update, and
one part that a plug does not know takes the whole power reading away. Needs python-kasa, which is
under the GPL: hence an extra of its own, imported by the two kinds that need it.
"""

import logging
from collections.abc import Mapping
from typing import Literal

from kasa import (
    AuthenticationError,
    Credentials,
    DeviceConfig,
    DeviceConnectionParameters,
    DeviceEncryptionType,
    DeviceError,
    DeviceFamily,
    KasaException,
)
from kasa.device_factory import get_protocol
from kasa.exceptions import _ConnectionError, _RetryableError
from kasa.protocols import BaseProtocol

from farm.drivers.meter_dialogue import NoReading, brief
from farm.drivers.meter_http import Json, fields
from farm.model.board import MeterSpec
from farm.model.trace import MissKind

logging.getLogger("kasa").setLevel(logging.CRITICAL)  # a miss tells it better, and no request

Language = Literal["IOT.XOR", "IOT.KLAP", "SMART.KLAP", "SMART.AES"]
_FAMILIES = {"IOT": DeviceFamily.IotSmartPlugSwitch, "SMART": DeviceFamily.SmartTapoPlug}
SWITCH_IN_APP = "it may be off in the app: Me, Third-Party Services, third-party compatibility"


class KasaSession:
    """One device."""

    def __init__(
        self, spec: MeterSpec, language: Language, *, user: str = "", secret: str | None = None
    ) -> None:
        self._spec, self._language = spec, language
        self._credentials = None if secret is None else Credentials(user, secret)
        self._protocol: BaseProtocol | None = None

    async def ask(self, request: Mapping[str, object]) -> Json:
        """The answer, by the request's names. Raises NoReading."""
        try:
            return await self._asked(request)
        except AuthenticationError as error:  # its text may hold what was sent
            raise NoReading(MissKind.AUTH, f"the login is refused, or {SWITCH_IN_APP}") from error
        except _ConnectionError as error:
            raise NoReading(MissKind.REFUSED, brief(error)) from error
        except DeviceError as error:
            raise NoReading(MissKind.PROTOCOL, brief(error)) from error
        except KasaException as error:
            if isinstance(error, TimeoutError):
                raise
            if isinstance(error.__cause__, OSError):
                raise NoReading(MissKind.REFUSED, brief(error)) from error
            if "403" in str(error):  # the handshake of a plug that lets nobody in
                raise NoReading(MissKind.AUTH, f"HTTP 403; {SWITCH_IN_APP}") from error
            raise NoReading(MissKind.PROTOCOL, brief(error)) from error

    async def _asked(self, request: Mapping[str, object]) -> Json:
        protocol = self._protocol = self._protocol or self._made()
        try:
            return fields(await protocol.query(dict(request), retry_count=0))
        except _RetryableError:  # the session or the connection was lost since the last one
            return fields(await protocol.query(dict(request), retry_count=0))

    async def close(self) -> None:
        """Drop the connection."""
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            await protocol.close()

    def _made(self) -> BaseProtocol:
        family, _, encryption = self._language.partition(".")
        config = DeviceConfig(
            host=self._spec.host or "",
            port_override=self._spec.port,
            timeout=max(1, round(2 * self._spec.deadline_s)),  # the deadline comes first
            credentials=self._credentials,
            connection_type=DeviceConnectionParameters(
                device_family=_FAMILIES[family],
                encryption_type=DeviceEncryptionType(encryption),
                login_version=2 if family == "SMART" else None,
            ),
        )
        protocol = get_protocol(config)
        if protocol is None:
            raise NoReading(MissKind.PROTOCOL, f"python-kasa does not speak {self._language}")
        return protocol

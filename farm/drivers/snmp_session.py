"""SNMP v2c and v3 to one power strip, and the presets' object identifiers.

Numeric identifiers only: no MIB is looked up. An engine costs a quarter of a second, so that
devices with the same login share one. A lost answer is not asked for again here, and numbers in
the requests keep a late one from being taken for the next one's. A strip that does not know the
community says nothing at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator
from pysnmp.error import PySnmpError
from pysnmp.hlapi.v3arch.asyncio import (
    CommunityData,
    ContextData,
    ObjectIdentity,
    ObjectType,
    SnmpEngine,
    UdpTransportTarget,
    UsmUserData,
    get_cmd,
    set_cmd,
    usmAesCfb128Protocol,
    usmHMAC192SHA256AuthProtocol,
    usmHMACMD5AuthProtocol,
    usmHMACSHAAuthProtocol,
    usmNoPrivProtocol,
)
from pysnmp.proto import errind
from pysnmp.proto.rfc1902 import Integer32
from pysnmp.proto.rfc1905 import EndOfMibView, NoSuchInstance, NoSuchObject

from farm.drivers.meter_dialogue import NoReading, brief
from farm.model.board import MeterSpec
from farm.model.record import Record
from farm.model.trace import MissKind

SYS_DESCR, SYS_NAME = "1.3.6.1.2.1.1.1.0", "1.3.6.1.2.1.1.5.0"
_AUTH = {
    "md5": usmHMACMD5AuthProtocol,
    "sha": usmHMACSHAAuthProtocol,
    "sha256": usmHMAC192SHA256AuthProtocol,
}
_REFUSALS = (
    errind.WrongDigest,
    errind.AuthenticationError,
    errind.AuthenticationFailure,
    errind.UnknownUserName,
    errind.UnknownSecurityName,
    errind.DecryptionError,
    errind.UnsupportedSecurityLevel,
    errind.NoAccessEntry,
)


@dataclass(frozen=True, slots=True)
class Tree:
    """Object identifiers with ``{outlet}``; "" is none. `scale` makes watts, Wh."""

    power: str
    scale: float = 1.0
    digits: str = ""
    energy: str = ""
    energy_scale: float = 1.0
    switch: str = ""
    status: str = ""
    on: int = 1
    off: int = 2
    status_on: int = 1
    status_off: int = 2


PRESETS = {
    # PowerNet-MIB, rPDU2Outlet: metered status power in W, energy in 0.1 kWh; switched control
    # (immediateOn 1, immediateOff 2) and switched status (off 1, on 2). The metered table's
    # own state always says on.
    "apc": Tree(
        power="1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.{outlet}",
        energy="1.3.6.1.4.1.318.1.1.26.9.4.3.1.11.{outlet}",
        energy_scale=100.0,
        switch="1.3.6.1.4.1.318.1.1.26.9.2.4.1.5.{outlet}",
        status="1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.{outlet}",
        status_on=2,
        status_off=1,
    ),
    # PowerNet-MIB, rPDU2DeviceStatusPower of the whole strip, in 0.01 kW.
    "apc-unit": Tree(power="1.3.6.1.4.1.318.1.1.26.4.3.1.5.1", scale=10.0),
    # PDU2-MIB: sensor type 5 is active power; its decimal digits are told in another column.
    "raritan": Tree(
        power="1.3.6.1.4.1.13742.6.5.4.3.1.4.{unit}.{outlet}.5",
        digits="1.3.6.1.4.1.13742.6.3.5.4.1.7.{unit}.{outlet}.5",
    ),
    # Sentry4-MIB: st4OutletActivePower by unit, cord, outlet.
    "servertech": Tree(power="1.3.6.1.4.1.1718.4.1.8.3.1.9.{unit}.{cord}.{outlet}"),
}

_OID = r"^(\d+(\.\d+)+)?$"


class SnmpOptions(Record):
    """A preset with its outlet, or an object identifier of one's own with its scale to watts.

    The meter's secret is the community of v2c, or with `user` the passphrase of v3, which
    authenticates and encrypts; `privacy: none` only authenticates.
    """

    preset: Literal["apc", "apc-unit", "raritan", "servertech"] | None = None
    outlet: int = Field(default=1, ge=1, le=1000)
    unit: int = Field(default=1, ge=1, le=64)
    cord: int = Field(default=1, ge=1, le=16)
    oid: str = Field(default="", pattern=_OID)
    scale: float = Field(default=1.0, gt=0)
    user: str | None = None
    auth: Literal["md5", "sha", "sha256"] = "sha"
    privacy: Literal["aes", "none"] = "aes"

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.preset is None) == (not self.oid):
            raise ValueError('either "preset" or "oid"')
        return self

    def tree(self) -> Tree:
        """The preset's identifiers with the numbers filled in, or the user's own."""
        if self.preset is None:
            return Tree(power=self.oid, scale=self.scale)
        tree = PRESETS[self.preset]
        numbers = {"outlet": self.outlet, "unit": self.unit, "cord": self.cord}
        names = ("power", "digits", "energy", "switch", "status")
        filled = {name: getattr(tree, name).format(**numbers) for name in names}
        kept = {name: getattr(tree, name) for name in tree.__slots__ if name not in names}
        return Tree(**filled, **kept)


_Bound = Sequence[tuple[object, object]]
_Command = Callable[..., Awaitable[tuple[object, Integer32, Integer32, _Bound]]]
_Login = tuple[asyncio.AbstractEventLoop, str | None, str | None, str, str]
_engines: dict[_Login, tuple[SnmpEngine, set[int]]] = {}
"""Engines by loop and login, with the sessions that use them; gone with the last of them."""


class SnmpSession:
    """Requests to one agent."""

    def __init__(self, spec: MeterSpec, options: SnmpOptions, secret: str | None) -> None:
        self._spec = spec
        self._key = (options.user, secret, options.auth, options.privacy)
        self._login: CommunityData | UsmUserData
        if options.user is None:
            self._login = CommunityData(secret or "public", mpModel=1)  # noqa: S508 - strips in the field
        elif secret is None:
            self._login = UsmUserData(options.user)  # noqa: S509 - as the strip is set up
        else:
            has_privacy = options.privacy == "aes"
            self._login = UsmUserData(
                options.user,
                authKey=secret,
                privKey=secret if has_privacy else None,
                authProtocol=_AUTH[options.auth],
                privProtocol=usmAesCfb128Protocol if has_privacy else usmNoPrivProtocol,
            )
        self._used: _Login | None = None

    async def get(self, *oids: str) -> list[object]:
        """Their values, in order; None for what the agent does not have. Raises NoReading."""
        bound = await self._ask(get_cmd, [ObjectType(ObjectIdentity(oid)) for oid in oids])
        absent = (NoSuchObject, NoSuchInstance, EndOfMibView)
        return [None if isinstance(value, absent) else value for _, value in bound]

    async def set(self, oid: str, value: int) -> None:
        """Write one integer. Raises NoReading."""
        await self._ask(set_cmd, [ObjectType(ObjectIdentity(oid), Integer32(value))])

    def close(self) -> None:
        """Leave the engine; the last one closes its socket."""
        used, self._used = self._used, None
        if used is None:
            return
        engine, users = _engines[used]
        users.discard(id(self))
        if not users:
            del _engines[used]
            engine.close_dispatcher()

    def _engine(self) -> SnmpEngine:
        if self._used is None:
            self._used = (asyncio.get_running_loop(), *self._key)
            if self._used not in _engines:
                _engines[self._used] = (SnmpEngine(), set())
        engine, users = _engines[self._used]
        users.add(id(self))
        return engine

    async def _ask(self, command: _Command, objects: Sequence[ObjectType]) -> _Bound:
        engine = self._engine()
        try:
            target = await UdpTransportTarget.create(
                (self._spec.host, self._spec.port or 161),
                timeout=2 * self._spec.deadline_s,  # ours comes first
                retries=0,
            )
            failure, status, index, bound = await command(
                engine, self._login, target, ContextData(), *objects, lookupMib=False
            )
        except PySnmpError as error:
            raise NoReading(MissKind.REFUSED, brief(error)) from error
        if isinstance(failure, errind.RequestTimedOut):
            raise NoReading(MissKind.TIMEOUT, "no answer; is the community right?")
        if failure:
            is_login = isinstance(failure, _REFUSALS)
            raise NoReading(MissKind.AUTH if is_login else MissKind.PROTOCOL, brief(str(failure)))
        if int(status) in (6, 16, 17):  # noAccess, authorizationError, notWritable: RFC 3416
            raise NoReading(MissKind.AUTH, f"{status.prettyPrint()}: it may not be written")
        if int(status):
            text = f"{status.prettyPrint()} at {int(index)}"
            raise NoReading(MissKind.PROTOCOL, text)
        if len(bound) != len(objects):
            raise NoReading(MissKind.PROTOCOL, f"{len(bound)} values, not {len(objects)}")
        return bound

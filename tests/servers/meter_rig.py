"""A server and the way to make a meter for it: what the contract's suite asks for."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Protocol, Self

from farm.interfaces.meter import Meter
from farm.model.board import MeterSpec
from farm.testing.meter_contract import Fault, MeterRig


class Device(Protocol):
    @property
    def port(self) -> int: ...
    @property
    def requests(self) -> int: ...
    @property
    def most_at_once(self) -> int: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def set_power(self, power_w: float) -> None: ...
    async def set_fault(self, fault: Fault) -> None: ...


class DeviceRig:
    def __init__(self, device: Device, make: Callable[[MeterSpec], Meter]) -> None:
        self._device, self._make = device, make

    def meter(self, deadline_s: float) -> Meter:
        return self._make(spec_of(self._device.port, deadline_s=deadline_s))

    async def set_fault(self, fault: Fault) -> None:
        await self._device.set_fault(fault)

    def set_power(self, power_w: float) -> None:
        self._device.set_power(power_w)

    @property
    def requests(self) -> int:
        return self._device.requests

    @property
    def most_at_once(self) -> int:
        return self._device.most_at_once


@asynccontextmanager
async def rig_of(device: Device, make: Callable[[MeterSpec], Meter]) -> AsyncIterator[MeterRig]:
    async with device:
        yield DeviceRig(device, make)


def spec_of(
    port: int | None, *, kind: str = "test", deadline_s: float = 10.0, min_w: float = 0.0
) -> MeterSpec:
    return MeterSpec(
        name="plug",
        kind=kind,
        host="127.0.0.1",
        port=port,
        deadline_s=deadline_s,
        min_w=min_w,
    )

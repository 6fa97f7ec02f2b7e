"""Puts drivers together for the boards of a plan."""

from collections.abc import Mapping
from dataclasses import replace

from farm.config.secrets import resolve_secret
from farm.drivers.agent import open_agent
from farm.drivers.registry import (
    TRANSPORTS,
    meter_class,
    power_controller_class,
    telemetry_class,
    transport_class,
)
from farm.drivers.transports.ssh_context import SshContext
from farm.drivers.transports.ssh_probe import probe_ssh
from farm.errors import ConfigError
from farm.execution.equipment import BoardEquipment
from farm.execution.sampling import MeterFeed
from farm.execution.telemetry import TelemetryFeed
from farm.interfaces.agent import BoardAgent, BoardCommands
from farm.interfaces.clock import Clock
from farm.interfaces.power_controller import PowerController
from farm.interfaces.transport import Transport
from farm.model.board import Board, MeterSpec
from farm.model.plan import Plan
from farm.model.profile import BoardProfile
from farm.model.sweep import MeasureRules
from farm.pipeline.lab import Lab
from farm.pipeline.outlets import open_outlet, sharers
from farm.store.telemetry_traces import write_telemetry


def equip(lab: Lab, plan: Plan, clock: Clock) -> dict[str, BoardEquipment]:
    """Drivers, not yet opened, for every board of the plan.

    A board of the plan that the inventory no longer has is a ConfigError; so are driver
    options that are wrong, with file, line and column.
    """
    context = SshContext(lab.inventory.limits)
    feeds: dict[str, MeterFeed] = {}
    equipment = {}
    for lane in plan.lanes:
        try:
            board = lab.inventory.board(lane.board)
        except KeyError:
            raise ConfigError(
                f"the run needs board {lane.board!r}, which the inventory does not have",
                file=str(lab.workspace.inventory_path),
            ) from None
        feed = None
        if board.meter is not None and plan.sweep.measure.power != "off":
            if board.meter not in feeds:
                feeds[board.meter] = _feed(lab, lab.inventory.meter(board.meter), clock)
            feed = feeds[board.meter]
        made = _equip_board(board, lab.profiles, context, feed)
        told = _telemetry(board, made.profile, plan.sweep.measure)
        equipment[board.name] = replace(
            made,
            telemetry=told,
            outlet=open_outlet(lab, board),
            outlet_shared=sharers(lab.inventory, board),
        )
    return equipment


def _equip_board(
    board: Board, profiles: Mapping[str, BoardProfile], context: SshContext, feed: MeterFeed | None
) -> BoardEquipment:
    profile = profiles[board.profile]
    transport_type = transport_class(board.transport)
    controller_type = power_controller_class(profile.power_controller)

    def transport() -> Transport:
        # Read at each connect: a secret is never kept longer than it is needed.
        password = resolve_secret(board.password) if board.password else None
        return transport_type(board, context, password=password)

    async def agent(link: Transport) -> BoardAgent:
        return await open_agent(link, board)

    def controller(commands: BoardCommands) -> PowerController:
        return controller_type(commands, profile)

    async def probe() -> None:
        await probe_ssh(board)

    speaks_ssh = board.transport in TRANSPORTS  # one of somebody else may speak anything
    return BoardEquipment(
        board,
        profile,
        transport,
        agent,
        controller,
        feed,
        probe=probe if speaks_ssh else None,
    )


def _feed(lab: Lab, spec: MeterSpec, clock: Clock) -> MeterFeed:
    meter_type = meter_class(spec.kind)
    options = lab.document.validate(("meters", spec.name, "options"), meter_type.Options)
    secret = resolve_secret(spec.secret) if spec.secret else None
    is_shared = sum(board.meter == spec.name for board in lab.inventory.boards) > 1
    return MeterFeed(spec, meter_type(spec, options, secret), clock, is_shared=is_shared)


def _telemetry(board: Board, profile: BoardProfile, rules: MeasureRules) -> TelemetryFeed | None:
    """By default tegrastats where NVIDIA has its tools, else what files tell."""
    if rules.telemetry == "off":
        return None
    usual = "tegrastats" if profile.power_controller == "nvpmodel" else "files"
    name = board.telemetry or usual
    return TelemetryFeed(name, telemetry_class(name), rules.telemetry.rate_hz, write_telemetry)

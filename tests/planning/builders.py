"""Small boards, profiles, payloads and sweeps for the planning tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from farm.model.board import Board
from farm.model.payload import Parameter, Payload, PayloadManifest
from farm.model.plan import Plan
from farm.model.power_mode import PowerMode
from farm.model.profile import BoardProfile
from farm.model.sweep import Sweep
from farm.planning.plan import make_plan


def board(
    name: str,
    profile: str = "tx2",
    *,
    tags: tuple[str, ...] = (),
    meter: str | None = None,
    is_maintenance: bool = False,
) -> Board:
    return Board(
        name=name,
        profile=profile,
        host="127.0.0.1",
        user="u",
        tags=tags,
        meter=meter,
        is_maintenance=is_maintenance,
    )


def profile(
    name: str = "tx2", masks: Mapping[str, int | None] | None = None, default: str | None = None
) -> BoardProfile:
    modes = {"MAXN": None, "MAXQ": None} if masks is None else masks
    return BoardProfile(
        name=name,
        summary="",
        power_controller="nvpmodel",
        cores=4,
        power_modes=tuple(PowerMode(name=key, tpc_mask=mask) for key, mask in modes.items()),
        default_power_mode=default,
    )


def payload(
    name: str = "w",
    parameters: Mapping[str, Parameter] | None = None,
    *,
    level: int = 1,
    digest: str = "d" * 64,
) -> Payload:
    if parameters is None:
        parameters = {
            "batch": Parameter(type="int", default=1),
            "precision": Parameter(type="str", default="FP16"),
        }
    manifest = PayloadManifest(
        name=name, level=level, summary="", command=("true",), parameters=dict(parameters)
    )
    return Payload(manifest=manifest, folder=Path(), files=(), digest=digest)


def sweep(payloads: object = ({"payload": "w"},), **rest: object) -> Sweep:
    return Sweep.model_validate({"name": "s", "repeats": 1, "payloads": payloads, **rest})


def plan(
    asked: Sweep,
    boards: Sequence[Board],
    profiles: Sequence[BoardProfile] = (),
    payloads: Sequence[Payload] = (),
) -> Plan:
    return make_plan(
        asked,
        boards,
        {item.name: item for item in profiles or (profile(),)},
        {item.manifest.name: item for item in payloads or (payload(),)},
    )


def texts(made: Plan) -> list[str]:
    """``board mode batch r1`` for each trial, in order."""
    return [
        f"{trial.board} {trial.cell.power_mode} {trial.cell.parameters['batch']} r{trial.repeat}"
        for trial in made.trials
    ]

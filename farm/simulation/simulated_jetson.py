"""What one type of simulated Jetson is: what its tools need, and what identifies it."""

from dataclasses import dataclass

from farm.simulation.board_commands.board_files import BoardFacts


@dataclass(frozen=True, slots=True)
class SimulatedJetson:
    """One Jetson type. `policies` lists the cores that share a clock; CPU in kHz, GPU in Hz.

    `release` is the text of /etc/nv_tegra_release; `gpu_device` the folder of the GPU's masks
    and power control ("" if there is none), `gpu_link` a link to it in the same folder.
    """

    facts: BoardFacts
    compatible: tuple[str, ...]
    release: str
    policies: tuple[tuple[int, ...], ...]
    cpu_khz: tuple[int, ...]
    gpu_hz: tuple[int, ...]
    gpu_device: str = ""
    gpu_link: str = "gpu.0"

    @property
    def core_count(self) -> int:
        """How many cores there are, online or not."""
        return len(self.facts.idle_states)


def release_line(release: str, gcid: int, board: str, date: str) -> str:
    """The first line of /etc/nv_tegra_release; `release` such as ``R32 6.1``."""
    major, _, minor = release.partition(" ")
    return (
        f"# {major} (release), REVISION: {minor}, GCID: {gcid}, BOARD: {board}, "
        f"EABI: aarch64, DATE: {date}"
    )


def clusters(*sizes: int) -> tuple[tuple[int, ...], ...]:
    """Cores that share a clock, numbered on from cluster to cluster."""
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return tuple(
        tuple(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)
    )


def megahertz(*values: float) -> tuple[int, ...]:
    """Frequencies in Hz from MHz."""
    return tuple(round(value * 1_000_000) for value in values)

"""When ``nvpmodel`` asks to reboot, and what it does with the answer.

The GPU's masks can only change while nothing has used the GPU since the boot. Else the tool
asks; only ``YES`` or ``yes`` changes anything, and then at the next boot.
"""

import sys

from farm.simulation.board_commands.board_files import (
    GPU_USED_FILE,
    REQUEST_FILE,
    BoardFacts,
    BoardFiles,
    complain,
    say,
)
from farm.simulation.board_commands.nvpmodel_conf import (
    Mode,
    ModeTable,
    file_of,
    masks,
    store_mode,
    stored_mode_id,
)

BY_NVPMODEL_FILE = "/var/lib/nvpmodel/farm-sim-reboot"
"""Left for the boot: nvpmodel itself asked for it, which also frees a mask that is stuck."""

_FAILED = 255


def must_ask(files: BoardFiles, facts: BoardFacts, table: ModeTable, mode: Mode) -> bool:
    """Whether the change needs a reboot now. Raises OSError."""
    if files.has_quirk("prompt_for_current") and mode.mode_id == stored_mode_id(files, table):
        return True
    if not facts.question or not files.exists(GPU_USED_FILE):
        return False
    return any(
        files.read(file_of(files, table.parameters[mask.parameter], mask.argument)) != mask.value
        for mask in masks(mode)
    )


def ask_to_reboot(files: BoardFiles, facts: BoardFacts, mode: Mode) -> int:
    """Ask, wait for the answer, and do it; the tool's exit status. Raises OSError."""
    if facts.question == "golden":
        say("NVPM WARN: Golden image context is already created")
    say(f"NVPM WARN: Reboot required for changing to this power mode: {mode.mode_id}")
    say("NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:")
    answer = sys.stdin.readline() if sys.stdin is not None else ""
    if answer.strip() in {"YES", "yes"}:
        store_mode(files, facts, mode)
        files.write(BY_NVPMODEL_FILE, "1")
        say("NVPM WARN: rebooting")
        files.write(REQUEST_FILE, "reboot")
        return 0
    if not answer:
        complain("NVPM ERROR: bad input!")
    complain("NVPM ERROR: optMask is 1, no request for power mode")
    return _FAILED

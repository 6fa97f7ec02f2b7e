"""What nvpmodel's refusals are to the user: each kind its own error. Pure."""

from farm.drivers.power_modes.nvpmodel_output import Meaning, QueryAnswer, SetReport
from farm.errors import PowerModeError, RebootNeededError
from farm.interfaces.transport import CommandResult
from farm.model.power_mode import PowerMode

CONF = "/etc/nvpmodel.conf"
STATUS = "/var/lib/nvpmodel/status"
"""Where nvpmodel keeps the mode; its boot service applies what stands there."""

_NO_SUCH_COMMAND = 127
_SAID_LIMIT = 500

_REASONS = {
    Meaning.NOT_ROOT: ("a file was refused although it ran as root", ""),
    Meaning.NO_DEVICE: (
        "the kernel knows no such device in the mode that it is in",
        "Reboot the board; some images cannot leave such a mode otherwise.",
    ),
    Meaning.NOT_THERE: (
        f"a file that {CONF} names is not there",
        "Too early after a boot, or the conf of another board: see where the link leads.",
    ),
}


def question(mode: PowerMode, report: SetReport) -> RebootNeededError | None:
    """The board asks to reboot, or reboots already."""
    if report.outcome not in ("needs_reboot", "rebooting"):
        return None
    seen = "the board asks for a reboot to change into this mode; nothing was changed"
    if report.outcome == "rebooting":
        seen = "the board reboots into this mode by itself"
    return _needs_reboot(mode, seen)


def stuck_mask(mode: PowerMode, mask: str) -> RebootNeededError:
    """The mode is set, and the GPU's mask is another's. `mask`: what is and what should be."""
    return _needs_reboot(mode, f"the mode is set, but {mask}; only a reboot brings it into force")


def _needs_reboot(mode: PowerMode, seen: str) -> RebootNeededError:
    return RebootNeededError(
        f"set power mode {mode.name}",
        seen,
        mode=mode.name,
        remedy=(
            "Let the sweep reboot boards (limits: {reboot: true}), or leave the mode out, or "
            f"run `sudo nvpmodel -m {mode.id}` on the board and answer YES."
        ),
    )


def bad_mode(mode: PowerMode) -> PowerModeError:
    """The board's conf was changed under us: it has no such ID now."""
    return PowerModeError(f"set power mode {mode.name}", f"no ID {mode.id} on the board")


def not_set(mode: PowerMode, answer: QueryAnswer | None, report: SetReport) -> PowerModeError:
    """Another mode was read back after setting: why, as far as the tool's words tell."""
    step = f"set power mode {mode.name}"
    seen = "no mode" if answer is None else f"{answer.name} ({answer.id})"
    seen = f"read back {seen} in place of ({mode.id})"
    status = next((file for file in report.files if file.path == STATUS), None)
    if status is not None or report.meaning is Meaning.READ_ONLY:
        path = status.path if status is not None else report.files[0].path
        number = status.number if status is not None else report.files[0].number
        return PowerModeError(
            step,
            f"{seen}: {path} cannot be written (error {number})",
            remedy="The board's root is read-only or volatile: it can keep no power mode.",
        )
    if report.meaning is Meaning.BUSY:
        return _needs_reboot(mode, f"{seen}: the GPU was used since the boot{said(report)}")
    reason, remedy = _REASONS.get(report.meaning, ("", ""))
    reason = f": {reason}" if reason else ""
    told = said(report) or ("" if reason else "; nvpmodel took it without a word")
    return PowerModeError(step, f"{seen}{reason}{told}", remedy=remedy)


def said(report: SetReport) -> str:
    """The tool's own error lines in brackets, or ""."""
    return f" (it said: {'; '.join(report.errors)[:_SAID_LIMIT]})" if report.errors else ""


def no_table(conf: str | None, printed: CommandResult, profile: str) -> PowerModeError:
    """Neither the conf nor the tool lists a mode."""
    seen = f"{CONF} is not there or cannot be read" if conf is None else f"{CONF} lists no mode"
    if printed.exit_status == _NO_SUCH_COMMAND:
        told = "there is no nvpmodel on the board"
    else:
        lines = (printed.error_text.strip() or printed.text.strip()).splitlines()
        told = f"`nvpmodel -p` lists none either: {lines[-1][:200] if lines else 'no output'}"
    return PowerModeError(
        "read power modes",
        f"{seen}, and {told}",
        remedy=f"Is it a Jetson ({profile}) with its L4T tools installed?",
    )

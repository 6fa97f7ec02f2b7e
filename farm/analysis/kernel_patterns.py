"""What kernels print when something goes wrong, as patterns: data, the likeliest cause first.

Each pattern is applied to one message without its time stamp. Texts are those of the kernel's
sources and of logs of Jetsons and Raspberry Pis from 3.10 to 6.x; meanings of Xid numbers are
*documented* (NVIDIA, "XID Errors").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """`text` is the cause in a sentence; ``{name}`` is a group of the expression."""

    code: str
    regex: re.Pattern[str]
    text: str


XIDS = {
    "13": "a graphics engine exception, mostly the program's",
    "31": "a memory page fault, mostly the program's",
    "32": "an invalid command stream",
    "43": "the program's channel was stopped",
    "45": "channels were cleaned up after an earlier error",
    "48": "an uncorrectable memory error",
    "61": "an internal micro-controller warning",
    "62": "an internal micro-controller halt",
    "69": "a graphics engine class error",
    "74": "an NVLink error",
    "79": "the GPU has fallen off the bus",
    "94": "a contained memory error",
    "95": "an uncontained memory error",
    "119": "the GPU's system processor did not answer",
}

HARMLESS = re.compile(
    r"will (?:throttle|shut ?down) when"  # limits that are told at boot
    r"|throttrip: .{0,40}missing|watchdog: Delayed init|NMI watchdog: Enabled"
    r"|voltage normalised|reset_control|Link is Up",
    re.IGNORECASE,
)
"""Looks like a cause and is none: announcements, and news that it is over."""

WORDS = re.compile(
    r"alarm|abort|blocked|BUG|block|critical|CPU|current|detected|disabled|disconnect|down|enable"
    r"|enumerate|ERR|error|fault|fail|flush|HARDWARE|hang|Kill|LOCKUP|memory|oom|Oops|panic"
    r"|protect|reaped|read-only|reset|segfault|SError|stall|still running|swap|throttl|time ?out"
    r"|timed out|trap|fallen|lost|unable|unregister|voltage|watchdog|Xid|pages RAM|MovableOnly",
    re.IGNORECASE,
)
"""A message without any of these is no cause: saves most lines all the patterns."""

_NAME = r"\((?P<process>.{1,40}?)\)(?=[,\s]|$)"  # it may hold brackets itself: ((sd-pam))
_TABLE: tuple[tuple[str, str, str], ...] = (
    (
        "kernel_panic",
        r"Kernel panic - not syncing:? ?(?P<what>.{0,80})",
        "the kernel panicked: {what}",
    ),
    (
        "kernel_oops",
        r"Unable to handle kernel|Internal error: |\bOops\b[ :-]|kernel BUG at|\bBUG: unable"
        r"|general protection fault|SError Interrupt on CPU",
        "the kernel itself failed (oops)",
    ),
    ("thermal_shutdown", r"critical temperature reached", "too hot: the board shut itself down"),
    (
        "thermal_shutdown",
        r"HARDWARE PROTECTION (?:shutdown|reboot) \([^)]{0,30}temperature",
        "too hot: the board shut itself down",
    ),
    (
        "hardware_protection",
        r"HARDWARE PROTECTION (?:shutdown|reboot) \((?P<why>[^)]{1,60})\)",
        "the board shut itself down to protect its hardware: {why}",
    ),
    (
        "out_of_memory",
        rf"Kill(?:ed)? process (?P<pid>\d{{1,10}}),? {_NAME}",
        "memory ran out: the kernel killed {process} (pid {pid})",
    ),
    (
        "out_of_memory",
        r"oom-kill:.{0,600}task=(?P<process>[^,]{1,40}),pid=(?P<pid>\d{1,10})",
        "memory ran out: the kernel killed {process} (pid {pid})",
    ),
    (
        "out_of_memory",
        rf"oom_reaper: reaped process (?P<pid>\d{{1,10}}) {_NAME}",
        "memory ran out: the kernel killed {process} (pid {pid})",
    ),
    ("out_of_memory", r"invoked oom-killer|\bout of memory\b", "memory ran out"),
    ("under_voltage", r"under-?voltage detected", "the supply voltage fell too low"),
    (
        "over_current",
        r"\busb\b.{0,60}over-?current|\bhub\b.{0,60}over-?current",
        "a USB port drew too much current",
    ),
    (
        "over_current",
        r"\bOC ALARM\b|over-?current (?:detected|event|alarm|condition)",
        "the board drew more current than its supply may give",
    ),
    (
        "thermal_throttle",
        r"temperature above threshold|clock throttled|thermal.{0,60}throttl|soctherm.{0,60}throttl"
        r"|throttl.{0,40}(?:thermal|temperature)",
        "too hot: the kernel slowed the board down",
    ),
    (
        "storage_error",
        r"(?P<device>\b(?:mmcblk\d|nvme\d|sd[a-z]\b|zram\d|loop\d)\w{0,12}).{0,80}"
        r"(?:error(?!s=)|timeout|abort|controller is down|read-only)",
        "storage error on {device}",
    ),
    (
        "storage_error",
        r"(?:I/O error|error on dev|critical medium error|Buffer I/O).{0,40}"
        r"\b(?:dev |device )(?P<device>[\w-]{1,24})",
        "storage error on {device}",
    ),
    (
        "storage_error",
        r"(?:EXT4-fs|JBD2|BTRFS|XFS|F2FS-fs|SQUASHFS|FAT-fs).{0,20} ?error"
        r"|Aborting journal|aborted journal|Remounting filesystem read-only",
        "the file system met errors",
    ),
    (
        "storage_error",
        r"(?P<device>\bmmc\d{1,3}): .{0,60}(?:error(?!s=)|timeout|still running|timed out)",
        "storage error on {device}",
    ),
    ("storage_error", r"\bata\d{1,3}.{0,40}(?:failed command|exception Emask)", "a disk failed"),
    ("gpu_error", r"NVRM: Xid \([^)]{0,40}\): (?P<xid>\d{1,4})", "GPU error Xid {xid}{meaning}"),
    ("gpu_error", r"nvgpu.{0,200}mmu.?fault", "the GPU met a memory fault"),
    (
        "gpu_error",
        r"nvgpu.{0,200}(?:\[ERR\]|timeout|error notifier)|gk20a.{0,100}(?:fault|timeout|error)"
        r"|NVRM: (?:GPU|RmInit).{0,80}(?:fail|lost|fallen)",
        "the GPU driver met an error",
    ),
    ("gpu_error", r"host1x.{0,160}(?:time ?out|timed out|stuck)", "the GPU's host1x timed out"),
    (
        "gpu_error",
        r"Resetting GPU|GPU HANG|V3D_ERR_STAT|MMUC? flush (?:timeout|wait idle failed)"
        r"|(?:v3d|panfrost|panthor|mali|amdgpu|etnaviv).{0,120}(?:time ?out|timed out|fault)",
        "the GPU hung and was reset",
    ),
    (
        "process_crash",
        r"(?P<process>[^\s\[\]]{1,40})\[(?P<pid>\d{1,10})\]:? "
        r"(?:segfault|unhandled .{1,60} fault|trap |general protection|undefined instruction)",
        "{process} (pid {pid}) crashed",
    ),
    (
        "cpu_stall",
        r"rcu\w*:? .{0,40}stall|rcu_\w+ .{0,20}(?:self-)?detected stall|soft lockup|hard LOCKUP",
        "a CPU got stuck",
    ),
    (
        "hung_task",
        r"task (?P<process>[^\s]{1,40}):(?P<pid>\d{1,10}) blocked for more than",
        "{process} (pid {pid}) hung in the kernel",
    ),
    (
        "watchdog",
        r"watchdog.{0,60}(?:did not stop|expired|time ?out occurred|reset by|pretimeout)",
        "the watchdog ran out",
    ),
    ("pcie_error", r"PCIe Bus Error: severity=Uncorrect|AER: .{0,40}Uncorrect", "a PCIe error"),
    (
        "usb_error",
        r"USB disconnect|cannot reset port|Cannot enable port|unable to enumerate USB"
        r"|disabled by hub \(EMI|reset (?:low|full|high|Super)[\w+ -]{0,12}speed"
        r"|reset (?:low|full|high|super)-?speed|device descriptor read.{0,20}error"
        r"|device not accepting address",
        "a USB device failed or was reset",
    ),
    (
        "network_error",
        r"NETDEV WATCHDOG|transmit queue \d{1,4} timed out",
        "the network device hung",
    ),
    ("network_link_down", r"Link is Down|carrier lost", "the network link went down"),
    (
        "network_error",
        r"\b(?:eth|end|en[opsx]|wlan)\w{0,16}:? unregister",
        "a network device vanished",
    ),
    (
        "rt_throttled",
        r"RT throttling activated",
        "real-time tasks used up their time and were paused",
    ),
    (
        "memory_pressure",
        r"page allocation failure|Free swap|Total swap|\bpages RAM\b|HighMem/MovableOnly",
        "the kernel was short of memory",
    ),
)

PATTERNS = tuple(
    Pattern(code, re.compile(regex, re.IGNORECASE), text) for code, regex, text in _TABLE
)
RANK = {code: index for index, code in reversed(list(enumerate(row[0] for row in _TABLE)))}
"""The lower, the likelier is it the cause of the others."""


def sentence(pattern: Pattern, parts: Mapping[str, str]) -> str:
    """The cause in words, with what the message names."""
    meaning = XIDS.get(parts.get("xid", ""), "")
    filled = pattern.text.format(**parts, meaning=f": {meaning}" if meaning else "")
    return filled.rstrip(": ")

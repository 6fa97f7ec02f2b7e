"""Kernel logs of many boards in many forms -> causes."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.analysis.kernel_causes import (
    LONGEST_LINE,
    MOST_CAUSES,
    PayloadEnd,
    kernel_causes,
    slack_s,
)
from farm.analysis.kernel_patterns import PATTERNS
from farm.model.kernel import KernelCause
from tests.recording_cases import cases, meant, printed

KILL = "[ 120.000000] Out of memory: Killed process 77 (python3) total-vm:1kB\n"
HOSTILE = st.one_of(
    st.text(max_size=400),
    st.sampled_from([path.values[0].read_text("utf-8", "replace") for path in cases("kernel")]),
    st.text("[]() .:,;-=0123456789+\n\r\tTCkernl{}", max_size=400),
)


@pytest.mark.parametrize("path", cases("kernel"))
def test_recordings_mean_what_stands_beside_them(path: Path) -> None:
    case = meant(path)
    begin_s, end_s = case.get("window", [None, None])
    found = kernel_causes(printed(path), begin_s, end_s)
    assert [summary(cause) for cause in found] == [
        {"process": "", "pid": None, **{k: v for k, v in one.items() if k != "says"}}
        for one in case["causes"]
    ]
    for cause, one in zip(found, case["causes"], strict=True):
        assert one.get("says", "") in cause.text


def summary(cause: KernelCause) -> dict[str, Any]:
    return {
        "code": cause.code,
        "at_s": cause.at_s,
        "count": cause.count,
        "process": cause.process,
        "pid": cause.pid,
    }


def test_every_code_has_a_recording_or_a_line_here() -> None:
    shown = {one["code"] for path in cases("kernel") for one in meant(path.values[0])["causes"]}
    assert {pattern.code for pattern in PATTERNS} - shown == set(LINES)


LINES = {
    "hardware_protection": "reboot: HARDWARE PROTECTION shutdown (regulator under voltage)",
    "pcie_error": "pcieport 0001:00:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal)",
    "thermal_throttle": "CPU0: Core temperature above threshold, cpu clock throttled (total = 1)",
    "watchdog": "watchdog: watchdog0: watchdog did not stop!",
}


@pytest.mark.parametrize("code", LINES)
def test_a_line_of_each_rarer_code(code: str) -> None:
    (cause,) = kernel_causes(f"<4>[   12.500000] {LINES[code]}\n")
    assert (cause.code, cause.at_s) == (code, 12.5)


@pytest.mark.parametrize(
    "text",
    [
        "[ 1.5] x",
        "Mar 15 13:15:57 board1 kernel: usb 1-1: USB disconnect, device number 2",
        "2026-03-15T13:15:57+0000 board1 kernel: usb 1-1: USB disconnect, device number 2",
        "[Wed Aug 28 17:07:01 2024] usb 1-1: USB disconnect, device number 2",
        "kern  :info  : [  198.634088] usb 1-1: USB disconnect, device number 2",
        "6,339,198634088,-;usb 1-1: USB disconnect, device number 2",
        "[  198.634088][    C0] usb 1-1: USB disconnect, device number 2",
    ],
)
def test_every_form_of_a_line_is_read(text: str) -> None:
    found = kernel_causes(text)
    if "USB" not in text:
        assert found == ()
        return
    (cause,) = found
    assert cause.code == "usb_error"
    assert cause.at_s == (198.634088 if "198" in text else None)


@pytest.mark.parametrize(
    "line",
    [
        "EXT4-fs (mmcblk0p1): re-mounted. Opts: errors=remount-ro",
        "mmc0: new ultra high speed SDR104 SDHC card at address aaaa",
        "eth0: Link is Up - 1Gbps/Full - flow control off",
        "thermal_sys: Registered thermal governor 'step_wise'",
        "hwmon hwmon1: Voltage normalised",
        "cpu cpu0: EM: created perf domain",
        "Memory: 7858000K/8388608K available",
        "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
        "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
        "nvgpu: 17000000.gpu gk20a_scale_notify: clock changed",
    ],
)
def test_everyday_lines_are_no_cause(line: str) -> None:
    assert kernel_causes(f"[    9.000000] {line}\n") == ()


def test_the_window_allows_for_the_drift_of_the_kernels_clock() -> None:
    week_s = 7 * 86400.0
    line = f"[{week_s:.6f}] hwmon hwmon1: Undervoltage detected!\n"
    assert slack_s(week_s) > 50
    assert kernel_causes(line, begin_s=week_s + 50)
    assert not kernel_causes(line, begin_s=week_s + slack_s(week_s) + 1)
    assert not kernel_causes(line, begin_s=0, end_s=week_s - slack_s(week_s) - 1)


@pytest.mark.parametrize(
    ("end", "is_payload"),
    [
        (PayloadEnd(frozenset({"python3"}), 120.5, was_killed=True), True),
        (PayloadEnd(frozenset({"run.sh"}), 120.5, was_killed=True), True),
        (PayloadEnd(frozenset({"python3"}), 300.0, was_killed=True), False),
        (PayloadEnd(frozenset({"python3"}), 300.0), True),
        (PayloadEnd(frozenset({"trtexec"}), 300.0), None),
        (PayloadEnd(frozenset({"trtexec"})), None),
    ],
)
def test_whose_process_was_killed(end: PayloadEnd, is_payload: bool | None) -> None:
    (cause,) = kernel_causes(KILL, payload=end)
    assert cause.is_payload is is_payload


def test_what_hit_the_payload_comes_first() -> None:
    text = (
        f"[ 119.0] Kernel panic - not syncing: no\n[ 119.000000] Unable to handle kernel\n{KILL}"
    )
    end = PayloadEnd(frozenset({"python3"}), 120.5, was_killed=True)
    assert [one.code for one in kernel_causes(text)][-1] == "out_of_memory"
    assert kernel_causes(text, payload=end)[0].code == "out_of_memory"


def test_hostile_lines_stay_bounded_and_plain() -> None:
    lines = [f"[1.000{n}] Killed process {n} (\x1b[31m{{pid}}{n}) x" for n in range(1000)]
    lines.append("[2.000000] Kernel panic - not syncing: " + "A" * 100_000)
    found = kernel_causes("\n".join(lines))
    assert len(found) == MOST_CAUSES
    assert all(len(one.line) <= LONGEST_LINE and "\x1b" not in one.line for one in found)
    assert all("\x1b" not in one.text and len(one.text) < LONGEST_LINE for one in found)


@settings(max_examples=80, deadline=None)
@given(st.lists(HOSTILE, max_size=5), st.floats(allow_nan=False) | st.none())
def test_nothing_raises(pieces: list[str], begin_s: float | None) -> None:
    end = PayloadEnd(frozenset({"x"}), 5.0, was_killed=True)
    for cause in kernel_causes("".join(pieces), begin_s, None, end):
        assert cause.count >= 1
        assert len(cause.line) <= LONGEST_LINE
        assert cause.at_s is None or cause.at_s >= 0

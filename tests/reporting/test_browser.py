"""The report in a real browser: drawn, nothing complained of, nothing asked of the network."""

import shutil
import subprocess
from pathlib import Path

import pytest

from farm.reporting.html import render_report
from tests.reporting.results import a_report, a_result, a_trace
from tests.reporting.test_html import hostile_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = [
    *["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
    *["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    *["--hide-scrollbars", "--window-size=1000,1500", "--enable-logging=stderr", "--v=0"],
    # Any name or address that the page asks for fails, and is told on stderr.
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


def browse(tmp_path: Path, text: str) -> tuple[Path, str]:
    page, picture = tmp_path / "report.html", tmp_path / "report.png"
    page.write_text(text, "utf-8", errors="replace")
    done = subprocess.run(
        [
            str(CHROMIUM),
            *OPTIONS,
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--screenshot={picture}",
            page.as_uri(),
        ],
        capture_output=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    said = done.stderr.decode("utf-8", "replace")
    assert picture.exists(), said
    return picture, said


@pytest.mark.parametrize("is_hostile", [False, True])
def test_the_report_is_drawn_without_a_complaint(tmp_path: Path, is_hostile: bool) -> None:
    plain = a_report([a_result(), a_result(50.0, 7.0, mode="MAXQ")], trace=a_trace())
    picture, said = browse(tmp_path, render_report(hostile_report() if is_hostile else plain))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000  # an empty page of this size has about 5 kB
    assert "CONSOLE" not in said


def test_the_browser_would_tell_of_a_script_and_of_a_load(tmp_path: Path) -> None:
    text = render_report(a_report([]))
    text = text.replace("</body>", "<script>1</script><img src='https://board.invalid/x'></body>")
    _, said = browse(tmp_path, text)
    told = [line for line in said.splitlines() if "CONSOLE" in line]
    assert any("script" in line for line in told)
    assert any("img-src" in line or "image" in line for line in told)

"""The report: whole with anything in it, and it asks nothing of the network."""

import re
from html.parser import HTMLParser

import pytest

from farm.interfaces.sinks import RunEvent
from farm.model.attempt import TrialState
from farm.model.measurement import Reason, VerdictStatus
from farm.model.record import Source
from farm.reporting.data import ReportData
from farm.reporting.html import DOUBT_LIMIT, EVENT_LIMIT, render_report
from tests.reporting.results import NOW, a_failure, a_report, a_result, a_trace

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`></td></table></svg></style>"
    "<a href=javascript:alert(3)>&amp;&#60;b&#62; {{ 7*7 }} $\\frac{1}{2$ _x_ "
    "\x00\x07\x1b[31m\u202e 日本語"
)
VOID = {"meta", "link", "br", "img", "input", "hr"}
LOADING = {"script", "link", "iframe", "object", "embed", "base", "form", "audio", "video"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def page(data: ReportData) -> Page:
    return Page(render_report(data))


def hostile_report() -> ReportData:
    doubt = (Reason(code=HOSTILE, text=HOSTILE),)
    strange = {
        "board": HOSTILE,
        "profile": HOSTILE,
        "payload": HOSTILE,
        "parameters": {HOSTILE: HOSTILE, "model": HOSTILE},
        "mode": HOSTILE,
        "unit": HOSTILE,
        "metric": HOSTILE,
        "reason": HOSTILE,
    }
    results = [
        a_result(reasons=doubt, status=status, repeat=repeat, **strange)  # type: ignore[arg-type]
        for repeat, status in enumerate((VerdictStatus.VALID, VerdictStatus.INVALID), 1)
    ]
    results.append(a_failure(HOSTILE, board=HOSTILE))
    events = [RunEvent(NOW, kind, HOSTILE, text=HOSTILE) for kind in ("retry", "board_lost")]
    return a_report(
        results, events=events, trace=a_trace(HOSTILE, HOSTILE), sweep=HOSTILE, state=HOSTILE
    )


def test_no_tag_survives_from_any_field() -> None:
    text = render_report(hostile_report())
    found = Page(text)
    assert not found.open
    assert not LOADING & set(found.tags)
    assert not {"img", "a"} & set(found.tags)
    assert not [name for _, name, _ in found.attributes if name.startswith("on")]
    assert "<script" not in text.lower()
    assert "alert(1)" in found.text  # it is shown, as text
    assert "{{ 7*7 }}" in found.text


def test_nothing_is_loaded_from_anywhere() -> None:
    text = render_report(a_report([a_result()], trace=a_trace(samples=5000)))
    found = Page(text)
    for tag, name, value in found.attributes:
        if name in ("src", "srcset", "action", "data", "background", "poster") or name.endswith(
            "href"
        ):
            assert value.startswith(("#", "data:image/png;base64,")), (tag, name)
    assert not re.search(r"@import|url\((?!#)", text)
    policy = [value for _, name, value in found.attributes if name == "content" and "src" in value]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


@pytest.mark.parametrize(
    ("sources", "is_shown"),
    [
        ([Source.MEASURED], False),
        ([Source.SIMULATED], True),
        ([Source.MEASURED, Source.SIMULATED], True),
        ([Source.RECORDED], False),
        ([None], False),
        ([], False),
    ],
)
def test_the_simulated_banner_is_there_iff_a_source_is_simulated(
    sources: list[Source | None], is_shown: bool
) -> None:
    results = [a_result(source=source, board=f"b{n}") for n, source in enumerate(sources)]
    text = page(a_report(results)).text
    assert ("Simulated figures:" in text) is is_shown


def test_measured_and_simulated_are_apart_and_each_row_and_plot_says_which() -> None:
    results = [
        a_result(10.0),
        a_result(20.0, repeat=2, source=Source.SIMULATED),
        a_result(30.0, repeat=3, source=Source.SIMULATED),
    ]
    text = render_report(a_report(results))
    rows = re.findall(r"<tr><td>.*?</tr>", text)
    assert len(rows) == 2
    assert ">measured<" in rows[0]
    assert "10 images/s" in rows[0]
    assert ">simulated<" in rows[1]
    assert "25.00 ± 7.07 images/s" in rows[1]
    captions = re.findall(r"<figcaption>(.*?)\.\n", text, re.DOTALL)
    assert [caption.rpartition(" ")[2] for caption in captions] == ["(measured)", "(simulated)"]


def test_an_empty_run_is_a_whole_page() -> None:
    found = page(a_report([]))
    assert not found.open
    assert "0 trials" in found.text
    assert "svg" not in found.tags
    for heading in ("Not done", "Doubts", "Against published"):
        assert heading not in found.text


def test_a_run_of_failures_says_why_and_how_to_go_on() -> None:
    reason = "exit status 3: cannot open /dev/video0"
    found = page(a_report([a_failure(reason, repeat=n) for n in range(1, 4)]))
    assert "3 of 3 trials have no result" in found.text
    assert reason in found.text
    assert "farm resume 20261130-2215-night-3f2a" in found.text
    assert "svg" not in found.tags


def test_unsupported_trials_are_results_not_open_ones() -> None:
    one = a_result(None, None, state=TrialState.UNSUPPORTED, status=None, reason="no such mode")
    assert "Not done" not in page(a_report([one])).text


def test_doubts_show_codes_and_numbers() -> None:
    doubt = Reason(code="gap_at_edge", text="1.2 s without a reading")
    one = a_result(status=VerdictStatus.SUSPECT, reasons=[doubt])
    text = page(a_report([one])).text
    assert "gap_at_edge" in text
    assert "1.2 s without a reading" in text


def test_long_lists_are_cut_and_say_so() -> None:
    doubt = [Reason(code="gap", text="x")]
    results = [
        a_result(repeat=n, status=VerdictStatus.SUSPECT, reasons=doubt)
        for n in range(DOUBT_LIMIT + 7)
    ]
    events = [RunEvent(NOW, "retry", "a", text="again") for _ in range(EVENT_LIMIT + 3)]
    events.append(RunEvent(NOW, "trial_start", "a", text="not worth a line"))
    text = page(a_report(results, events=events)).text
    assert "... and 7 more." in text
    assert "... and 3 more." in text
    assert "not worth a line" not in text


def test_plots_speak_to_those_who_cannot_see_them() -> None:
    found = page(a_report([a_result(), a_result(50.0, 7.0, mode="MAXQ")], trace=a_trace()))
    labels = [value for _, name, value in found.attributes if name == "aria-label"]
    assert len(labels) == 2
    assert "94.3 images/s at 13.9 W" in labels[0]
    assert found.tags.count("svg") == 2


def test_the_same_run_gives_the_same_report() -> None:
    data = a_report([a_result()], trace=a_trace())
    assert render_report(data) == render_report(data)

"""The documents against the code: links, commands, and the lists that are promises."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from farm.analysis.reasons import ReasonCode
from farm.cli.main import app
from farm.model.attempt import Outcome, TrialState

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WORDS = (ROOT / "docs" / "glossary.md").read_text("utf-8")
RESULTS = (ROOT / "docs" / "results-format.md").read_text("utf-8")
JUDGED = {Outcome.OK, Outcome.INVALID}
"""Outcomes whose attempts have a measurement to judge; the others get ``attempt_*`` reasons."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as the forges make them."""
    heads = re.findall(r"^#+ +(.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_within_the_repository_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (document.parent / path).resolve() if path else document
        assert found.exists(), target
        assert found.is_relative_to(ROOT), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), target


def command_lines(document: Path) -> Iterator[str]:
    """Lines of code blocks and code spans that begin with ``farm ``."""
    text = document.read_text("utf-8")
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for line in [*(line for block in blocks for line in block.splitlines()), *spans]:
        match = re.match(r"\s*(?:\$ +)?(?:\.venv/bin/)?(farm [a-z-].*)", line)
        if match:
            yield re.split(r" +#| +\||[;&>]", match[1])[0].strip()


def commands(document: Path) -> list[str]:
    return sorted(set(command_lines(document)))


def check_command(line: str) -> None:
    """Fails when `line` uses a command or an option that there is not."""
    command: Any = get_command(app)
    words = shlex.split(line)[1:]
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        assert words[0] in command.commands, f"no command {words[0]!r}: {line}"
        command = command.commands[words.pop(0)]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    known |= {"--help", "-h"}
    for word in words[: words.index("--")] if "--" in words else words:  # then a board's command
        option = word.split("=")[0]
        assert not option.startswith("-") or option in known, f"no option {option!r}: {line}"


@pytest.mark.parametrize(
    ("document", "line"),
    [(document, line) for document in DOCUMENTS for line in commands(document)],
    ids=lambda value: name_of(value) if isinstance(value, Path) else value,
)
def test_commands_in_the_documents_exist(document: Path, line: str) -> None:
    check_command(line)


@pytest.mark.parametrize("line", ["farm runz list", "farm runs lst", "farm plan first --jsn"])
def test_a_wrong_command_would_be_found(line: str) -> None:
    with pytest.raises(AssertionError):
        check_command(line)


def told_kinds() -> set[str]:
    """The kinds of events that the code tells or shows, read from its calls."""
    kinds: set[str] = set()
    for folder in ("execution", "pipeline", "store"):
        for path in (ROOT / "farm" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    kinds |= kinds_of(node)
    return kinds


def kinds_of(call: ast.Call) -> set[str]:
    """Of ``x.tell(KIND, ...)``, ``x.show(KIND, ...)`` and ``RunEvent(time, KIND, ...)``."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("tell", "show"):
        parts = call.args[:1]
    elif isinstance(call.func, ast.Name) and call.func.id == "RunEvent":
        parts = call.args[1:2]
    else:
        return set()
    return {
        node.value
        for part in parts
        for node in ast.walk(part)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def section(text: str, heading: str) -> str:
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_the_glossary_lists_the_events_that_the_code_tells_and_no_others() -> None:
    told = told_kinds()
    assert {"trial_end", "retry", "idle_drift", "restored"} <= told
    rows = re.findall(r"^\|(.*?)\|", section(WORDS, "Events of a run"), re.MULTILINE)
    listed = {kind for row in rows for kind in re.findall(r"`(\w+)`", row)}
    assert listed == told


@pytest.mark.parametrize(("words", "begin"), [(TrialState, "Trial states"), (Outcome, "Attempt")])
def test_the_glossary_lists_states_and_outcomes(
    words: type[TrialState] | type[Outcome], begin: str
) -> None:
    (line,) = [line for line in WORDS.splitlines() if line.startswith(begin)]
    assert set(re.findall(r"`(\w+)`", line)) == {word.value for word in words}


@pytest.mark.parametrize(("field", "words"), [("state", TrialState), ("outcome", Outcome)])
def test_the_results_format_lists_them_too(
    field: str, words: type[TrialState] | type[Outcome]
) -> None:
    (line,) = re.findall(rf"^\| `{field}`[^|]*\|(.*)\|$", RESULTS, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", line)) == {word.value for word in words}


def test_the_results_format_lists_every_reason_code_and_no_other() -> None:
    rows = re.findall(r"^\|[^|]*\|(.*)\|$", section(RESULTS, "Reasons of a verdict"), re.MULTILINE)
    listed = {code for row in rows for code in re.findall(r"`(\w+)`", row)}
    attempts = {f"attempt_{outcome.value}" for outcome in set(Outcome) - JUDGED}
    assert listed == {code.value for code in ReasonCode} | attempts

import json

import pytest

from farm.cli.output import one_line, plain, print_json, print_table


@pytest.mark.parametrize(
    "text",
    ["\x1b[2J", "\x9b31m", "a\rb", "\x00", "\x7f", "\u202etxt.exe", "\u2066", "\x08", "\udc80"],
)
def test_what_drives_a_terminal_becomes_a_question_mark(text: str) -> None:
    shown = plain(text)
    assert "?" in shown
    shown.encode("utf-8")
    assert shown.isprintable()


def test_letters_of_all_kinds_newlines_and_tabs_stay() -> None:
    assert plain("ümlaut 日本\tx\ny 🔋") == "ümlaut 日本\tx\ny 🔋"
    assert one_line("a\n\nb\u2028c\td") == "a b c d"


def test_json_is_ascii_and_parses(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "\x9b\u202e"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {"a": "\x9b\u202e"}


def test_a_table_in_a_pipe_is_never_cut_and_takes_no_markup(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = "x" * 150
    print_table("[bold]t", ["name", "[n]"], [["[red]a[/b]", "1.5"], [long, "22.5"]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "[bold]t"
    assert any("[red]a[/b]" in line and line.rstrip().endswith(" 1.5") for line in lines)
    assert any(long in line for line in lines)
    assert any("[n]" in line for line in lines)


def test_an_empty_table_has_its_heads(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ["board", "why"], [])
    assert "board" in capsys.readouterr().out

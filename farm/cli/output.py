"""Prints tables and JSON. Text from boards never reaches the terminal as control codes."""

import json
import re
from collections.abc import Iterable, Sequence

import typer

PIPE_WIDTH = 400
UNBROKEN = 9
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # escapes, carriage returns
    r"\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the direction of what follows
    r"\ud800-\udfff]"  # halves of characters, which cannot be printed
)


def plain(text: object) -> str:
    """`text` without control characters: a board's output must not drive the terminal."""
    return _CONTROL.sub("?", str(text))


def one_line(text: object) -> str:
    """`plain` on one line: a board's output must not look like another line of ours."""
    return plain(re.sub(r"[\t\n\u2028\u2029]+", " ", str(text)))


def print_json(value: object) -> None:
    """Print a JSON document."""
    typer.echo(json.dumps(value, indent=2, default=str))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; right-aligned where a column holds numbers."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    texts = [[plain(cell) for cell in row] for row in rows]
    heading = Text(plain(title), style="bold") if title else None
    table = Table(
        title=heading,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        collapse_padding=True,
    )
    for index, name in enumerate(columns):
        is_number = all(_is_number(row[index]) for row in texts) and bool(texts)
        is_short = max(len(name), *(len(row[index]) for row in texts), 0) <= UNBROKEN
        table.add_column(
            Text(name),
            justify="right" if is_number else "left",
            no_wrap=is_short,  # a narrow terminal breaks long texts first
            overflow="ellipsis" if is_short else "fold",
        )
    for row in texts:
        table.add_row(*(Text(cell) for cell in row))
    # A file or a pipe has no width: lines there are as long as the table needs.
    Console(width=None if is_terminal() else PIPE_WIDTH).print(table)


def is_terminal() -> bool:
    """True when stdout is a terminal."""
    import sys

    return sys.stdout.isatty()


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+]?[\d.,]*\d[\d.,]*( ?[%sWJ]| ?mJ)?|", text))

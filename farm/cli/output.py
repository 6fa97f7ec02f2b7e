"""Prints tables and JSON. Text from boards never reaches the terminal as control codes."""

import json
import re
from collections.abc import Iterable, Sequence

import typer

PIPE_WIDTH = 400
UNBROKEN, LONGEST_WORD = 13, 24
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
    floor = 0
    for index, name in enumerate(columns):
        cells = [row[index] for row in texts]
        is_number = all(map(_is_number, cells)) and bool(texts)
        longest = max([name, *cells], key=len)
        is_whole = len(longest) <= UNBROKEN
        floor += 2 + (len(longest) if is_whole else _longest_word([name, *cells]))
        table.add_column(
            Text(name),
            justify="right" if is_number else "left",
            no_wrap=is_whole,  # a narrow terminal breaks long texts first
            overflow="ellipsis" if is_whole else "fold",
        )
    for row in texts:
        table.add_row(*(Text(cell) for cell in row))
    # A file or a pipe has no width: lines there are as long as the table needs. A terminal too
    # narrow even for the words breaks the lines itself: better than columns of single letters.
    width = max(Console().width, floor) if is_terminal() else PIPE_WIDTH
    Console(width=width).print(table)


def _longest_word(texts: Iterable[str]) -> int:
    return min(
        LONGEST_WORD, max((len(word) for text in texts for word in text.split()), default=0)
    )


def is_terminal() -> bool:
    """True when stdout is a terminal."""
    import sys

    return sys.stdout.isatty()


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+]?[\d.,]*\d[\d.,]*( ?[%sWJ]| ?mJ)?|", text))

"""Lines out of chunks, however they are cut."""

from farm.pipeline.boards.execute import LONGEST_LINE, Lines


def lines_of(*chunks: bytes) -> list[str]:
    shown: list[str] = []
    lines = Lines(shown.append)
    for chunk in chunks:
        lines.take(chunk)
    lines.end()
    return shown


def test_lines_are_whole_wherever_the_chunks_are_cut() -> None:
    text = "eins\nzwei € drei\r\n\nvier".encode()
    expected = ["eins", "zwei € drei", "", "vier"]
    assert lines_of(text) == expected
    assert lines_of(*(bytes([byte]) for byte in text)) == expected


def test_what_is_no_utf_8_and_what_has_no_end_is_shown_too() -> None:
    assert lines_of(b"\xff\xfe\n\xe2\x82") == ["��", "�"]
    assert lines_of() == []


def test_an_endless_line_comes_in_pieces() -> None:
    shown = lines_of(b"x" * (3 * LONGEST_LINE), b"y\n")
    assert [len(line) for line in shown] == [LONGEST_LINE, LONGEST_LINE, LONGEST_LINE + 1]

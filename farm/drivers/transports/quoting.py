r"""Commands as text that any login shell hands on unharmed.

sshd gives the command line to the user's login shell, which may be sh, bash, dash, busybox,
csh, tcsh, zsh or fish. They agree on little, so we send one word list that all read alike:
``sh -c '...'``, in printable ASCII, with three characters never inside the quotes:

* ``'`` ends a quoted text in all of them;
* ``\`` is an escape inside single quotes in fish (before ``\`` and ``'``) and in csh
  (before ``!`` and a newline);
* ``!`` recalls history in csh, even inside single quotes.

Outside quotes a backslash before each of the three is that character in every shell.
Everything that is not printable ASCII goes as an octal escape to sh's printf: csh takes no
newline in quotes and bsd-csh uses the eighth bit of a byte for itself.
"""

import re
import string
from collections.abc import Sequence

COMMAND_LIMIT = 120_000
"""Bytes. The login shell gets the command as one argument, and Linux allows 131072 for one
(MAX_ARG_STRLEN in include/uapi/linux/binfmts.h)."""

PIECE_LIMIT = 4_000
"""Characters. bsd-csh refuses words above 8191 ("Word too long."; measured on Debian 12)."""

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_FORMAT_SAFE = frozenset(string.ascii_letters.encode() + string.digits.encode() + b" _./=:,@+")
_PRINTABLE = re.compile(r"[ -~]*")
_NEEDS_BACKSLASH = re.compile(r"(['\\!])")


def wrap_in_sh(script: str) -> str:
    """A command line for any login shell that has sh run `script` (printable ASCII).

    Raises ValueError when it gets too long for one argument.
    """
    pieces = [script[at : at + PIECE_LIMIT] for at in range(0, len(script), PIECE_LIMIT)]
    if len(pieces) > 1:
        # joined again by sh; IFS must be empty for that and as ever for the script
        pieces = ['IFS=;farm_s="$*";unset IFS;eval "$farm_s"', "sh", *pieces]
    line = " ".join(["sh -c", *map(quote_for_login_shell, pieces)])
    if len(line) > COMMAND_LIMIT:
        raise ValueError(f"the command has {len(line)} characters, {COMMAND_LIMIT} can be sent")
    return line


def quote_for_login_shell(text: str) -> str:
    """`text` (printable ASCII) as one word of sh, bash, dash, csh, tcsh, zsh and fish."""
    return "".join(
        f"\\{part}" if _NEEDS_BACKSLASH.fullmatch(part) else f"'{part}'"
        for part in _NEEDS_BACKSLASH.split(text)
        if part
    )


def quote_for_sh(word: str) -> str:
    """`word` (printable ASCII) as one word of sh."""
    if _PLAIN_WORD.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def write_words(argv: Sequence[str]) -> tuple[str, str]:
    """Sh text for an argv: assignments to run first, and the words themselves.

    Raises ValueError for an empty argv and for NUL bytes, which no command can be given.
    """
    if not argv or not argv[0] or argv[0].startswith("-"):
        raise ValueError("a command needs a name that does not begin with a dash")
    assignments: list[str] = []
    words: list[str] = []
    for word in argv:
        if "\0" in word:
            raise ValueError("a command's argument contains a NUL byte")
        if _PRINTABLE.fullmatch(word):
            words.append(quote_for_sh(word))
            continue
        name = f"farm_{len(assignments)}"
        # $() drops newlines at the end of a text, so a dot stands there and is taken off again
        assignments.append(f"{name}=$(printf '{_printf_format(word)}.');")
        words.append(f'"${{{name}%.}}"')
    return "".join(assignments), " ".join(words)


def _printf_format(word: str) -> str:
    """The word as a printf format in single quotes: every byte that could matter is octal.

    Also the dash, since a format that begins with one is an option to some printf.
    """
    return "".join(
        chr(byte) if byte in _FORMAT_SAFE else f"\\{byte:03o}"
        for byte in word.encode("utf-8", "surrogateescape")
    )

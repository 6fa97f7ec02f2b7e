"""Rules of the code base that no linter knows."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm import errors

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "farm"
HEAVY = (
    *["aiohttp", "alembic", "asyncssh", "fabric", "jinja2", "matplotlib", "numpy", "pandas"],
    *["paramiko", "psycopg", "pyarrow", "sqlalchemy"],
)
"""pydantic is not among them: typer itself loads it where a command has options."""
LONGEST_FILE = 400
VAGUE = {"utils", "util", "common", "misc", "helpers", "helper", "stuff", "manager", "base"}
# In pieces, so that this file does not name what it looks for.
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("npm" + "js", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("artifact" + "ory",),
    )
)
TEXT = {".py", ".md", ".yaml", ".yml", ".toml", ".txt", ".cfg", ".j2", ".sh", ".csv", ""}


def tracked_files() -> list[Path]:
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in done.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_imports_point_down() -> None:
    # The script of import-linter, run by this interpreter wherever it is installed.
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from importlinter.cli import lint_imports_command as run; run()",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def error_classes() -> Iterator[type[errors.FarmError]]:
    for _, found in inspect.getmembers(errors, inspect.isclass):
        if issubclass(found, errors.FarmError):
            yield found


@pytest.mark.parametrize("kind", list(error_classes()), ids=lambda kind: kind.__name__)
def test_every_error_has_an_exit_code_and_says_if_trying_again_can_help(
    kind: type[errors.FarmError],
) -> None:
    assert kind.exit_code in (1, 2, 3, 130)
    assert kind.retryable in (True, False)
    assert kind.__doc__
    # Only what lies between us and a board can pass by itself.
    assert not kind.retryable or issubclass(kind, errors.BoardError)
    if issubclass(kind, errors.BoardError):
        assert kind.exit_code == 1
        assert str(kind("step", "seen", board="b", remedy="do")) == "b: step: seen. do"


@pytest.mark.parametrize("never", ["AuthError", "HostKeyError", "LeaseHeldError"])
def test_what_gets_us_banned_is_never_tried_again(never: str) -> None:
    assert getattr(errors, never).retryable is False


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["run", "--help"]])
def test_help_loads_no_heavy_library(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from farm.cli.main import main\n"
        f"sys.argv = ['farm', *{arguments!r}]\n"
        "try:\n"
        f"    {'main()' if arguments else 'pass'}\n"
        "except SystemExit:\n"
        "    pass\n"
        f"print('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "LOADED"


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path.read_text("utf-8").strip()
        and not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert not silent


def test_no_file_is_too_long() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert len(lengths) > 100  # the package was found
    assert not {path: n for path, n in lengths.items() if n > LONGEST_FILE}


def test_no_file_is_named_after_nothing() -> None:
    assert not [path for path in PACKAGE.rglob("*") if path.stem.lower() in VAGUE]


def test_boardside_is_imported_by_nobody() -> None:
    for path in modules():
        if "boardside" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names.append(node.module)
            assert not [name for name in names if name.startswith("farm.boardside")], path


def test_tracked_texts_name_no_registry_and_no_machine_of_a_developer() -> None:
    words = [*REGISTRIES, "/" + "Users/", "/." + "pyenv"]
    if len(ROOT.parts) > 2:
        words.append(f"{ROOT}/")
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked_files()
        if path.suffix in TEXT
        and (match := pattern.search(path.read_text("utf-8", errors="replace")))
    ]
    assert not found


def test_no_link_leads_out_of_the_repository() -> None:
    assert not [
        path
        for path in tracked_files()
        if path.is_symlink() and not path.resolve().is_relative_to(ROOT)
    ]

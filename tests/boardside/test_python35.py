"""What runs on a board must run on Python 3.5: Ubuntu 16.04, which is L4T R28."""

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERMIN = (Path(sys.executable).with_name("vermin"), "-q", "-t=3.5-", "--violations", "--no-tips")


def violations(files: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*VERMIN, *files], capture_output=True, text=True, check=False)


def test_board_side_and_payloads_need_no_more_than_python_35() -> None:
    files = sorted([*ROOT.glob("farm/boardside/**/*.py"), *ROOT.glob("payloads/*/*.py")])
    assert len(files) > 10
    found = violations(files)
    assert found.returncode == 0, found.stdout


def test_vermin_would_find_it(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text("print(f'{1}')\n")
    assert violations([tmp_path / "new.py"]).returncode == 1


def test_only_the_standard_library_and_itself_are_imported() -> None:
    folder = ROOT / "farm/boardside"
    own = {path.stem for path in folder.glob("*.py")}
    foreign = {
        (path.name, name)
        for path in folder.glob("**/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name.split(".")[0] for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module).split(".")[0]]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name not in own and name not in sys.stdlib_module_names
    }
    assert foreign == set()

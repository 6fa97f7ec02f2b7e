"""What came along is found in a wheel and in a checkout."""

from pathlib import Path

import pytest

from farm.config import builtin
from farm.config.builtin import builtin_file, builtin_folder
from farm.errors import ConfigError


def test_a_checkout_has_them_at_its_top() -> None:
    top = Path(__file__).resolve().parents[2]
    assert builtin_folder("sweeps") == top / "sweeps"
    assert builtin_file("inventory.yaml") == top / "inventory.yaml"


def test_a_wheel_has_them_inside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "farm"
    (package / "builtin" / "sweeps").mkdir(parents=True)
    (tmp_path / "sweeps").mkdir()
    monkeypatch.setattr(builtin, "_PACKAGE", package)
    assert builtin_folder("sweeps") == package / "builtin" / "sweeps"
    with pytest.raises(ConfigError, match="lacks its folder payloads"):
        builtin_folder("payloads")
    with pytest.raises(ConfigError, match=r"lacks its file inventory\.yaml"):
        builtin_file("inventory.yaml")

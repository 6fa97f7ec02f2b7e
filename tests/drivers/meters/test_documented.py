"""Every example of docs/meters.md and of the drivers' own texts is one that farm takes."""

import re
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

from farm.config.document import Document
from farm.config.inventory import load_inventory_document
from farm.config.profiles import Profiles
from farm.drivers import registry
from farm.errors import ConfigError

ROOT = Path(__file__).parents[3]


def page_examples() -> dict[str, str]:
    text = (ROOT / "docs/meters.md").read_text()
    blocks = re.findall(r"^## (\S+).*?\n```yaml\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    found = {}
    for title, block in blocks:
        is_whole = block.startswith("meters:")
        found[title] = block if is_whole else "meters:\n" + textwrap.indent(block, "  ")
    return found


def driver_examples() -> dict[str, str]:
    found = {}
    for kind, target in registry.METERS.items():
        text = import_module(target.partition(":")[0]).__doc__ or ""
        match = re.search(r"In the inventory::\n\n(.*?)\n\n\S", text, re.DOTALL)
        assert match, f"{kind} shows no entry"
        found[f"driver {kind}"] = textwrap.dedent(match[1])
    return found


EXAMPLES = page_examples() | driver_examples()


def checked(folder: Path, text: str) -> set[str]:
    """Load it as an inventory and its meters' options as their drivers'; the kinds seen."""
    file = folder / "inventory.yaml"
    file.write_text(f"boards: {{}}\n{text}")
    inventory, document = load_inventory_document(file, Profiles(ROOT / "device_profiles", ()))
    for meter in inventory.meters:
        options_of(document, meter.name, meter.kind)
    return {meter.kind for meter in inventory.meters}


def options_of(document: Document, name: str, kind: str) -> None:
    document.validate(("meters", name, "options"), registry.meter_class(kind).Options)
    if kind in registry.OUTLETS:
        document.validate(("meters", name, "options"), registry.outlet_class(kind).Options)


@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_is_taken(title: str, tmp_path: Path) -> None:
    assert checked(tmp_path, EXAMPLES[title])


def test_the_page_shows_every_kind(tmp_path: Path) -> None:
    kinds: set[str] = set()
    for text in page_examples().values():
        kinds |= checked(tmp_path, text)
    assert kinds == set(registry.METERS)


@pytest.mark.parametrize(
    ("options", "place", "says"),
    [
        ("{preset: apc, outlet: 0}", "5:36", "should be at least 1, not 0"),
        ("{preset: apc, oid: 1.3.4}", "5:14", 'either "preset" or "oid"'),
        ("{preset: apx}", "5:23", "apc"),
        ("{preset: apc, outlets: 1}", "5:28", "outlets"),
    ],
)
def test_a_wrong_option_is_told_with_its_place(
    options: str, place: str, says: str, tmp_path: Path
) -> None:
    text = f"meters:\n  pdu:\n    kind: snmp\n    options: {options}\n"
    with pytest.raises(ConfigError) as caught:
        checked(tmp_path, text)
    assert f"inventory.yaml:{place}: " in str(caught.value)
    assert says in str(caught.value)

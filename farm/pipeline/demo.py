"""The demo's workspace: the shipped inventory on loopback addresses of its own."""

import secrets
from pathlib import Path

from farm.config.builtin import builtin_file, builtin_folder

DEMO_SWEEP = "demo"
LAB_NETWORKS = ("127.0.2.", "127.0.3.")


def make_demo_workspace(folder: Path) -> None:
    """Write inventory.yaml and sweeps/demo.yaml into `folder` unless they are there.

    Each demo gets loopback networks of its own, so that two of them on one host do not meet.
    """
    (folder / "sweeps").mkdir(parents=True, exist_ok=True)
    inventory = folder / "inventory.yaml"
    if not inventory.exists():
        text = builtin_file("inventory.yaml").read_text("utf-8")
        base = 10 + secrets.randbelow(240)
        for offset, network in enumerate(LAB_NETWORKS):
            text = text.replace(network, f"127.{base}.{2 + offset + 2 * secrets.randbelow(100)}.")
        inventory.write_text(text, "utf-8")
    sweep = folder / "sweeps" / f"{DEMO_SWEEP}.yaml"
    if not sweep.exists():
        sweep.write_text((builtin_folder("sweeps") / sweep.name).read_text("utf-8"), "utf-8")

"""Makes a workspace for real boards."""

import json
from pathlib import Path

from farm.config.builtin import builtin_folder
from farm.config.schema import json_schema
from farm.errors import ConfigError

FIRST_SWEEP = "first.yaml"
INVENTORY = """\
# yaml-language-server: $schema=.farm/schema/inventory.json
# The boards and meters of this lab. `farm boards list` shows what farm understands of it.
defaults:
  user: nvidia
  identity_file: ~/.ssh/id_ed25519
  known_hosts: ~/.ssh/known_hosts

boards:
  # One line a board; `profile` is one of `farm payloads`' neighbours in device_profiles/.
  tx2-01: {profile: jetson-tx2, host: 192.0.2.11}
  # tx2-[02..40]: {profile: jetson-tx2, host: "192.0.2.{n:d+10}", meter: "plug-{n}"}

# meters:
#   plug-[02..40]: {kind: shelly, host: "192.0.2.{n:d+110}"}
"""


def make_workspace(folder: Path) -> list[Path]:
    """Write a new workspace; returns what was written. Raises ConfigError if there is one."""
    inventory = folder / "inventory.yaml"
    if inventory.exists():
        raise ConfigError("there is a workspace here already", file=str(inventory))
    written = []
    sweep = folder / "sweeps" / FIRST_SWEEP
    texts = {
        inventory: INVENTORY,
        sweep: (builtin_folder("sweeps") / FIRST_SWEEP).read_text("utf-8"),
        folder / ".gitignore": "results/\n.farm/\n",
    }
    for kind in ("inventory", "sweep", "payload", "profile"):
        text = json.dumps(json_schema(kind), indent=1)
        texts[folder / ".farm" / "schema" / f"{kind}.json"] = text
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        written.append(path)
    return written

"""Reads a workspace: what boards, meters, profiles and payloads there are."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from farm.config.document import Document
from farm.config.inventory import load_inventory_document
from farm.config.payloads import load_payloads
from farm.config.profiles import Profiles
from farm.config.workspace import Workspace, find_workspace
from farm.model.board import Inventory
from farm.model.payload import Payload
from farm.model.profile import BoardProfile


@dataclass(frozen=True, slots=True)
class Lab:
    """A workspace, read. `document` keeps the inventory's positions for later messages."""

    workspace: Workspace
    inventory: Inventory
    document: Document
    profiles: Mapping[str, BoardProfile]
    payloads: Mapping[str, Payload]


def open_lab(folder: Path | None = None) -> Lab:
    """Read the workspace in `folder`, else FARM_WORKSPACE, else the nearest one above.

    Raises ConfigError with file, line and column.
    """
    workspace = find_workspace(folder, os.environ)
    shipped, *own = workspace.profile_folders
    profiles = Profiles(shipped, own)
    inventory, document = load_inventory_document(workspace.inventory_path, profiles)
    payloads = load_payloads(workspace.payload_folders)
    return Lab(workspace, inventory, document, profiles, payloads)

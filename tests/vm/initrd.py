"""The first root of the board: busybox, the modules for its disk and network, one script."""

import gzip
import lzma
import re
from collections.abc import Iterator
from pathlib import Path

WANTED = ("virtio_mmio", "virtio_blk", "virtio_net", "virtio_rng", "crc32c_generic", "ext4")
INIT = """\
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sys /sys; $b mount -t devtmpfs dev /dev
while read -r module; do $b insmod "/modules/$module"; done < /modules/order
n=0; while [ ! -b /dev/vda ] && [ $n -lt 500 ]; do $b usleep 20000; n=$((n+1)); done
$b mount -t ext4 /dev/vda /mnt || { echo "no disk"; $b poweroff -f; }
for part in dev proc sys; do $b mount --move /$part /mnt/$part; done
exec $b switch_root /mnt /sbin/init
"""
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


def make_initrd(busybox: Path, modules: Path) -> bytes:
    """A compressed archive. `modules`: the kernel's folder of them."""
    archive = Cpio()
    for folder in ("bin", "proc", "sys", "dev", "mnt", "modules"):
        archive.add_folder(folder)
    archive.add_file("bin/busybox", busybox.read_bytes())
    archive.add_file("init", INIT.encode())
    ordered = dict(_in_order(modules))
    for name, content in ordered.items():
        archive.add_file(f"modules/{name}", content)
    archive.add_file("modules/order", "".join(f"{name}\n" for name in ordered).encode())
    return gzip.compress(archive.finished(), compresslevel=1)


def _in_order(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Modules with all that they depend on before them; what is no module is in the kernel."""
    files = {file.name.split(".")[0].replace("-", "_"): file for file in folder.rglob("*.ko*")}
    done: set[str] = set()

    def load(name: str) -> Iterator[tuple[str, bytes]]:
        if name in done or name not in files:
            return
        done.add(name)
        content = files[name].read_bytes()
        if files[name].suffix == ".xz":
            content = lzma.decompress(content)
        found = _DEPENDS.search(content)
        for need in found[1].decode().split(",") if found else ():
            yield from load(need.replace("-", "_"))
        yield f"{name}.ko", content

    for name in WANTED:
        yield from load(name)


class Cpio:
    """An archive in the kernel's own form (``newc``), all of it root's."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._count = 0

    def add_folder(self, name: str) -> None:
        self._add(name, 0o040755, b"")

    def add_file(self, name: str, content: bytes) -> None:
        self._add(name, 0o100755, content)

    def finished(self) -> bytes:
        self._add("TRAILER!!!", 0, b"")
        return b"".join(self._parts)

    def _add(self, name: str, mode: int, content: bytes) -> None:
        self._count += 1
        path = name.encode() + b"\0"
        fields = (self._count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
        self._parts += [head, b"\0" * (-len(head) % 4), content, b"\0" * (-len(content) % 4)]

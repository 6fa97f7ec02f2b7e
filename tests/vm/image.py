"""The virtual board's kernel, first root, disk and device tree, of Debian's arm64 packages."""

import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.vm.initrd import make_initrd
from tests.vm.packages import Arm64Packages, command

USER, USER_ID = "jet", 1000
MACHINE = ("-M", "virt", "-cpu", "cortex-a57", "-smp", "2", "-m", "256")
TOOLS = ("qemu-system-aarch64", "fdtput", "mke2fs", "busybox", "dpkg-deb", "apt-get", "ssh")
"""What this machine needs for it."""
PACKAGES = ("busybox-static", "dropbear-bin", "openssh-sftp-server", "python3", "sudo")
DISK_SIZE = 256 << 20
MODEL = "NVIDIA Jetson AGX Orin Developer Kit"
COMPATIBLE = ("nvidia,p3737-0000+p3701-0004", "nvidia,p3701-0004", "nvidia,tegra234")
HOST_KEY, OTHER_HOST_KEY = "/etc/dropbear/own_key", "/etc/dropbear/other_key"
SERVED_KEY = "/etc/dropbear/host_key"
"""What is served: a copy of the board's own, or of the other; then it is a stranger."""

_FILES = Path(__file__).parent / "board"
_PLACES = {
    "rc": "etc/rc",
    "rc.down": "etc/rc.down",
    "inittab": "etc/inittab",
    "nvpmodel.conf": "etc/nvpmodel.conf",
    "nvpmodel": "usr/sbin/nvpmodel",
    "jetson_clocks": "usr/bin/jetson_clocks",
    "systemctl": "usr/bin/systemctl",
}
_TEXTS = {
    "etc/passwd": "root:x:0:0::/root:/bin/sh\n"
    f"{USER}:x:{USER_ID}:{USER_ID}::/home/{USER}:/bin/sh\n",
    "etc/shadow": f"root:*:19000::::::\n{USER}:*:19000::::::\n",
    "etc/group": f"root:x:0:\n{USER}:x:{USER_ID}:\n",
    "etc/shells": "/bin/sh\n",
    "etc/hosts": "127.0.0.1 localhost vm\n",
    "etc/pam.d/sudo": "auth required pam_deny.so\naccount required pam_permit.so\n"
    "session required pam_permit.so\n",
    "etc/os-release": 'PRETTY_NAME="Debian on the tests\' virtual board"\n',
    "etc/nv_tegra_release": "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, "
    "EABI: aarch64, DATE: Tue Aug  1 19:57:35 UTC 2023\n",
}


@dataclass(frozen=True, slots=True)
class Image:
    """Where the parts lie. `host_key` is the board's public key as known_hosts has it."""

    kernel: Path
    initrd: Path
    disk: Path
    tree: Path
    identity: Path
    host_key: str


def build_image(folder: Path) -> Image:
    """Get the packages and make the parts in `folder`, which is not there yet.

    Raises PackagesError. Needs root: the disk's files have owners.
    """
    root, kernel = folder / "root", folder / "kernel"
    for path in (root, kernel):
        path.mkdir(parents=True)
    packages = Arm64Packages(folder / "apt")
    packages.update()
    packages.unpack_kernel(kernel)
    packages.unpack(PACKAGES, root)
    identity = folder / "identity"
    command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vm", "-f", str(identity)])
    host_key = _write_system(root, identity.with_suffix(".pub"))
    image = Image(
        next((kernel / "boot").glob("vmlinuz-*")),
        folder / "initrd.gz",
        folder / "disk.img",
        folder / "board.dtb",
        identity,
        host_key,
    )
    image.initrd.write_bytes(make_initrd(_busybox(root), kernel / "lib" / "modules"))
    _make_disk(root, image.disk)
    _make_tree(image.tree)
    for part in (root, folder / "apt"):
        shutil.rmtree(part)
    return image


def _busybox(root: Path) -> Path:
    return next(path for path in (root / "bin/busybox", root / "usr/bin/busybox") if path.exists())


def _write_system(root: Path, public_key: Path) -> str:
    """All that no package brings; the public host key."""
    for waste in ("doc", "man", "locale", "info", "lintian"):
        shutil.rmtree(root / "usr/share" / waste, ignore_errors=True)
    for name in ("proc", "sys", "dev", "tmp", "run", "sbin", "var/log", "var/lib/nvpmodel"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in _TEXTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, place in _PLACES.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_FILES / name, root / place)
        (root / place).chmod(0o644 if name.endswith(("tab", "conf")) else 0o755)
    _link_busybox(root)
    for home, owner in (("root", 0), (f"home/{USER}", USER_ID)):
        keys = root / home / ".ssh" / "authorized_keys"
        keys.parent.mkdir(parents=True)
        shutil.copyfile(public_key, keys)
        for path, mode in ((root / home, 0o755), (keys.parent, 0o700), (keys, 0o600)):
            path.chmod(mode)
            os.chown(path, owner, owner)
    _write_host_key(root / OTHER_HOST_KEY.lstrip("/"))
    public = _write_host_key(root / HOST_KEY.lstrip("/"))
    shutil.copyfile(root / HOST_KEY.lstrip("/"), root / SERVED_KEY.lstrip("/"))
    return public


def _link_busybox(root: Path) -> None:
    """Busybox's commands, where no package has brought one of that name."""
    target = f"/{_busybox(root).relative_to(root)}"
    folders = [root / part for part in ("bin", "sbin", "usr/bin", "usr/sbin")]
    for name in command(["busybox", "--list"]).split():
        if not any((folder / name).is_symlink() or (folder / name).exists() for folder in folders):
            (root / "usr/bin" / name).symlink_to(target)
    for name in ("bin/sh", "sbin/init"):
        if not (root / name).exists():
            (root / name).symlink_to(target)


def _write_host_key(path: Path) -> str:
    """A new key in dropbear's own form; the public half as known_hosts has it."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key()
    kind, both = b"ssh-ed25519", key.private_bytes_raw() + public.public_bytes_raw()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack(">I", len(kind)) + kind + struct.pack(">I", len(both)) + both)
    path.chmod(0o600)
    return public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def _make_disk(root: Path, disk: Path) -> None:
    with disk.open("wb") as file:
        file.truncate(DISK_SIZE)
    command(["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(root), str(disk)])


def _make_tree(tree: Path) -> None:
    """qemu's own tree for this machine, with a Jetson's name."""
    machine = list(MACHINE)
    machine[1] += f",dumpdtb={tree}"
    command(["qemu-system-aarch64", *machine, "-nodefaults", "-display", "none"])
    command(["fdtput", "-t", "s", str(tree), "/", "model", MODEL])
    command(["fdtput", "-t", "s", str(tree), "/", "compatible", *COMPATIBLE])

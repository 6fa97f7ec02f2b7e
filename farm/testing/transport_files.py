"""The transport suite's part on files: put and get."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import SkipTest

from farm.errors import TransferError
from farm.testing.transport_rig import (
    BOUND_S,
    RigTests,
    demand,
    demand_equal,
    demand_error,
    text_of,
)

LIST = 'cd "$1" && find . -mindepth 1 | LC_ALL=C sort'


class FileTests(RigTests):
    """put and get."""

    async def test_put_and_get_keep_every_byte_and_name(self) -> None:
        """Empty, binary, nested, hidden, and named in any language."""
        files: dict[str, Path | bytes] = {
            "empty": b"",
            "all bytes.bin": bytes(range(256)) * 100,
            "deep/er/and deeper/é漢.txt": "ü".encode(),
            "deep/.hidden": b"h",
            "-dash": b"d",
            "it's $(id) \\ !;*": b"n",
        }
        with _local() as local:
            async with self.connected() as (rig, transport):
                await transport.put(files, f"{rig.scratch}/in", timeout_s=BOUND_S)
                for name, content in files.items():
                    target = local / "out" / name
                    await transport.get(f"{rig.scratch}/in/{name}", target, timeout_s=BOUND_S)
                    demand_equal(target.read_bytes(), content, name)
                listed = await text_of(transport, LIST, f"{rig.scratch}/in")
                folders = 3
                demand_equal(len(listed.splitlines()), len(files) + folders, "files and folders")
                left = [path.name for path in local.rglob(".*") if path.name != ".hidden"]
                demand_equal(left, [], "temporary files on the host")

    async def test_put_many_small_files(self) -> None:
        """100 in 10 folders."""
        files: dict[str, Path | bytes] = {
            f"{n % 10}/{n}": str(n).encode() * 500 for n in range(100)
        }
        async with self.connected() as (rig, transport):
            await transport.put(files, rig.scratch, timeout_s=BOUND_S)
            sizes = await text_of(transport, 'cd "$1" && cat */* | wc -c', rig.scratch)
            expected = sum(
                len(content) for content in files.values() if isinstance(content, bytes)
            )
            demand_equal(int(sizes), expected, "bytes on the board")

    async def test_put_and_get_a_large_file(self) -> None:
        """20 MB from a local file and back."""
        with _local() as local:
            source = local / "source"
            source.write_bytes(bytes(range(256)) * 80_000)
            async with self.connected() as (rig, transport):
                await transport.put({"large": source}, rig.scratch, timeout_s=BOUND_S)
                await transport.get(f"{rig.scratch}/large", local / "back", timeout_s=BOUND_S)
            demand((local / "back").read_bytes() == source.read_bytes(), "the same bytes back")

    async def test_executable_bit_is_kept(self) -> None:
        """A script can be run; other files cannot."""
        with _local() as local:
            for name, mode in (("tool", 0o755), ("data", 0o644)):
                (local / name).write_text("#!/bin/sh\necho ran\n")
                (local / name).chmod(mode)
            async with self.connected() as (rig, transport):
                await transport.put(
                    {name: local / name for name in ("tool", "data")},
                    rig.scratch,
                    timeout_s=BOUND_S,
                )
                demand_equal(await text_of(transport, '"$1/tool"', rig.scratch), "ran\n", "tool")
                shown = await text_of(transport, '[ -x "$1/data" ] || echo no', rig.scratch)
                demand_equal(shown, "no\n", "is data executable?")

    async def test_put_below_home_and_again(self) -> None:
        """``~/`` is the login's home; a second put replaces the file."""
        name = "farm-transport-test"
        async with self.connected() as (_, transport):
            try:
                for content in (b"first", b"2"):
                    await transport.put({"a/file": content}, f"~/{name}", timeout_s=BOUND_S)
                got = await text_of(transport, f'cat "$HOME/{name}/a/file"')
                demand_equal(got, "2", "the file")
                listed = await text_of(transport, LIST.replace('"$1"', f'"$HOME/{name}"'))
                demand_equal(listed.split(), ["./a", "./a/file"], "what lies there")
            finally:
                await text_of(transport, f'rm -rf "$HOME/{name}"')

    async def test_put_refuses_names_that_leave_the_folder(self) -> None:
        """Before anything is sent."""
        bad = ("", "/etc/x", "../x", "a/../../x", "a//b", "./a", "a\nb", "a\0b", "a/")
        async with self.connected() as (rig, transport):
            for name in bad:
                await demand_error(
                    TransferError, transport.put({name: b""}, rig.scratch, timeout_s=BOUND_S)
                )
            demand_equal(await text_of(transport, LIST, rig.scratch), "", "what lies there")

    async def test_put_of_a_missing_local_file(self) -> None:
        """TransferError that names it."""
        async with self.connected() as (rig, transport):
            error = await demand_error(
                TransferError,
                transport.put({"a": Path("/no/such")}, rig.scratch, timeout_s=BOUND_S),
            )
            demand("/no/such" in str(error), f"the path in {error}")

    async def test_put_onto_a_full_disk_leaves_nothing_half_done(self) -> None:
        """The board's words are told, no file is half done, nothing temporary is left."""
        async with self.connected() as (rig, transport):
            folder = rig.full_folder
            if folder is None:
                raise SkipTest("this rig has no small file system")
            await transport.put({"kept": b"old"}, folder, timeout_s=BOUND_S)
            files: dict[str, Path | bytes] = {"kept": b"new", "large": bytes(8_000_000)}
            error = await demand_error(
                TransferError, transport.put(files, folder, timeout_s=BOUND_S)
            )
            demand("space" in str(error).lower(), f"that there is no space left: {error}")
            listed = await text_of(transport, LIST, folder)
            demand_equal(listed.split(), ["./kept"], "what lies there")
            kept = await text_of(transport, 'cat "$1/kept"', folder)
            demand(kept in {"old", "new"}, f"the old or the new file, whole, not {kept!r}")

    async def test_put_onto_a_read_only_disk(self) -> None:
        """The board's words are told."""
        async with self.connected() as (rig, transport):
            folder = rig.read_only_folder
            if folder is None:
                raise SkipTest("this rig has no read-only file system")
            error = await demand_error(
                TransferError, transport.put({"a": b""}, folder, timeout_s=BOUND_S)
            )
            demand("read-only" in str(error).lower(), f"that it is read-only: {error}")

    async def test_get_into_a_place_that_cannot_be_written(self) -> None:
        """TransferError that names it; the link goes on."""
        with _local() as local:
            (local / "file").write_text("")
            async with self.connected() as (rig, transport):
                await transport.put({"a": b"1"}, rig.scratch, timeout_s=BOUND_S)
                target = local / "file" / "below"
                error = await demand_error(
                    TransferError,
                    transport.get(f"{rig.scratch}/a", target, timeout_s=BOUND_S),
                )
                demand(str(target) in str(error), f"the path in {error}")
                demand_equal(await text_of(transport, "echo on"), "on\n", "stdout")

    async def test_get_what_is_not_there(self) -> None:
        """TransferError; the local target is not made."""
        with _local() as local:
            async with self.connected() as (rig, transport):
                for path in (f"{rig.scratch}/absent", rig.scratch):
                    await demand_error(
                        TransferError, transport.get(path, local / "x", timeout_s=BOUND_S)
                    )
            demand_equal(list(local.iterdir()), [], "what lies on the host")


@contextmanager
def _local() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="farm-transport-") as name:
        yield Path(name)

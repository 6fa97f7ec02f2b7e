"""A Transport whose board is this machine: commands are local processes. For tests.

    async with LocalTransport(home=tmp_path) as transport:
        agent = await open_agent(transport, board)

`cut` does what a dead link does: streams end without a status, and nothing can be asked until
`connect` is called again. Processes that left their session survive it, as on a board.
"""

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from farm.errors import CommandTimeoutError, LinkLostError, TransferError
from farm.interfaces.transport import CommandResult, Stream, Transport

NOT_FOUND = 127
_CLOSE_S = 2.0


class _Pipes(asyncio.SubprocessProtocol):
    """Passes output on as it comes; pausing is how asyncio tells that stdin's pipe is full."""

    def __init__(self, stream: "LocalStream") -> None:
        self._stream = stream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.SubprocessTransport):
            self._stream.process = transport

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if isinstance(data, bytes):
            self._stream.take(fd, data)

    def pause_writing(self) -> None:
        self._stream.writable.clear()

    def resume_writing(self) -> None:
        self._stream.writable.set()

    def connection_lost(self, _error: Exception | None) -> None:
        self._stream.end()


class LocalStream(Stream):
    """A running local process with its stdin open."""

    def __init__(
        self,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None,
        on_lost: Callable[[], None] | None,
    ) -> None:
        self._sinks = {1: on_stdout, 2: on_stderr}
        self._on_lost = on_lost
        self.process: asyncio.SubprocessTransport | None = None
        self.writable = asyncio.Event()
        self.writable.set()
        self._ended = asyncio.Event()
        self._is_gone = asyncio.Event()  # the process, too
        self._is_cut = False
        self._status: int | None = None

    @property
    def pid(self) -> int:
        """The process's id, 0 if it could not be started."""
        return 0 if self.process is None else self.process.get_pid()

    async def open(self, argv: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        """Start the process; one that is not there ends with status 127, as in a shell."""
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: _Pipes(self), *argv, env=environment, cwd=cwd, start_new_session=True
            )
        except OSError as error:
            self._status = NOT_FOUND
            self.take(2, f"{argv[0]}: {error.strerror}\n".encode())
            self.end()

    def take(self, fd: int, data: bytes) -> None:
        """Output came."""
        sink = self._sinks.get(fd)
        if sink is not None and not self._is_cut:
            sink(data)

    def end(self) -> None:
        """The process ended and all its output was delivered."""
        if self.process is not None:
            self._status = self.process.get_returncode()
        self._is_gone.set()
        self._finish()

    def _finish(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self.writable.set()
            if self._on_lost is not None:
                self._on_lost()

    def cut(self) -> None:
        """The link dies: pipes close, the process only sees the end of its stdin."""
        self._is_cut = True
        if self.process is not None:
            for fd in (0, 1, 2):
                pipe = self.process.get_pipe_transport(fd)
                if pipe is not None:
                    pipe.close()
        self._finish()

    def write(self, data: bytes) -> None:
        """Queue bytes for the command's stdin. Raises LinkLostError on a dead link."""
        pipe = None if self.process is None else self.process.get_pipe_transport(0)
        if self._ended.is_set() or not isinstance(pipe, asyncio.WriteTransport):
            raise LinkLostError("write", "the stream has ended")
        pipe.write(data)

    async def drain(self) -> None:
        """Wait until the queue is short. Raises LinkLostError."""
        await self.writable.wait()
        if self._ended.is_set():
            raise LinkLostError("write", "the stream has ended")

    def end_input(self) -> None:
        """Close the command's stdin."""
        pipe = None if self.process is None else self.process.get_pipe_transport(0)
        if pipe is not None:
            pipe.close()

    async def wait(self, timeout_s: float) -> int:
        """Wait for the end; the exit status. Raises LinkLostError, CommandTimeoutError."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._ended.wait()
        except TimeoutError as error:
            raise CommandTimeoutError("wait", f"no end within {timeout_s:g} s") from error
        if self._is_cut or self._status is None:
            raise LinkLostError("wait", "the link was cut")
        return self._status

    async def close(self) -> None:
        """End the stream at once; never raises, never waits for long."""
        self.end_input()
        if self.process is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._is_gone.wait()
        except TimeoutError:
            self.process.kill()
            await self._is_gone.wait()
        self.process.close()


class LocalTransport(Transport):
    """Runs commands here. `home` is the board's home folder, `environment` is added to ours."""

    def __init__(self, home: Path, environment: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.streams: list[LocalStream] = []
        self.argvs: list[tuple[str, ...]] = []
        self._environment = {**os.environ, "HOME": str(home), **(environment or {})}
        self._is_connected = False

    @property
    def is_connected(self) -> bool:
        """False before `connect`, and once the link was cut."""
        return self._is_connected

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> Self:
        """Nothing to open."""
        self._is_connected = True
        return self

    def cut(self) -> None:
        """The link dies under everything that runs over it."""
        self._is_connected = False
        for stream in self.streams:
            stream.cut()

    async def run(
        self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b""
    ) -> CommandResult:
        """Run a command to its end."""
        begin, out, err = time.monotonic(), bytearray(), bytearray()
        stream = await self._open(argv, out.extend, err.extend, None)
        try:
            if stdin and stream.process is not None:
                stream.write(stdin)
            stream.end_input()
            status = await stream.wait(timeout_s)
        except CommandTimeoutError:
            if stream.process is not None:
                stream.process.kill()
            raise
        finally:
            await stream.close()
        spent_s = time.monotonic() - begin
        return CommandResult(tuple(argv), status, bytes(out), bytes(err), spent_s)

    async def stream(
        self,
        argv: Sequence[str],
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> Stream:
        """Start a command and deliver its output in chunks."""
        return await self._open(argv, on_stdout, on_stderr, on_lost)

    async def _open(
        self,
        argv: Sequence[str],
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None] | None,
        on_lost: Callable[[], None] | None,
    ) -> LocalStream:
        if not self._is_connected:
            raise LinkLostError("open a stream", "not connected")
        stream = LocalStream(on_stdout, on_stderr, on_lost)
        self.streams.append(stream)
        self.argvs.append(tuple(argv))
        await stream.open(argv, self._environment, self.home)
        return stream

    async def put(
        self, files: Mapping[str, Path | bytes], folder: str, *, timeout_s: float
    ) -> None:
        """Write files below `folder`. Raises TransferError."""
        del timeout_s  # local copies: nothing to wait for
        self._check_link("put")
        try:
            await asyncio.to_thread(self._put, files, self._local(folder))
        except OSError as error:
            raise TransferError("put", str(error)) from error

    async def get(self, path: str, target: Path, *, timeout_s: float) -> None:
        """Copy one file, hash checked. Raises TransferError."""
        del timeout_s
        self._check_link("get")
        try:
            await asyncio.to_thread(self._get, self._local(path), target)
        except OSError as error:
            raise TransferError("get", str(error)) from error

    async def close(self) -> None:
        """End all streams; bounded in time, never raises."""
        self._is_connected = False
        await asyncio.gather(*(stream.close() for stream in self.streams))
        self.streams.clear()

    def _check_link(self, step: str) -> None:
        if not self._is_connected:
            raise LinkLostError(step, "not connected")

    def _local(self, path: str) -> Path:
        if path.startswith("~/"):
            return self.home / path[2:]
        return self.home / path

    @staticmethod
    def _put(files: Mapping[str, Path | bytes], folder: Path) -> None:
        for name, content in files.items():
            target = folder / name
            if not target.resolve().is_relative_to(folder.resolve()):
                raise OSError(f"outside the folder: {name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(target.name + ".part")
            if isinstance(content, bytes):
                part.write_bytes(content)
            else:
                shutil.copy(content, part)
            part.replace(target)

    @staticmethod
    def _get(source: Path, target: Path) -> None:
        part = target.with_name(target.name + ".part")
        shutil.copyfile(source, part)
        ours, theirs = (hashlib.sha256(path.read_bytes()).digest() for path in (part, source))
        if ours != theirs:
            raise OSError(f"{source} changed while it was copied")
        part.replace(target)

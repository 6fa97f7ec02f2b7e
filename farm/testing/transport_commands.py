"""The transport suite's part on commands: run and stream."""

import asyncio
from pathlib import PurePosixPath

from farm.errors import CommandTimeoutError
from farm.interfaces.transport import CommandResult, Transport
from farm.testing.transport_rig import (
    BOUND_S,
    RigTests,
    demand,
    demand_equal,
    demand_error,
    eventually,
    soon,
    text_of,
)

NASTY = (
    *("", " ", "a b", "'", '"', "it's", "\\", "\\\\", "\\'", "!", "!!", "a!b", "$HOME", "${x}"),
    *("`id`", "$(id)", "*", "?", "[a-z]", "~", "{a,b}", ";", "a&&b", "|", "<", ">", ">&2", "#"),
    *("^a^b", "%1", "%s", "-n", "--", "=", "x=1", "\n", "a\nb\n", "\n\n", "\t", "\r", "\x7f"),
    *(
        "é",
        "漢字",
        "\U0001f680",
        "'\"'\"'",
        "a'!\\'b",
        "(x)",
        "$'x'",
        "\\n",
        "\\041",
        "-é",
        "x" * 5000,
    ),
)
"""Arguments that some login shell would take apart or change."""


class CommandTests(RigTests):
    """run and stream."""

    async def test_exit_status_is_the_commands_own(self) -> None:
        """Any status is a result, also those of a shell's own."""
        async with self.connected() as (_, transport):
            for status in (0, 1, 2, 77, 126, 127, 128, 200, 255):
                result = await _sh(transport, f"exit {status}")
                demand_equal(result.exit_status, status, "exit status")

    async def test_death_by_a_signal_is_a_negative_status(self) -> None:
        """Minus the signal's number."""
        async with self.connected() as (_, transport):
            for number in (9, 11, 15):
                result = await _sh(transport, f"kill -{number} $$")
                demand_equal(result.exit_status, -number, "exit status")

    async def test_command_that_is_not_there_is_a_result(self) -> None:
        """127, as every shell says, and words on stderr."""
        async with self.connected() as (_, transport):
            result = await transport.run(["farm-no-such-command"], timeout_s=BOUND_S)
            demand_equal(result.exit_status, 127, "exit status")
            demand("farm-no-such-command" in result.error_text, f"its name in {result.stderr!r}")

    async def test_words_of_a_shell_are_no_commands(self) -> None:
        """argv[0] is a program, never a shell's keyword or builtin."""
        async with self.connected() as (_, transport):
            result = await transport.run(["exit", "3"], timeout_s=BOUND_S)
            demand_equal(result.exit_status, 127, "exit status of a program named exit")

    async def test_stdout_and_stderr_are_apart_and_exact(self) -> None:
        """What start-up files print belongs to neither; stderr is no failure."""
        async with self.connected() as (_, transport):
            result = await _sh(transport, "echo to-out; echo to-err >&2")
            demand_equal(result.stdout, b"to-out\n", "stdout")
            demand_equal(result.stderr, b"to-err\n", "stderr")
            demand_equal(result.exit_status, 0, "exit status")
            demand(result.duration_s > 0, "a duration")

    async def test_binary_passes_both_ways_unchanged(self) -> None:
        """All bytes, without a line end, 3 MB of them, through cat."""
        data = bytes(range(256)) * 12_000 + b"\0end"
        async with self.connected() as (_, transport):
            result = await transport.run(["cat"], timeout_s=BOUND_S, stdin=data)
            demand(result.stdout == data, f"{len(data)} bytes back, got {len(result.stdout)}")

    async def test_large_output_is_complete(self) -> None:
        """20 MB."""
        async with self.connected() as (_, transport):
            result = await _sh(transport, "head -c 20000000 /dev/zero; echo end")
            demand_equal(len(result.stdout), 20_000_004, "bytes")
            demand_equal(result.stdout[-5:], b"\0end\n", "the end")

    async def test_stdin_is_closed_after_its_bytes(self) -> None:
        """No command waits for input, and input may be left unread."""
        async with self.connected() as (_, transport):
            demand_equal((await transport.run(["cat"], timeout_s=BOUND_S)).stdout, b"", "stdout")
            result = await transport.run(["true"], timeout_s=BOUND_S, stdin=bytes(5_000_000))
            demand_equal(result.exit_status, 0, "exit status of true, which reads nothing")

    async def test_every_argument_arrives_as_it_is(self) -> None:
        """Whatever the login shell is."""
        async with self.connected() as (_, transport):
            result = await transport.run(["printf", "[%s]", *NASTY], timeout_s=BOUND_S)
            expected = "".join(f"[{word}]" for word in NASTY)
            demand_equal(result.text, expected, "the arguments")

    async def test_late_command_is_ended_and_named(self) -> None:
        """CommandTimeoutError; what was started is gone, and the link goes on."""
        async with self.connected() as (rig, transport):
            note = str(PurePosixPath(rig.scratch) / "pid")
            late = transport.run(
                ["sh", "-c", 'echo $$ >"$1"; exec sleep 600', "sh", note], timeout_s=2.0
            )
            error = await demand_error(CommandTimeoutError, late)
            demand("sleep 600" in str(error) and "2 s" in str(error), f"what and when: {error}")

            async def is_gone() -> bool:
                alive = await _sh(transport, f'[ -s "{note}" ] && kill -0 "$(cat "{note}")"')
                return alive.exit_status != 0

            await eventually(is_gone, "the command is ended on the board")
            demand(transport.is_connected, "a living link after a time-out")

    async def test_many_commands_at_once(self) -> None:
        """Twelve, though OpenSSH allows ten sessions on a connection."""
        async with self.connected() as (_, transport):
            results = await soon(
                asyncio.gather(*(_sh(transport, f"sleep 0.2; echo {n}") for n in range(12)))
            )
            demand_equal(
                [result.text for result in results], [f"{n}\n" for n in range(12)], "the answers"
            )

    async def test_stream_is_a_dialogue(self) -> None:
        """Each line comes when it is printed; on_lost comes once, at the end."""
        got, ends = bytearray(), list[str]()
        async with self.connected() as (_, transport):
            stream = await transport.stream(
                ["sh", "-c", 'while read -r x; do echo "<$x>"; done; exit 5'],
                got.extend,
                on_lost=lambda: ends.append("end"),
            )
            for word in (b"one", b"two"):
                stream.write(word + b"\n")
                await soon(stream.drain())
                await _arrives(got, b"<" + word + b">\n")
            demand_equal(ends, [], "calls of on_lost while it runs")
            stream.end_input()
            demand_equal(await soon(stream.wait(BOUND_S)), 5, "exit status")
            demand_equal(bytes(got), b"<one>\n<two>\n", "the output")
            await soon(stream.close())
            demand_equal(ends, ["end"], "calls of on_lost")

    async def test_stream_keeps_stderr_apart(self) -> None:
        """Also there, start-up noise is left out."""
        out, err = bytearray(), bytearray()
        async with self.connected() as (_, transport):
            stream = await transport.stream(
                ["sh", "-c", "echo a; echo b >&2"], out.extend, err.extend
            )
            demand_equal(await soon(stream.wait(BOUND_S)), 0, "exit status")
            demand_equal((bytes(out), bytes(err)), (b"a\n", b"b\n"), "stdout and stderr")

    async def test_stream_delivers_many_lines_complete(self) -> None:
        """30 MB of lines; nothing lost, nothing added."""
        size, ends = [0, 0], list[str]()

        def count(chunk: bytes) -> None:
            size[0] += len(chunk)
            size[1] += chunk.count(b"\n")

        async with self.connected() as (_, transport):
            stream = await transport.stream(
                ["sh", "-c", "yes 123456789012345678 | head -n 1500000"],
                count,
                on_lost=lambda: ends.append("end"),
            )
            demand_equal(await soon(stream.wait(BOUND_S)), 0, "exit status")
            demand_equal(size, [28_500_000, 1_500_000], "bytes and lines")

    async def test_stream_wait_is_bounded_and_close_ends_the_command(self) -> None:
        """After CommandTimeoutError of wait it runs on; close kills it."""
        got = bytearray()
        async with self.connected() as (_, transport):
            stream = await transport.stream(["sh", "-c", "echo $$; exec sleep 600"], got.extend)
            await _arrives(got, b"\n")
            await demand_error(CommandTimeoutError, stream.wait(0.2))
            demand_equal((await _sh(transport, f"kill -0 {got.decode()}")).exit_status, 0, "alive")
            await soon(stream.close())

            async def is_gone() -> bool:
                alive = await _sh(transport, f"kill -0 {got.decode()}")
                return alive.exit_status != 0

            await eventually(is_gone, "the command is ended on the board")

    async def test_writing_waits_for_a_slow_reader(self) -> None:
        """Drain holds back until the command reads on."""
        got = bytearray()
        async with self.connected() as (rig, transport):
            script = 'until [ -e "$1" ]; do sleep 0.1; done; wc -c'
            go = str(PurePosixPath(rig.scratch) / "go")
            stream = await transport.stream(["sh", "-c", script, "sh", go], got.extend)
            for _ in range(64):
                stream.write(bytes(256 * 1024))
            draining = asyncio.create_task(stream.drain())
            await text_of(transport, "true")
            demand(not draining.done(), "drain to wait: nothing was read yet")
            await text_of(transport, 'echo >"$1"', go)
            await soon(draining)
            stream.end_input()
            demand_equal(await soon(stream.wait(BOUND_S)), 0, "exit status")
            demand_equal(got.split(), [str(64 * 256 * 1024).encode()], "bytes read")


async def _sh(transport: Transport, script: str) -> CommandResult:
    return await transport.run(["sh", "-c", script], timeout_s=BOUND_S)


async def _arrives(got: bytearray, expected: bytes) -> None:
    async def is_there() -> bool:
        return expected in got

    await eventually(is_there, f"{expected!r} in the output")

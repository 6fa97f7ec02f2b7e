"""Takes a board that knows only a password into the lab: host key, login key, rights, inventory.

Each step looks first whether it was done, so that the whole can be done again after a failure.
The password is asked when it is needed, kept in memory until the end, and written nowhere.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from pydantic import JsonValue

from farm.analysis.profile_match import identify
from farm.config.inventory_entry import add_board, entry_text
from farm.drivers.board_facts.probe import probe
from farm.drivers.registry import transport_class
from farm.drivers.transports.enrolment import ShownHostKey, enrol, fetch_host_key, login_key
from farm.drivers.transports.remote_enrolment import (
    install_key,
    install_sudoers,
    needs_sudo_password,
)
from farm.errors import AuthError, ConfigError, HostKeyError
from farm.interfaces.transport import Transport
from farm.model.board import Board
from farm.model.profile import BoardProfile
from farm.pipeline.boards.enroll_entry import (
    UNKNOWN_PROFILE,
    Wanted,
    fields_of,
    key_of,
    known_board,
    new_board,
)
from farm.pipeline.boards.needs import root_commands
from farm.pipeline.boards.notes import note_path, write_note
from farm.pipeline.boards.probe import BoardProbe, probe_board
from farm.pipeline.boards.reach import agent_on, context_of
from farm.pipeline.boards.rights import ask_rights
from farm.pipeline.boards.sudoers import check_sudoers, sudoers_text
from farm.pipeline.lab import Lab

PASSWORD_TRIES = 3
"""As ssh asks; more may get us banned."""


class Dialog(Protocol):
    """The user, or what stands in for them."""

    def tell(self, text: str) -> None:
        """Say what was done."""

    def confirm(self, question: str, *, by_default: bool) -> bool:
        """Ask yes or no."""

    def password(self, what: str) -> str:
        """Ask for a password, unseen. Raises AuthError where nobody can be asked."""


async def enroll_board(lab: Lab, wanted: Wanted, dialog: Dialog) -> Board:
    """All of it; the board as the inventory has it then.

    Raises ConfigError, HostKeyError, AuthError, and what connecting raises.
    """
    return await _Enrolment(lab, wanted, dialog).run()


class _Enrolment:
    def __init__(self, lab: Lab, wanted: Wanted, dialog: Dialog) -> None:
        self._lab, self._wanted, self._dialog = lab, wanted, dialog
        self._context = context_of(lab)
        self._password: str | None = None
        self._known = known_board(lab, wanted)
        board = self._known or new_board(lab, wanted)
        self._key = board.identity_file or key_of(lab, wanted)
        self._board = board.model_copy(update={"identity_file": self._key})

    async def run(self) -> Board:
        """Step by step."""
        await self._trust_host()
        if self._wanted.is_dry:
            self._show_rest()
            return self._board
        await self._install_key()
        await self._find_profile()
        if self._wanted.has_sudoers:
            await self._offer_sudoers()
        found = await self._probe()
        self._write_entry()
        self._tell_probe(found)
        return self._board

    def _tell(self, text: str) -> None:
        self._dialog.tell(text)

    async def _trust_host(self) -> None:
        shown = await fetch_host_key(self._board)
        trusted = self._context.trusted_keys(self._board)
        keys = [key.export_public_key().decode().split()[:2] for key in trusted.keys]
        self._tell(f"host key: {shown.description}")
        self._check_fingerprint(shown)
        if shown.line.split()[1:3] in keys:
            self._tell(f"  it is the one that {trusted.file} has")
            return
        if trusted.keys or trusted.authorities or trusted.revoked:
            raise HostKeyError(
                "enroll",
                f"{trusted.file} has another host key for it than {shown.description}",
                board=self._board.name,
                remedy="Somebody may stand between. If the board was reinstalled, remove its "
                f"line from {trusted.file} first",
            )
        if self._wanted.is_dry:
            self._tell(f"  would ask, then add it to {trusted.file}")
            return
        question = "Is this the board's own key (on the board: ssh-keygen -l -f FILE)?"
        if not self._wanted.fingerprint and not self._dialog.confirm(question, by_default=False):
            raise HostKeyError("enroll", "its host key was not accepted", board=self._board.name)
        self._tell(f"  written to {enrol(self._board, shown)}")

    def _check_fingerprint(self, shown: ShownHostKey) -> None:
        expected = self._wanted.fingerprint
        if expected and expected != shown.fingerprint:
            raise HostKeyError(
                "enroll",
                f"it shows {shown.fingerprint}, not {expected}",
                board=self._board.name,
                remedy="Compare with the board's own: `ssh-keygen -l -f` its "
                "/etc/ssh/ssh_host_*_key.pub; the key's type must be the same",
            )

    async def _install_key(self) -> None:
        path = self._key
        public, is_new = login_key(path, self._board.name)
        self._tell(f"login key: {path}{' (made)' if is_new else ''}")
        if not is_new and await self._can_log_in():
            self._tell(f"  {self._board.user} can log in with it already")
            return
        async with self._first_login() as transport:
            is_added = await install_key(transport, public, self._board.name)
        self._tell(
            "  added to its authorized_keys" if is_added else "  its authorized_keys has it"
        )
        if not await self._can_log_in():
            raise AuthError(
                "enroll",
                f"the key is in ~{self._board.user}/.ssh/authorized_keys, and is refused",
                board=self._board.name,
                remedy="On the board, look at PubkeyAuthentication and AuthorizedKeysFile "
                "(`sshd -T`), and at who else may write to the home folder; its log tells why",
            )
        self._tell("  logged in with the key alone")

    async def _can_log_in(self) -> bool:
        try:
            async with self._connected(self._board):
                return True
        except AuthError:
            return False

    @asynccontextmanager
    async def _first_login(self) -> AsyncIterator[Transport]:
        """By a key that the user has already, else by password."""
        usual = self._board.model_copy(update={"identity_file": None})
        transport = await self._by_usual_key(usual) or await self._by_password(usual)
        try:
            yield transport
        finally:
            await transport.close()

    async def _by_usual_key(self, board: Board) -> Transport | None:
        transport = transport_class("fabric")(board, self._context)
        try:
            await transport.connect()
        except AuthError:
            return None
        self._tell("  logged in with a key of yours")
        return transport

    async def _by_password(self, board: Board) -> Transport:
        tries = PASSWORD_TRIES
        while True:
            tries -= 1
            password = self._dialog.password(f"{board.user}'s password on {board.host}")
            transport = transport_class("fabric")(board, self._context, password=password)
            try:
                await transport.connect()
            except AuthError:
                if not tries:
                    raise
                self._tell("  refused")
                continue
            self._password = password
            return transport

    @asynccontextmanager
    async def _connected(self, board: Board) -> AsyncIterator[Transport]:
        transport = transport_class("fabric")(board, self._context)
        try:
            yield await transport.connect()
        finally:
            await transport.close()

    async def _find_profile(self) -> None:
        async with agent_on(self._board, self._context) as agent:
            facts = await probe(agent)
        matches = identify(facts.compatible, facts.model, self._lab.profiles.values())
        self._tell(f"board: {facts.model or 'no device tree'}, {facts.l4t or facts.os}")
        for match in matches:
            self._tell(f"  fits {match.profile.name}, by {match.basis}: {match.why}")
        if self._wanted.profile or self._known is not None:
            fitting = {match.profile.name for match in matches}
            if fitting and self._board.profile not in fitting:
                self._tell(f"  {self._board.profile} is none of these; it is taken as you said")
            return
        if not matches:
            self._tell(f"  fits no profile: taken as {UNKNOWN_PROFILE}; --profile names another")
            return
        best = matches[0].profile.name
        if self._dialog.confirm(f"Take the profile {best}?", by_default=True):
            self._board = self._board.model_copy(update={"profile": best})
        else:
            raise ConfigError("then name the profile with --profile")

    async def _offer_sudoers(self) -> None:
        commands = root_commands(self._profile)
        if self._board.user == "root" or not commands:
            self._tell("sudoers: nothing is needed")
            return
        async with agent_on(self._board, self._context) as agent:
            rights = await ask_rights(agent, commands)
        if rights.state in {"root", "free"}:
            self._tell("sudoers: it allows all that is needed already")
            return
        text = sudoers_text(self._lab, [self._board])
        self._tell(f"sudoers: this lets {self._board.user} run without a password:\n{text}")
        if not self._dialog.confirm("Install it as /etc/sudoers.d/farm?", by_default=True):
            self._tell("  left out: power modes will not be set; `farm boards sudoers` prints it")
            return
        check_sudoers(text)
        async with self._connected(self._board) as transport:
            password = await self._sudo_password(transport)
            await install_sudoers(transport, text, self._board.name, password)
        self._tell("  installed; the board's visudo accepts it")

    async def _sudo_password(self, transport: Transport) -> str | None:
        if not await needs_sudo_password(transport):
            return None
        if self._password is None:
            self._password = self._dialog.password(f"{self._board.user}'s password for sudo")
        return self._password

    @property
    def _profile(self) -> BoardProfile:
        try:
            return self._lab.profiles[self._board.profile]
        except KeyError as error:
            known = ", ".join(sorted(self._lab.profiles))
            text = f"no profile {self._board.profile!r}; known: {known}"
            raise ConfigError(text) from error

    async def _probe(self) -> BoardProbe:
        async with agent_on(self._board, self._context) as agent:
            found = await probe_board(self._lab, self._board, agent)
        write_note(note_path(self._lab, self._board.name), found)
        return found

    def _write_entry(self) -> None:
        path = self._lab.workspace.inventory_path
        if self._known is not None:
            self._tell(f"inventory: {path} has it already")
            return
        self._board = add_board(path, self._board.name, self._fields(), self._lab.profiles)
        self._tell(
            f"inventory: written to {path}:\n{entry_text(self._board.name, self._fields())}"
        )

    def _tell_probe(self, found: BoardProbe) -> None:
        self._tell(f"sudo: {found.sudo.complaint or found.sudo.state}")
        for line in (*found.differences, *found.problems):
            self._tell(f"  {line}")
        self._tell(f"done; `farm boards doctor {self._board.name}` looks whether a run would go")

    def _fields(self) -> dict[str, JsonValue]:
        return fields_of(self._lab, self._board)

    def _show_rest(self) -> None:
        board, path = self._board, self._key
        self._tell(f"would use the login key {path}{'' if path.exists() else ', made anew'}")
        self._tell(f"would log in as {board.user} with it, else with a key of yours, else by")
        self._tell("  password, and add it to authorized_keys")
        profile = self._wanted.profile or "the one that fits"
        self._tell(f"would look what it is, and take the profile {profile}")
        if self._wanted.has_sudoers and self._wanted.profile:
            self._tell(f"would offer the sudoers file:\n{sudoers_text(self._lab, [board])}")
        if self._known is None:
            self._tell(f"would add to the inventory:\n{entry_text(board.name, self._fields())}")

"""What enrolling does on a board: the login key, and the sudoers file.

No key, text or password stands in a command: they go by stdin.
"""

from farm.errors import AuthError, TransferError
from farm.interfaces.transport import Transport

STEP_LIMIT_S = 30.0

_INSTALL_KEY = """umask 077
IFS= read -r key || exit 9
mkdir -p "$HOME/.ssh" || exit 1
file=$HOME/.ssh/authorized_keys
[ -f "$file" ] && grep -qxF -e "$key" "$file" && { echo there; exit 0; }
[ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ] && { echo >>"$file" || exit 1; }
printf '%s\\n' "$key" >>"$file" || exit 1
echo added"""

# sudo passes over files with a dot in their name, so nothing counts before it was checked
_INSTALL_SUDOERS = """umask 077
new=/etc/sudoers.d/farm.new
trap 'rm -f "$new"' EXIT
cat "$1" >"$new" && chown 0:0 "$new" && chmod 0440 "$new" || exit 1
PATH=$PATH:/usr/sbin:/sbin
visudo -c -q -f "$new" || { echo "visudo does not accept it" >&2; exit 1; }
mv -f "$new" /etc/sudoers.d/farm"""

_KEEP = 'umask 077; file=$(mktemp) && cat >"$file" && printf %s "$file"'


async def install_key(transport: Transport, public: str, board: str) -> bool:
    """Add a public key to authorized_keys unless it is there; whether it was added.

    Raises TransferError when the board cannot keep it, and what `run` raises.
    """
    argv = ("sh", "-c", _INSTALL_KEY)
    done = await transport.run(argv, timeout_s=STEP_LIMIT_S, stdin=f"{public}\n".encode())
    if done.exit_status != 0:
        raise TransferError(
            "enroll",
            f"~/.ssh/authorized_keys cannot be written: {_words(done.error_text)}",
            board=board,
            remedy="Is its disk full or read-only? Does the home folder belong to the user?",
        )
    return done.text.strip() == "added"


async def needs_sudo_password(transport: Transport) -> bool:
    """Whether sudo would ask. Raises what `run` raises."""
    done = await transport.run(("sudo", "-n", "true"), timeout_s=STEP_LIMIT_S)
    return done.exit_status != 0


async def install_sudoers(
    transport: Transport, text: str, board: str, password: str | None
) -> None:
    """Put the file to /etc/sudoers.d/farm, once the board's own visudo accepts it.

    Raises AuthError when sudo refuses, and what `run` raises.
    """
    kept = await transport.run(("sh", "-c", _KEEP), timeout_s=STEP_LIMIT_S, stdin=text.encode())
    if kept.exit_status != 0:
        seen = f"no temporary file can be written: {_words(kept.error_text)}"
        raise TransferError("enroll", seen, board=board, remedy="Free its disk")
    try:
        ask = ("-n",) if password is None else ("-S", "-k", "-p", "")
        argv = ("sudo", *ask, "--", "sh", "-c", _INSTALL_SUDOERS, "sh", kept.text)
        stdin = b"" if password is None else f"{password}\n".encode()
        done = await transport.run(argv, timeout_s=STEP_LIMIT_S, stdin=stdin)
    finally:
        await transport.run(("rm", "-f", "--", kept.text), timeout_s=STEP_LIMIT_S)
    if done.exit_status != 0:
        raise AuthError(
            "enroll",
            f"the sudoers file was not installed: {_words(done.error_text)}",
            board=board,
            remedy="Install it by hand: `farm boards sudoers` prints it and tells how",
        )


def _words(text: str) -> str:
    said = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return said[-300:] or "it does not say why"

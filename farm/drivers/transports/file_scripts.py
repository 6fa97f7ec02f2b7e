"""The sh scripts that the board runs for file transfers; POSIX sh and busybox are enough.

Exit statuses of their own: 90 no way to hash, 91 no tar, 92 no such file, 93 a hash differs.
"""

NO_TAR = 91

_PATHS = """
case $1 in "~") path=$HOME ;; "~/"*) path=$HOME/${1#??} ;; /*) path=$1 ;; *) path=$PWD/$1 ;; esac
"""

# digest FILE: its SHA-256 in hex, by whatever the board has
_DIGEST = """
if command -v sha256sum >/dev/null 2>&1; then digest() { sha256sum <"$1"; }
elif command -v shasum >/dev/null 2>&1; then digest() { shasum -a 256 <"$1"; }
elif command -v openssl >/dev/null 2>&1; then digest() { openssl dgst -sha256 -r <"$1"; }
elif command -v python3 >/dev/null 2>&1; then digest() {
python3 -c 'import hashlib, sys
h = hashlib.sha256()
for block in iter(lambda: sys.stdin.buffer.read(65536), b""): h.update(block)
print(h.hexdigest())' <"$1"; }
else echo "the board has none of sha256sum, shasum, openssl, python3" >&2; exit 90; fi
"""

PUT_TAR = f"""
command -v tar >/dev/null 2>&1 || {{ echo "the board has no tar" >&2; exit 91; }}
{_PATHS}{_DIGEST}
mkdir -p "$path" && mkdir "$path/$2" || exit 1
tmp=$path/$2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 94' HUP INT TERM
tar -x -m -o -f - -C "$tmp" || exit 1
(
cd "$tmp" || exit 1
if command -v sha256sum >/dev/null 2>&1; then sha256sum -c sums >/dev/null || exit 93
else while read -r want file; do
got=$(digest "$file") || exit 1
[ "${{got%% *}}" = "$want" ] || {{ echo "$file differs" >&2; exit 93; }}
done <sums; fi
) || exit $?
sync -f "$tmp" 2>/dev/null || sync
n=0
while IFS= read -r folder; do
to=$path/$folder from=$tmp/$n
[ -d "$to" ] || mkdir -p "$to" || exit 1
set -- "$from"/.[!.]* "$from"/..?*
if [ -e "$1" ] || [ -e "$2" ] || {{ set -- "$from"/*; [ $# -gt 500 ]; }}; then
find "$from" -type f -exec sh -c 'to=$1; shift; mv -f "$@" "$to"' sh "$to" {{}} + || exit 1
else mv -f "$@" "$to" || exit 1; fi
n=$((n + 1))
done <"$tmp/folders"
"""
"""$1 folder, $2 name of the temporary folder. stdin: a tar of N/NAME for each file, where line
N+1 of the member `folders` is its folder, and `sums` as of sha256sum. All hashes are checked
before the first rename. One mv a folder, where its files are few and none is hidden: a
process costs more than the renames. The temporary folder goes away however the script ends: a
dropped link ends tar by the end of its input."""

PUT_CAT = f"""
{_PATHS}{_DIGEST}
to=$path/$5 tmp=$path/$2
case $5 in */*) [ -d "${{to%/*}}" ] || mkdir -p "${{to%/*}}" || exit 1 ;; esac
[ -d "$path" ] || mkdir -p "$path" || exit 1
[ ! -d "$to" ] || {{ echo "$5 is a folder" >&2; exit 1; }}
trap '[ ! -e "$tmp" ] || rm -f "$tmp"' EXIT
trap 'exit 94' HUP INT TERM
cat >"$tmp" || exit 1
got=$(digest "$tmp") || exit 1
[ "${{got%% *}}" = "$3" ] || {{ echo "its hash differs on the board" >&2; exit 93; }}
chmod "$4" "$tmp" || exit 1
sync "$tmp" 2>/dev/null || sync
mv -f "$tmp" "$to"
"""
"""For boards without tar. $1 folder, $2 temporary, $3 SHA-256, $4 mode, $5 relative path."""

GET = f"""
{_PATHS}{_DIGEST}
[ -f "$path" ] || {{ echo "there is no such file" >&2; exit 92; }}
cat "$path" || exit 1
digest "$path" >&2
"""
"""$1 path. stdout: the file; the last line of stderr begins with its SHA-256."""

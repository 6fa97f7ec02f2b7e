"""HTTP digest authentication as a Shelly Gen2 asks for it: SHA-256, user ``admin``, qop auth."""

import hashlib
import hmac
import re
import secrets
from collections import deque
from typing import Final

USER: Final = "admin"
_NONCES_KEPT = 64
_PART = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,]+))')


class DigestGuard:
    """Challenges and checks requests against one password."""

    def __init__(self, realm: str, password: str) -> None:
        self._realm = realm
        self._first = _digest(f"{USER}:{realm}:{password}")
        self._nonces: deque[str] = deque(maxlen=_NONCES_KEPT)

    def challenge(self) -> str:
        """A fresh value for ``WWW-Authenticate``."""
        nonce = secrets.token_hex(16)
        self._nonces.append(nonce)
        return f'Digest qop="auth", realm="{self._realm}", nonce="{nonce}", algorithm=SHA-256'

    def allows(self, header: str, method: str) -> bool:
        """Whether the ``Authorization`` header answers a challenge of ours."""
        scheme, _, rest = header.partition(" ")
        parts = {name.lower(): quoted or bare for name, quoted, bare in _PART.findall(rest)}
        if scheme.lower() != "digest" or parts.get("username") != USER:
            return False
        nonce = parts.get("nonce", "")
        if nonce not in self._nonces:
            return False
        second = _digest(f"{method}:{parts.get('uri', '')}")
        middle = f"{nonce}:{parts.get('nc', '')}:{parts.get('cnonce', '')}:{parts.get('qop', '')}"
        wanted = _digest(f"{self._first}:{middle}:{second}")
        return hmac.compare_digest(wanted.encode(), parts.get("response", "").encode())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

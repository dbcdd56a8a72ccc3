"""The tokens that actors show, and who shows them."""

import hmac
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from lamplighter.domain.access import Actor, of_run, owner

KEY_BYTES = 32
PREFIX = "lamp_"
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY, _CHECK = 30, 6
_OF_MEMBER = re.compile(rf"{PREFIX}(?P<body>[0-9A-Za-z]{{{_BODY}}})(?P<check>[0-9A-Za-z]{{{_CHECK}}})")
_RUN_TOKEN = re.compile(r"lrt_(?P<run>run_[0-9a-z]{1,64})\.(?P<mac>[0-9a-f]{64})")


def run_token(key: bytes, run: str) -> str:
    """The token of a run: the same each time it is issued, so that a resumed start can issue it again."""
    return f"lrt_{run}.{_mac(key, run)}"


def run_of_token(key: bytes, token: str) -> str | None:
    """The run a token was issued for, or None. The comparison takes the same time for every wrong token of a run."""
    found = _RUN_TOKEN.fullmatch(token)
    if found is None or not hmac.compare_digest(_mac(key, found["run"]), found["mac"]):
        return None
    return found["run"]


def new_token(chance: Callable[[int], bytes]) -> str:
    """A token of a member: readable prefix, 178 random bits, and a checksum by which a misread one is told offline."""
    number = int.from_bytes(chance(_BODY), "big")
    body = _word(number, _BODY)
    return f"{PREFIX}{body}{_checksum(body)}"


def is_token(text: str) -> bool:
    """Whether it has the form of a member's token and its checksum is right; no store need be asked about others."""
    found = _OF_MEMBER.fullmatch(text)
    return found is not None and found["check"] == _checksum(found["body"])


def token_hash(token: str) -> str:
    """What is kept of a token. It has so many random bits that a plain hash tells nothing of it."""
    return sha256(token.encode()).hexdigest()


def _checksum(body: str) -> str:
    return _word(zlib.crc32(body.encode()), _CHECK)


def _word(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, one = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[one])
    return "".join(reversed(letters))


@dataclass(frozen=True)
class TokenBook:
    """Checks the tokens of one city: its owner's, and those of its runs."""

    key: bytes = field(repr=False)
    owner_token: str = field(repr=False)
    owner_name: str = "owner"

    def actor(self, token: str) -> Actor | None:
        run = run_of_token(self.key, token)
        if run is not None:
            return of_run(run)
        shown, known = token.encode("utf-8", "surrogatepass"), self.owner_token.encode()
        return owner(self.owner_name) if hmac.compare_digest(shown, known) else None


def _mac(key: bytes, run: str) -> str:
    if len(key) < KEY_BYTES:
        raise ValueError("the city's key is too short")
    return hmac.new(key, f"lamplighter run token v1\0{run}".encode(), sha256).hexdigest()

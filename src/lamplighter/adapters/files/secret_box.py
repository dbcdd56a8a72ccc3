"""Encrypts secrets with AES-GCM under the keys of `LAMP_SECRET_KEY` or of the file `.gc/secret.key`."""

import fcntl
import os
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from lamplighter.adapters.files.secrets import kept, put, read_private
from lamplighter.domain.secrets import KeyUnusable, Sealed, SecretLocked
from lamplighter.kit.records import record

KEY_FILE = "secret.key"
VARIABLE = "LAMP_SECRET_KEY"
KEY_BYTES = 32
NONCE_BYTES = 12
_KEY = re.compile(r"[0-9a-fA-F]{64}")


@record
class KeyedBox:
    """`runtime` is the city's `.gc`, `city` its id; the first key seals, every one opens."""

    runtime: Path
    env: Mapping[str, str]
    city: str

    def seal(self, name: str, value: str, in_use: Collection[str]) -> Sealed:
        key = (self._keys() or self._first(in_use))[0]
        nonce = secrets.token_bytes(NONCE_BYTES)
        text = _aes(key).encrypt(nonce, value.encode(), _bound_to(self.city, name))
        return Sealed(key_id(key), nonce.hex(), text.hex())

    def open(self, name: str, sealed: Sealed) -> str:
        return self._opened(self.city, name, sealed)

    def taken_over(self, name: str, sealed: Sealed, before: str) -> Sealed | None:
        """The value of a row that was sealed for the city `before`, sealed for this one; None if it is so already."""
        try:
            self._opened(self.city, name, sealed)
        except SecretLocked:
            return self.seal(name, self._opened(before, name, sealed), in_use=(sealed.key_id,))
        return None

    def renew_key(self, in_use: Collection[str]) -> str:
        given = self.env.get(VARIABLE, "").replace(",", " ").split()
        if len(given) == 1:
            raise KeyUnusable(
                f"{VARIABLE} holds one key only.",
                hint="Put a new one in front of it, with a comma between, restart the city, and repeat.",
            )
        if given:
            return key_id(_read(given[0], VARIABLE))
        with self._alone():
            before = self._of_file()
            self._refuse_without(in_use, before)
            key = secrets.token_bytes(KEY_BYTES)
            put(self.runtime / KEY_FILE, "\n".join(one.hex() for one in (key, *before)), over=True)
        return key_id(key)

    def _opened(self, city: str, name: str, sealed: Sealed) -> str:
        from cryptography.exceptions import InvalidTag

        key = next((one for one in self._keys() if key_id(one) == sealed.key_id), None)
        if key is None:
            raise SecretLocked(
                name,
                f"its key ({sealed.key_id}) is not here",
                f"Put the key back into {self.runtime / KEY_FILE} or {VARIABLE}, or set the secret again.",
            )
        try:
            return (
                _aes(key)
                .decrypt(bytes.fromhex(sealed.nonce), bytes.fromhex(sealed.text), _bound_to(city, name))
                .decode()
            )
        except (InvalidTag, ValueError) as error:
            raise SecretLocked(
                name, "its row was altered, or belongs to another name or city", f"`lamp secret set {name}` again."
            ) from error

    def _keys(self) -> tuple[bytes, ...]:
        """The keys of the environment, then those of the file. Raises KeyUnusable, Unavailable."""
        of_env = tuple(_read(one, VARIABLE) for one in self.env.get(VARIABLE, "").replace(",", " ").split())
        return (*of_env, *self._of_file())

    def _first(self, in_use: Collection[str]) -> tuple[bytes, ...]:
        """Make the city's first key, in the file."""
        self._refuse_without(in_use, ())
        kept(self.runtime / KEY_FILE, lambda: secrets.token_hex(KEY_BYTES))
        return self._of_file()

    def _refuse_without(self, in_use: Collection[str], here: Collection[bytes]) -> None:
        """A second key beside one that is only missing here would part the secrets: it is never made unasked."""
        if in_use and not {key_id(one) for one in here} & set(in_use):
            several = len(set(in_use)) > 1
            raise KeyUnusable(
                f"The key{'s' if several else ''} that sealed this city's secrets ({', '.join(sorted(set(in_use)))}) "
                f"{'are' if several else 'is'} not here, and no other is made beside {'them' if several else 'it'}.",
                hint=f"Set {VARIABLE} here as for the other processes of the city, or put the key back into "
                f"{self.runtime / KEY_FILE}. If it is lost, put a new one there (`openssl rand -hex 32`) and set the "
                "secrets again.",
            )

    def _of_file(self) -> tuple[bytes, ...]:
        path = self.runtime / KEY_FILE
        try:
            return tuple(_read(line, str(path)) for line in read_private(path).split())
        except FileNotFoundError:
            return ()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the file of keys: two renewals at once must not lose each other's key."""
        fd = os.open(self.runtime / f"{KEY_FILE}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def key_id(key: bytes) -> str:
    """Tells a key apart without telling anything of it."""
    return sha256(b"lamplighter secret key" + key).hexdigest()[:12]


def _read(text: str, where: str) -> bytes:
    if not _KEY.fullmatch(text):
        raise KeyUnusable(
            f"{where} holds something that is not a key.",
            hint="A key is 64 hexadecimal digits, such as `openssl rand -hex 32` prints; several stand side by side.",
        )
    return bytes.fromhex(text)


def _bound_to(city: str, name: str) -> bytes:
    """What a row is tied to: under another city or another name it cannot be opened."""
    return f"{city}\0{name}".encode()


def _aes(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 40 ms, for the few that open a secret

    return AESGCM(key)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

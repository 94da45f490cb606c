"""Key and trust stores from files into PEM text, on the driver, so that tasks on other hosts need no file.

PEM is read as it is, JKS by `wire.java_keystore`, PKCS12 by keytool, which copies it into a JKS store in a folder that
only this user can open and that is gone when it is read. Passwords go to keytool in files there, never on its command line.
Every fault is a SetupError that names the option and the file.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from heliograph.errors import SetupError
from heliograph.model.security import Secret, Security, Store, Tls
from heliograph.wire.java_keystore import MAGIC, KeyStore, WrongPassword, read_keystore
from heliograph.wire.pem import CERTIFICATE, Block, blocks, pem_of

_KEYTOOL_SECONDS = 60


def carried(security: Security) -> Security:
    """The same security with its files read: a value that can be used on any host."""
    return security if security.tls is None else replace(security, tls=carried_tls(security.tls))


def carried_tls(tls: Tls) -> Tls:
    if tls.trust is not None:
        tls = replace(tls, trust=_as_pem(tls.trust, trust_pem(tls.trust)))
    if tls.own is not None:
        # Keys from JKS and PKCS12 are open once they are read; a PEM key stays under its password.
        stays = tls.own.kind == "PEM"
        own = _as_pem(tls.own, own_pem(tls.own, tls.key_password))
        tls = replace(tls, own=own, key_password=tls.key_password if stays else None)
    return tls


def _as_pem(store: Store, text: str) -> Store:
    return Store(store.option, "PEM", store.path, text=Secret(text))


def trust_pem(store: Store) -> str:
    """The certificates of a trust store."""
    if store.kind == "PEM":
        found = [block.der for block in _blocks(store) if block.label.endswith(CERTIFICATE)]
    else:
        found = list(_opened(store, None).trusted)
    if not found:
        raise SetupError(f"{_where(store)} holds no trusted certificate: put the CA of the brokers into it")
    return pem_of(CERTIFICATE, found)


def own_pem(store: Store, key_password: Secret | None) -> str:
    """Our certificates and our key; of several keys Java's choice is not known, so there must be one."""
    if store.kind == "PEM":
        return _own_from_pem(_blocks(store), store, key_password)
    keys = _opened(store, key_password).keys
    if len(keys) != 1:
        named = ", ".join(entry.alias for entry in keys) or "none"
        raise SetupError(f"{_where(store)} must hold exactly one private key, it holds {len(keys)} ({named})")
    return pem_of(CERTIFICATE, keys[0].chain) + pem_of("PRIVATE KEY", [keys[0].key])


def _own_from_pem(found: list[Block], store: Store, key_password: Secret | None) -> str:
    keys = [block for block in found if block.is_key]
    chain = [block for block in found if block.label.endswith(CERTIFICATE)]
    if len(keys) != 1 or not chain:
        raise SetupError(
            f"{_where(store)} must hold one private key and its certificates as PEM; "
            f"it holds {len(keys)} and {len(chain)}"
        )
    if keys[0].is_encrypted and key_password is None:
        raise SetupError(f"{_where(store)} holds an encrypted private key: set ssl.key.password")
    return "".join(block.text for block in (*chain, *keys))


def _blocks(store: Store) -> list[Block]:
    try:
        text = store.text.reveal() if store.text is not None else _content(store).decode(errors="replace")
        return blocks(text)
    except ValueError as error:
        raise SetupError(f"{_where(store)} holds {error}") from error


def _opened(store: Store, key_password: Secret | None) -> KeyStore:
    data = _content(store)
    password = store.password.reveal() if store.password else None
    key = key_password.reveal() if key_password else None
    with tempfile.TemporaryDirectory(prefix="heliograph-") as folder:  # mkdtemp: for this user alone
        if data[:4] != MAGIC:
            if password is None:
                raise SetupError(f"{_where(store)} is a PKCS12 store: set {_password_option(store)}")
            data, password, key = _converted(store, password, Path(folder))
        try:
            return read_keystore(data, password, key)
        except WrongPassword as error:
            option = "ssl.key.password" if "its key" in str(error) else _password_option(store)
            raise SetupError(f"{_where(store)} does not open: the password of {option} is wrong") from error
        except (ValueError, IndexError) as error:
            raise SetupError(f"{_where(store)} is not a whole key store (was it cut off?): {error}") from error


def _converted(store: Store, password: str, folder: Path) -> tuple[bytes, str, str]:
    """The store as keytool copies it into JKS, the password it has there, and that of its keys, which they keep."""
    keytool = _keytool()
    if keytool is None:
        raise SetupError(f"{_where(store)} is read with Java's keytool, which was not found: set JAVA_HOME")
    new_password = secrets.token_urlsafe(24)
    old, new, copy = folder / "old", folder / "new", folder / "copy.jks"
    for path, text in ((old, password), (new, new_password)):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    command = [
        *(keytool, "-importkeystore", "-noprompt", "-srckeystore", store.path, "-srcstorepass:file", str(old)),
        *("-destkeystore", str(copy), "-deststoretype", "JKS", "-deststorepass:file", str(new)),
        *("-J-XX:TieredStopAtLevel=1", "-J-Duser.language=en"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_KEYTOOL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{_where(store)} could not be read with {keytool}: {type(error).__name__}") from error
    if done.returncode != 0 or not copy.exists():
        raise SetupError(_keytool_fault(store, done.stdout + done.stderr))
    return copy.read_bytes(), new_password, password


def _keytool_fault(store: Store, printed: str) -> str:
    if "password was incorrect" in printed or "keystore password" in printed:
        return f"{_where(store)} does not open: the password of {_password_option(store)} is wrong"
    said = [line.partition("keytool error: ")[2].strip() for line in printed.splitlines() if "keytool error: " in line]
    return f"{_where(store)} is not a whole key store (was it cut off?); keytool says: {' '.join(said) or 'nothing'}"


def _keytool() -> str | None:
    home = os.environ.get("JAVA_HOME")
    inside = Path(home) / "bin" / "keytool" if home else None
    return str(inside) if inside is not None and inside.exists() else shutil.which("keytool")


def _content(store: Store) -> bytes:
    try:
        return Path(store.path).read_bytes()
    except FileNotFoundError as error:
        raise SetupError(f"{_where(store)} does not exist: correct the path, or put the file there") from error
    except OSError as error:
        raise SetupError(f"{_where(store)} cannot be read by this user: {error.strerror}") from error


def _where(store: Store) -> str:
    return f"{store.option}: file {store.path}" if store.path else store.option


def _password_option(store: Store) -> str:
    return store.option.replace("location", "password")

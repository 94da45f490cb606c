"""Certificates for tests, made with keytool (it comes with Java): a CA, what it signed, and what is wrong with some.

Everything is in PEM files, which brokers read too; what a test wants in PKCS12 or JKS, keytool copies.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from heliograph.wire.java_keystore import KeyEntry, read_keystore
from heliograph.wire.pem import CERTIFICATE, pem_of

PASSWORD = "store-s3cret"
HERE = "SAN=ip:127.0.0.1,dns:localhost"
_QUICK = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


def keytool(*arguments: str) -> None:
    program = shutil.which("keytool")
    assert program is not None, "keytool comes with Java"
    done = subprocess.run([program, *arguments, *_QUICK], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Certificates:
    """A folder of them: `NAME.pem` holds key and certificates of NAME, `ca.crt` and `stranger.crt` two CAs."""

    folder: Path

    def pem(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def ca(self, name: str = "ca") -> str:
        return str(self.folder / f"{name}.crt")

    def make(self, alias: str, *options: str, signer: str = "ca") -> None:
        self._generate(alias, "-signer", signer, *options)

    def _generate(self, alias: str, *options: str) -> None:
        keytool(
            *("-genkeypair", "-alias", alias, "-dname", f"CN={alias}", "-keyalg", "EC", "-groupname", "secp256r1"),
            *("-keystore", str(self.folder / "all.jks"), "-storetype", "JKS", "-storepass", PASSWORD),
            *("-keypass", PASSWORD, *options),
        )

    def write_files(self) -> None:
        """A PEM file for every key that was made."""
        for entry in read_keystore((self.folder / "all.jks").read_bytes(), PASSWORD).keys:
            (self.folder / f"{entry.alias}.pem").write_text(_pem(entry))
            (self.folder / f"{entry.alias}.crt").write_text(pem_of(CERTIFICATE, entry.chain[:1]))

    def make_brief(self, alias: str, seconds: int) -> str:
        """The PEM file of a certificate that is made now and ends after so many seconds; keytool itself counts in days."""
        self.make(alias, "-startdate", f"-1d+{seconds}S", "-validity", "1")
        self.write_files()
        return self.pem(alias)

    def key_store(self, alias: str, kind: str) -> str:
        path = self.folder / f"{alias}.{kind}"
        if not path.exists():
            keytool(
                *("-importkeystore", "-srckeystore", str(self.folder / "all.jks"), "-srcstorepass", PASSWORD),
                *("-srcalias", alias, "-destkeystore", str(path), "-deststoretype", kind, "-deststorepass", PASSWORD),
                *("-noprompt",),
            )
        return str(path)

    def trust_store(self, kind: str) -> str:
        path = self.folder / f"trust.{kind}"
        if not path.exists():  # another test may have asked for it
            keytool(
                *("-importcert", "-alias", "ca", "-file", self.ca(), "-keystore", str(path), "-storetype", kind),
                *("-storepass", PASSWORD, "-noprompt"),
            )
        return str(path)


def make_certificates(folder: Path) -> Certificates:
    """Two CAs; `broker` and `client` in order; a broker that is `elsewhere`, one that is `expired`, one of a week's life."""
    made = Certificates(folder)
    made._generate("ca", "-ext", "bc:c")
    made._generate("stranger", "-ext", "bc:c")
    made.make("broker", "-ext", HERE)
    made.make("client")
    made.make("elsewhere", "-ext", "SAN=dns:elsewhere.example")
    made.make("expired", "-ext", HERE, "-startdate", "-20d", "-validity", "10")
    made.make("ending", "-ext", HERE, "-validity", "3")
    made.write_files()
    return made


def _pem(entry: KeyEntry) -> str:
    return pem_of(CERTIFICATE, entry.chain) + pem_of("PRIVATE KEY", [entry.key])

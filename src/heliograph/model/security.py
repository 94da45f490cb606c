"""How a cluster is reached safely: TLS, the login, and the secrets both need.

Frozen values that travel to executors. Knows no file, no socket and no library. What is secret shows itself as `***`
wherever it is printed, logged or formatted; only `reveal` gives it away.
"""

from __future__ import annotations

from dataclasses import dataclass


class Secret:
    """A text that must not be seen. No dataclass: `asdict` and `vars` would look inside.

    >>> print(Secret("pass"), [Secret("pass")], f"{Secret('pass')}")
    *** [***] ***
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self._text,)


@dataclass(frozen=True)
class Store:
    """Where certificates or keys are: a file, or PEM text. `option` is the one that named it, for sentences."""

    option: str
    kind: str
    """`PEM`, `PKCS12` or `JKS`; Java tells the latter two apart by themselves, and so do we"""
    path: str = ""
    password: Secret | None = None
    text: Secret | None = None


@dataclass(frozen=True)
class Tls:
    """What a connection trusts, who it is, and what it checks."""

    trust: Store | None = None
    """None: the certificates that this machine trusts"""
    own: Store | None = None
    """our key and certificates; None: we show none"""
    key_password: Secret | None = None
    checks_host: bool = True
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True)
class Refresh:
    """When a token is renewed: at this part of its life, but not later than `buffer_s` before its end."""

    factor: float = 0.8
    jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300


@dataclass(frozen=True)
class TokenSource:
    """Where OAuth tokens come from: an endpoint that takes client credentials, or a file (`file://`)."""

    url: str
    client_id: str = ""
    client_secret: Secret | None = None
    scope: str = ""
    urlencode: bool = False
    """whether id and secret are URL-encoded before they are joined, as RFC 6749 says and Kafka does not by default"""
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    backoff_ms: int = 100
    backoff_max_ms: int = 10_000
    refresh: Refresh = Refresh()
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Login:
    """Who we are to the brokers, by a SASL mechanism."""

    mechanism: str
    username: str = ""
    password: Secret | None = None
    service: str = ""
    """the brokers' Kerberos name"""
    tokens: TokenSource | None = None


@dataclass(frozen=True)
class Security:
    """All of it; without TLS and login it is Kafka's PLAINTEXT."""

    tls: Tls | None = None
    login: Login | None = None

    @property
    def protocol(self) -> str:
        """Kafka's name for it."""
        match self.login is not None, self.tls is not None:
            case True, True:
                return "SASL_SSL"
            case True, False:
                return "SASL_PLAINTEXT"
            case False, True:
                return "SSL"
        return "PLAINTEXT"


PLAINTEXT = Security()

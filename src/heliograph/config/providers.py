"""Config providers: `${env:NAME}`, `${file:PATH:KEY}` and `${dir:PATH:KEY}` in values, as Kafka's own three do it.

Pure: the environment and the files come in as an `Outside`. `env`, `file` and `dir` serve without being set up; other
names are those of `config.providers` with one of Java's classes. Sentences never hold what a provider gave.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from heliograph.config.properties import Property, parse
from heliograph.errors import ConfigError
from heliograph.replication.filters import compile_java, split_list

_JAVA = "org.apache.kafka.common.config.provider"
CLASSES = {
    f"{_JAVA}.EnvVarConfigProvider": "env",
    f"{_JAVA}.FileConfigProvider": "file",
    f"{_JAVA}.DirectoryConfigProvider": "dir",
}
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")


def _no_file(path: str) -> str:
    raise OSError(2, "No such file or directory", path)


@dataclass(frozen=True)
class Outside:
    """What values may refer to: environment variables, and files as UTF-8 text (OSError where one cannot be read)."""

    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    read: Callable[[str], str] = _no_file


NOTHING = Outside()


@dataclass(frozen=True)
class Provider:
    """One of the three kinds, and what it is allowed to give."""

    kind: str
    allowed_paths: tuple[str, ...] = ()
    allowed_names: str = ""


BUILT_IN = {"env": Provider("env"), "file": Provider("file"), "dir": Provider("dir"), "directory": Provider("dir")}


class NotProvided(Exception):
    """A reference that leads nowhere; the message ends a sentence."""


def set_up(entries: Mapping[str, Property]) -> tuple[dict[str, Provider], list[tuple[Property, str]]]:
    """The providers of a file by name, and the faults of their set-up."""
    found = dict(BUILT_IN)
    faults: list[tuple[Property, str]] = []
    declared = entries.get("config.providers")
    for name in split_list(declared.value) if declared else ():
        option = f"config.providers.{name}.class"
        entry = entries.get(option)
        if entry is not None and entry.value in CLASSES:
            found[name] = Provider(CLASSES[entry.value], *_limits(entries, name))
        elif entry is not None or name not in BUILT_IN:
            said = f"{option} = {entry.value}" if entry is not None else f"{option} is missing"
            fault = f"{said}: expected {', '.join(CLASSES)} (no other class can be loaded)"
            faults += [(place, fault) for place in (entry or declared,) if place is not None]
    return found, faults


def _limits(entries: Mapping[str, Property], name: str) -> tuple[tuple[str, ...], str]:
    paths = entries.get(f"config.providers.{name}.param.allowed.paths")
    names = entries.get(f"config.providers.{name}.param.allowlist.pattern")
    return split_list(paths.value) if paths else (), names.value if names else ""


def strangers(text: str, known: Mapping[str, Provider]) -> Iterator[str]:
    """The names of providers that a value refers to and nobody set up: like Java, such references are left as they are."""
    for reference in _REFERENCE.finditer(text):
        if reference[1] not in known:
            yield reference[1]


def resolve(text: str, known: Mapping[str, Provider], outside: Outside) -> str:
    """The value with every reference replaced, once; NotProvided where one leads nowhere."""

    def given(reference: re.Match[str]) -> str:
        provider = known.get(reference[1])
        if provider is None:
            return reference[0]
        return _GIVE[provider.kind](provider, reference[2] or "", reference[3], outside)

    return _REFERENCE.sub(given, text)


def _from_environment(provider: Provider, path: str, key: str, outside: Outside) -> str:
    if path:
        raise NotProvided(f"an environment variable has no path: write ${{env:{key}}}")
    if provider.allowed_names and not _is_match(provider.allowed_names, key):
        raise NotProvided(f"environment variable {key} is not allowed by the provider's allowlist.pattern")
    if key not in outside.environ:
        raise NotProvided(f"environment variable {key} is not set")
    return outside.environ[key]


def _from_file(provider: Provider, path: str, key: str, outside: Outside) -> str:
    try:
        entries = {entry.name: entry.value for entry in parse(_read(provider, path, outside))}
    except ConfigError as error:
        raise NotProvided(f"file {path} is no properties file") from error
    if key not in entries:
        raise NotProvided(f"file {path} has no key {key}")
    return entries[key]


def _from_directory(provider: Provider, path: str, key: str, outside: Outside) -> str:
    """A file's content; an editor's line end behind it is not part of a password."""
    if "/" in key:
        raise NotProvided(f"{key} is not the name of a file in {path}")
    return _read(provider, posixpath.join(path, key), outside).removesuffix("\n").removesuffix("\r")


_GIVE = {"env": _from_environment, "file": _from_file, "dir": _from_directory}


def _read(provider: Provider, path: str, outside: Outside) -> str:
    whole = posixpath.normpath(path)
    roots = [posixpath.normpath(root) for root in provider.allowed_paths]
    if roots and not any(whole == root or whole.startswith(root.rstrip("/") + "/") for root in roots):
        raise NotProvided(f"file {path} is outside the provider's allowed.paths")
    try:
        return outside.read(path)
    except OSError as error:
        raise NotProvided(f"file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NotProvided(f"file {path} is not UTF-8 text") from error


def _is_match(pattern: str, name: str) -> bool:
    try:
        return compile_java([pattern]).fullmatch(name) is not None
    except ConfigError as error:
        raise NotProvided("the provider's allowlist.pattern is not a regular expression of Java") from error

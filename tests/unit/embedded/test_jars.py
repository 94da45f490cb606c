"""The jars folder appears whole or not at all, and is fetched once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from heliograph.embedded import jars
from heliograph.embedded.jars import cache_directory, ensure_kafka_jars
from heliograph.errors import SetupError


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for Maven on PATH that notes its calls and copies one jar; `broken` beside it makes it fail half-way."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "mvn"
    program.write_text(
        "#!/bin/sh\n"
        f"echo call >> {folder}/calls\n"
        f'echo "$@" > {folder}/words\n'
        'for word in "$@"; do case $word in -DoutputDirectory=*) into=${word#*=};; -f) ;; esac; done\n'
        "mkdir -p $into; : > $into/half.jar\n"
        f"if [ -e {folder}/broken ]; then echo '[ERROR] no network'; exit 1; fi\n"
        ": > $into/kafka_2.13-4.3.1.jar\n"
    )
    program.chmod(0o755)
    java = folder / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def calls(maven: Path) -> int:
    return len((maven / "calls").read_text().splitlines())


def test_the_second_call_finds_what_the_first_fetched(maven: Path, tmp_path: Path) -> None:
    said: list[str] = []
    first = ensure_kafka_jars(said.append, tmp_path / "cache")
    second = ensure_kafka_jars(said.append, tmp_path / "cache")
    assert first == second == tmp_path / "cache" / "kafka-4.3.1"
    assert (first / "kafka_2.13-4.3.1.jar").exists()
    assert calls(maven) == 1
    assert len(said) == 1
    assert "Fetching Kafka 4.3.1" in said[0]


def test_another_version_has_a_folder_of_its_own_and_is_a_broker_alone(maven: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"^Maven could not fetch Kafka 3\.9\.0: no network$"):
        (maven / "broken").touch()
        ensure_kafka_jars(cache=tmp_path / "cache", version="3.9.0")
    (maven / "broken").unlink()
    assert ensure_kafka_jars(cache=tmp_path / "cache", version="3.9.0") == tmp_path / "cache" / "kafka-3.9.0"
    assert "-Dkafka.version=3.9.0" in (maven / "words").read_text()
    pom = Path(jars.__file__).with_name("broker.pom.xml").read_text()
    assert "${kafka.version}" in pom
    assert "connect" not in pom
    assert "://" not in pom


def test_a_failed_fetch_leaves_nothing_and_the_next_one_mends_it(maven: Path, tmp_path: Path) -> None:
    (maven / "broken").touch()
    with pytest.raises(SetupError, match=r"^Maven could not fetch Kafka 4\.3\.1: no network$"):
        ensure_kafka_jars(cache=tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["kafka-4.3.1.lock"]
    (maven / "broken").unlink()
    assert ensure_kafka_jars(cache=tmp_path / "cache").is_dir()


def test_a_folder_without_the_marker_is_not_trusted(maven: Path, tmp_path: Path) -> None:
    half = tmp_path / "cache" / "kafka-4.3.1"
    half.mkdir(parents=True)
    (half / "old.jar").touch()
    fetched = ensure_kafka_jars(cache=tmp_path / "cache")
    assert not (fetched / "old.jar").exists()
    assert calls(maven) == 1


def test_callers_at_the_same_moment_fetch_once(maven: Path, tmp_path: Path) -> None:
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(ensure_kafka_jars(cache=tmp_path / "cache"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert calls(maven) == 1


def test_the_cache_is_outside_the_repository_unless_chosen() -> None:
    assert cache_directory({"HELIOGRAPH_CACHE": "/elsewhere"}) == Path("/elsewhere")
    assert cache_directory({}) == Path.home() / ".cache" / "heliograph"


def test_the_pom_travels_with_the_package_and_names_no_host() -> None:
    pom = Path(jars.__file__).with_name(f"kafka-{jars.KAFKA_VERSION}.pom.xml").read_text()
    assert "connect-mirror" in pom
    assert "://" not in pom

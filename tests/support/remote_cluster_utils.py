"""Java's RemoteClusterUtils.translateOffsets, called from Java: what an application that fails over gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.java import find_java

_PROGRAM = """
import java.time.Duration;
import java.util.Map;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class Translate {
    public static void main(String[] words) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", words[0]);
        for (int at = 2; at < words.length; at++) {
            String group = words[at];
            RemoteClusterUtils.translateOffsets(properties, words[1], group, Duration.ofSeconds(20))
                .forEach((where, found) -> System.out.println(
                    "ANSWER\\t" + group + "\\t" + where.topic() + "\\t" + where.partition() + "\\t" + found.offset()));
        }
    }
}
"""

Place = tuple[str, str, int]


def translate_offsets(directory: Path, bootstrap: str, source_alias: str, groups: list[str]) -> dict[Place, int]:
    """By group, topic and partition, the offsets on the cluster that is asked. Needs a JDK, as Maven does."""
    program = directory / "Translate.java"
    program.write_text(_PROGRAM)
    command = [str(find_java()), "-Xmx128m", "-cp", f"{ensure_kafka_jars()}/*", str(program), bootstrap, source_alias]
    done = subprocess.run([*command, *groups], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    answers = [line.split("\t")[1:] for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    return {(group, topic, int(partition)): int(offset) for group, topic, partition, offset in answers}

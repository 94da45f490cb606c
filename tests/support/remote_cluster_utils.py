"""Java's RemoteClusterUtils.translateOffsets, called from Java: what an application that fails over gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

from heliograph.embedded.jars import ensure_kafka_jars
from heliograph.embedded.java import find_java
from heliograph.embedded.settings import Jvm

_PROGRAM = """
import java.time.Duration;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class Translate {
    static final Duration PATIENCE = Duration.ofSeconds(30);

    public static void main(String[] words) throws Exception {
        Map<String, Object> cluster = Map.of("bootstrap.servers", words[0]);
        RemoteClusterUtils.translateOffsets(cluster, words[1], Pattern.compile(words[2]), PATIENCE)
            .forEach((group, offsets) -> print("MATCHED", group, offsets));
        for (int at = 3; at < words.length; at++) {
            print("ASKED", words[at], RemoteClusterUtils.translateOffsets(cluster, words[1], words[at], PATIENCE));
        }
    }

    static void print(String kind, String group, Map<TopicPartition, OffsetAndMetadata> offsets) {
        offsets.forEach((place, at) -> System.out.println(String.join("\\t",
            kind, group, place.topic(), "" + place.partition(), "" + at.offset(), at.metadata())));
    }
}
"""

Place = tuple[str, str, int]
Translation = dict[Place, tuple[int, str]]
"""By group, topic and partition: the offset on the cluster that is asked, and the metadata."""


def translate_offsets(
    directory: Path, bootstrap: str, source_alias: str, groups: list[str], matching: str = ""
) -> tuple[Translation, Translation]:
    """What is said of these groups one by one, and of all that the expression matches. Needs a JDK, as Maven does."""
    program = directory / "Translate.java"
    program.write_text(_PROGRAM)
    words = (bootstrap, source_alias, matching, *groups)
    command = Jvm(heap="128m").command(find_java(), ensure_kafka_jars(), str(program), *words)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.replace("\0", "").splitlines()]
    answers: dict[str, Translation] = {"ASKED": {}, "MATCHED": {}}
    for kind, group, topic, partition, offset, metadata in lines:
        answers[kind][group, topic, int(partition)] = int(offset), metadata
    return answers["ASKED"], answers["MATCHED"]

"""Text from figures: the table that `make bench` prints, and docs/benchmarks.md from what lies in build/.

    python -m tests.bench.report build > docs/benchmarks.md

Pure but for `main`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench.figures import HELIOGRAPH, MIRRORMAKER, SYSTEMS, aim_of, case_ratio, faults

Result = Mapping[str, Any]

NAMES = {HELIOGRAPH: "Heliograph", MIRRORMAKER: "MirrorMaker 2"}
LABELS = {
    "records_per_second": "records/s",
    "slowest_round": "records/s, slowest round",
    "fastest_round": "records/s, fastest round",
    "mb_per_second": "MB/s",
    "copy_cpu_us_per_record": "CPU-µs per record, copy",
    "total_cpu_us_per_record": "CPU-µs per record, total",
    "copy_cpu_ms_per_mb": "CPU-ms per MB, copy",
    "total_cpu_ms_per_mb": "CPU-ms per MB, total",
    "copy_cpu_seconds": "CPU seconds, copy",
    "total_cpu_seconds": "CPU seconds, total",
    "brokers_cpu_seconds": "CPU seconds of both brokers, copy",
    "p50_ms": "latency p50, ms",
    "p99_ms": "latency p99, ms",
    "p999_ms": "latency p99.9, ms",
    "max_ms": "latency max, ms",
    "cpu_percent": "CPU, % of one core",
    "start_seconds": "start to first record, s",
    "start_cpu_seconds": "CPU seconds until then",
    "peak_pss_mb": "peak memory (PSS), MB",
    "pss_mb": "memory (PSS), MB",
    "stop_seconds": "SIGTERM to end (killed at 30), s",
}

_ABOUT = """\
Heliograph and the real MirrorMaker 2, on the same brokers and data (`make bench`). A ratio is Heliograph's figure as a
multiple of MirrorMaker 2's.
"""
_HOW = """\
## How it is measured

- Two single-broker clusters and the mirror share this machine. Both mirrors get the same brokers (the JVM's own
  defaults) and the same data, one after the other; who goes first alternates from round to round. Between two runs every
  topic of the last one is deleted and its files are gone.
- The brokers are warmed up first, and each copy is rehearsed once with both mirrors: a JVM that still compiles takes a
  core away, and from the shorter of two copies the larger part.
- Copies and starts are measured three times, latency twice; the figures are medians.
- Heliograph runs with its default settings: `heliograph run FILE`. MirrorMaker 2 runs with 2 tasks, a heap of up to
  2 GB as its own start script has it, `batch.size` 262144, the data's `compression.type`, and `linger.ms` 20 (0 in the
  latency cases). Its file is an ordinary one: the way back is disabled and heartbeats are on, for which MirrorMaker 2
  keeps a worker for the way back too; that worker is in its start, CPU and memory.
- The target's end offsets are read every 50 ms. *Copy* is from the first record on the target to the last, *total* from
  the start of the process to the last record.
- CPU and memory are of all processes of the mirror: Heliograph's driver, Spark's JVM, the Python daemon and workers;
  MirrorMaker 2's JVM. Memory is the highest sum of their proportional set sizes, looked at every 0.5 s.
- MB are 1,000,000 bytes of keys and values before compression.
- Latency is from before a record is given to its producer until a consumer of the target has it, both other processes
  than the mirror. Measuring starts {lead:g} s after the first record on the target and takes {seconds:g} s, so both are
  warm{epoch}.
"""
_EPOCH_SECONDS = 45.0


def number(value: float | None) -> str:
    """Three digits that count.

    >>> number(929123.4), number(86.31), number(1.234), number(0.0456), number(None)
    ('929,123', '86.3', '1.23', '0.046', '–')
    """
    if value is None:
        return "–"
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or not size else 3
    return f"{value:,.{digits}f}"


def table(result: Result) -> str:
    """Every figure of both, their ratio, and the aim where there is one."""
    rows = [("case", "figure", *NAMES.values(), "ratio", "aim", "")]
    rows += [row for name, case in result["cases"].items() for row in _rows(name, case)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [_line(row, widths) for row in rows]
    rule = [("-" * width, "-" * (width - 1) + ":")[2 <= place <= 4] for place, width in enumerate(widths)]
    return "\n".join([lines[0], f"| {' | '.join(rule)} |", *lines[1:]])


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    cells = (
        cell.rjust(width) if 2 <= place <= 4 else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return f"| {' | '.join(cells)} |"


def _rows(name: str, case: Result) -> Iterator[tuple[str, ...]]:
    shown = name
    for figure, label in LABELS.items():
        ours, theirs = (case.get(system, {}).get(figure) for system in SYSTEMS)
        if ours is None and theirs is None:
            continue
        found = case_ratio(case, figure)
        aim = aim_of(name, figure)
        verdict = "" if aim is None or found is None else "met" if aim.is_met(found) else "**missed**"
        times = f"{number(found)}×" if found is not None else "–"
        yield shown, label, number(ours), number(theirs), times, str(aim or ""), verdict
        shown = ""


def troubles(result: Result) -> list[str]:
    """One sentence for each run that failed and each record that was lost or repeated."""
    return [
        f"{name}, {NAMES[system]}: {what}" for name, case in result["cases"].items() for system, what in faults(case)
    ]


def misses(result: Result) -> list[str]:
    return [
        f"{aim['case']}, {LABELS[aim['figure']]}: {number(aim['ratio'])}× of MirrorMaker 2's, the aim is {aim['aim']}"
        for aim in result["aims"]
        if aim["verdict"] == "missed"
    ]


def document(result: Result, others: Mapping[str, Result] | None = None) -> str:
    """docs/benchmarks.md; `others` is what the other programs of this folder measured, by their names."""
    parts = [
        "<!-- Generated by `python -m tests.bench.report build`. Do not edit. -->\n# Benchmarks",
        _ABOUT,
        *_warning(result),
        _where(result),
        table(result),
        "Cases:\n\n" + _bullets(f"`{name}`: {case['what']}" for name, case in result["cases"].items()),
        "## Aims\n\n" + _aims(result),
        *(["## What went wrong\n\n" + _bullets(troubles(result))] if troubles(result) else []),
        *(section((others or {})[name]) for name, section in _SECTIONS.items() if name in (others or {})),
        _how(result),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _warning(result: Result) -> list[str]:
    if result["scale"] >= 1:
        return []
    return [f"**Taken at scale {result['scale']:g}, to see that it runs: these figures say nothing about either.**"]


def _where(result: Result) -> str:
    machine, versions = result["machine"], result["versions"]
    changed = " with uncommitted changes" if result["changed"] else ""
    hardware = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GB"
    return _bullets(
        (
            f"machine: {hardware}; load before the start {machine['load']:.1f}",
            "versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()),
            f"commit: {result['commit']}{changed}",
            f"date: {result['date']}",
        )
    )


def _aims(result: Result) -> str:
    missed = misses(result)
    counted = [aim["verdict"] for aim in result["aims"]]
    said = (
        f"{counted.count('met')} met, {counted.count('missed')} missed, {counted.count('not measured')} not measured."
    )
    return said + ("\n\nMissed:\n\n" + _bullets(missed) if missed else "")


def _taken_at(result: Result) -> str:
    changed = " with uncommitted changes" if result["changed"] else ""
    return f"commit {result['commit']}{changed}, load before the start {result['machine']['load']:.1f}"


def _many_watchers(watched: Result) -> str:
    def rates(kind: str) -> str:
        return ", ".join(number(one["records_per_second"]) for one in watched[kind])

    wrong = sum(one["lost"] + one["repeated"] for kind in ("alone", "watched") for one in watched[kind])
    lines = [
        f"{_taken_at(watched)}; {number(watched['payload_mb'])} MB, 8 partitions, uncompressed, 256 KB batches",
        (
            f"{watched['slow']} slow clients (half a request; answers read 10 bytes a second) and {watched['streams']} open "
            "streams of the page, all in one process of the lowest priority on the same two cores"
        ),
        f"records/s alone: {rates('alone')}; watched: {rates('watched')}",
        f"the medians: {number(watched['ratio'])}× of the speed alone; {wrong} records lost or repeated",
    ]
    return "## Many who look (`python -m tests.bench.watched`)\n\n" + _bullets(lines)


def joins(joining: Result) -> str:
    """The section on topics that join a flow."""
    rows = joining["joins"]

    def each(name: str) -> str:
        return ", ".join(number(row[name]) for row in rows)

    lines = [
        f"{len(rows)} topics join one after the other, one lane with {joining['records_per_second']} records/s; {_taken_at(joining)}",
        f"longest gap at a consumer of the copy around each join, ms: {each('gap_ms')}",
        f"the same at a consumer of the source, ms: {each('source_gap_ms')}",
        f"and of the copy in as long a time without a join, ms: {each('usual_gap_ms')}",
        (
            f"from the new topic's records to all of them copied, with `refresh.topics.interval.seconds` = "
            f"{joining['interval_seconds']}, s: {each('copied_seconds')}"
        ),
    ]
    return "## Topics that join (`python -m tests.bench.joining`)\n\n" + _bullets(lines)


def _many_lanes(rest: Result) -> str:
    jobs, parts = rest["jobs"], rest["rest_cpu_percent_of"].items()
    late = [job["name"] for job in jobs if job["late"] or job["took_ms"] > job["interval_ms"]]
    lines = [
        (
            f"{rest['topics']:,} topics, {rest['lanes']:,} lanes, {rest['groups']:,} groups on one broker pair, {_taken_at(rest)}"
        ),
        (
            f"from the start of the process until every lane has copied its record: {number(rest['copied_seconds'])} s, "
            f"{number(rest['copied_cpu_seconds'])} CPU seconds"
        ),
        (
            f"at rest, over {number(rest['rest_seconds'])} s with all jobs and {rest['hand_overs']} hand-over of every lane: "
            f"{number(rest['rest_cpu_percent'])} % of one core (aim: below 10 %); "
            + ", ".join(f"{part} {number(share)} %" for part, share in parts)
        ),
        f"memory (PSS): {number(rest['rest_pss_mb'])} MB; {rest['following']:,} lanes follow",
        (
            "last turn of each job, of its interval: "
            + ", ".join(f"{job['name']} {job['took_ms']:,} of {job['interval_ms']:,} ms" for job in jobs)
        ),
        f"jobs that took longer than their interval while at rest: {', '.join(late) or 'none'}",
        *(f"{job['name']}: {job['trouble']}" for job in jobs if job["trouble"]),
    ]
    return "## Many lanes (`python -m tests.bench.rest`)\n\n" + _bullets(lines)


def _restarts(restart: Result) -> str:
    def figures(kind: str) -> str:
        pairs = zip(restart[kind]["seconds"], restart[kind]["loads"], strict=True)
        said = ", ".join(f"{number(seconds)} s (load {load:.1f})" for seconds, load in pairs)
        return f"median {number(restart[kind]['median'])} s: {said}"

    lines = [
        f"{_taken_at(restart)}; {restart['partitions']} partitions, guarded by the target, a record in each every 50 ms",
        f"nothing arrived for, Spark of this machine: {figures('local')}",
        f"nothing arrived for, a standalone master with two workers on this machine: {figures('standalone')}",
    ]
    return "## A driver killed and started again (`python -m tests.bench.restart`)\n\n" + _bullets(lines)


def _reattached(reattach: Result) -> str:
    def figures(side: str) -> str:
        found = reattach[side]
        asked = ", ".join(f"{count:,} {what}" for what, count in sorted(found["requests"].items()))
        return (
            f"{side} broker killed with -9: {number(found['seconds'])} s, {number(found['cpu_seconds'])} CPU seconds; "
            f"{found['generations']:,} generations opened; asked for: {asked}"
        )

    lines = [
        (
            f"{reattach['lanes']:,} compacted lanes in one slot, one broker a side, a record in each every second, "
            f"{_taken_at(reattach)}"
        ),
        "from when the broker answers again until every lane has copied a record that was written after that",
        figures("target"),
        figures("source"),
    ]
    return "## Many compacted lanes after a lost broker (`python -m tests.bench.reattach`)\n\n" + _bullets(lines)


def before_and_after(found: Result) -> str:
    """The section that holds this tree against an earlier one."""
    rows = []
    for name, case in found["cases"].items():
        for figure, label in _COMPARED.items():
            then, now = case["before"][figure], case["after"][figure]
            rows.append(f"| {name} | {label} | {number(then)} | {number(now)} | {number(now / then)}× |")
    head = "| case | figure | before | after | ratio |\n|---|---|---:|---:|---:|\n"
    lines = [
        f"before: commit {found['before']}; after: {_taken_at(found)}",
        "the same data on the same brokers, one after the other, who goes first alternates; medians of three rounds",
    ]
    title = "## Before and after (`python -m tests.bench.before TREE`)"
    return f"{title}\n\n{_bullets(lines)}\n\n{head}" + "\n".join(rows)


_COMPARED = {
    "records_per_second": "records/s",
    "copy_cpu_us_per_record": "CPU-µs per record, copy",
    "total_cpu_us_per_record": "CPU-µs per record, total",
    "start_seconds": "start to first record, s",
}

_SECTIONS = {
    "rest": _many_lanes,
    "watched": _many_watchers,
    "restart": _restarts,
    "reattach": _reattached,
    "joining": joins,
    "before": before_and_after,
}


def _how(result: Result) -> str:
    lead, seconds = result["latency_window"]
    inside = lead < _EPOCH_SECONDS < lead + seconds
    return _HOW.format(lead=lead, seconds=seconds, epoch=" and Heliograph changes its epoch within" if inside else "")


def _bullets(lines: Any) -> str:
    return "\n".join(f"- {line}" for line in lines)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not (Path(arguments[0]) / "bench.json").is_file():
        others = ", ".join(f"{name}.json" for name in _SECTIONS)
        sys.stderr.write(f"usage: python -m tests.bench.report FOLDER, where bench.json lies; {others}\n")
        return 2
    found = {name: Path(arguments[0]) / f"{name}.json" for name in ("bench", *_SECTIONS)}
    read = {name: json.loads(path.read_text()) for name, path in found.items() if path.is_file()}
    sys.stdout.write(document(read.pop("bench"), read))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

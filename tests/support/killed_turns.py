"""A turn of a flow's group jobs in a process of its own, which ends by SIGKILL at a chosen step: nothing is cleaned up after it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from heliograph.control.checkpoints import CheckpointJob
from heliograph.control.clock import Clock
from heliograph.control.group_offsets import GroupOffsetsJob
from heliograph.control.group_positions import GroupPositions
from heliograph.control.jobs import Job, JobRunner
from heliograph.control.planner import FlowPlan
from heliograph.kafka.consumer_groups import ConsumerGroups
from heliograph.kafka.slot import Warm
from heliograph.kafka.topic_writer import TopicWriter
from tests.integration.protocol.harness import Mirror, with_warm

_SECONDS = 180.0
_STEPS: Mapping[str, tuple[type, str]] = {"commit": (ConsumerGroups, "commit"), "append": (TopicWriter, "append")}


@dataclass(frozen=True)
class Kill:
    """`step` is `commit` (of a group) or `append` (of checkpoints); the process dies at its `turn`-th, before or after it is done."""

    step: str
    after: bool = False
    turn: int = 1


def killed_turn(mirror: Mirror, job: str, kill: Kill) -> None:
    """One turn of the job `group offsets` or `checkpoints`; returns when the process is dead."""
    what = (mirror.source, mirror.target, mirror.topic, dict(mirror.policies))
    process = multiprocessing.get_context("spawn").Process(target=_turn, args=(what, job, kill), daemon=True)
    process.start()
    process.join(_SECONDS)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    assert code == -signal.SIGKILL, f"the turn ended with {code} and was not killed"


def _turn(what: tuple[str, str, str, dict[str, str]], job: str, kill: Kill) -> None:
    source, target, name, policies = what
    mirror = Mirror(source, target, name)
    mirror.policies = policies
    planner = mirror.planner()
    plan = planner.discover()
    planner.close()

    async def once(warm: Warm) -> None:
        made = _job(job, plan, warm)
        owner, method = _STEPS[kill.step]
        setattr(owner, method, _dying(getattr(owner, method), kill))
        await JobRunner(plan.name, lambda: True, lambda _: None, Clock()).once(made)

    with_warm(once)


def _job(name: str, plan: FlowPlan, warm: Warm) -> Job[Any]:
    positions = GroupPositions(plan.settings, lambda: plan, warm, Clock())
    if name == "checkpoints":
        return CheckpointJob(plan.settings, positions, warm, Clock(), lambda _: None)
    return GroupOffsetsJob(plan.settings, positions, warm, Clock())


def _dying(step: Callable[..., Coroutine[Any, Any, Any]], kill: Kill) -> Callable[..., Coroutine[Any, Any, Any]]:
    turns = 0

    async def die(*arguments: Any) -> Any:
        nonlocal turns
        turns += 1
        if turns == kill.turn and not kill.after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await step(*arguments)
        if turns == kill.turn:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return die

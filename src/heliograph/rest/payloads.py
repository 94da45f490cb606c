"""What requests carry: every field with its type, and none besides."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

_REASON = Field(default="", max_length=500, description="Why: kept and shown wherever the change is.")


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    dry_run: bool = Field(default=False, description="Check it and change nothing.")


class Subject(_Body):
    """A flow, one of its topics, or one partition of a topic."""

    topic: str = Field(default="", max_length=249, description="A source topic; empty: the whole flow.")
    partition: int = Field(default=-1, ge=-1, description="One partition of the topic; -1: all.")
    reason: str = _REASON


class Throttle(_Body):
    bytes_per_second: int = Field(ge=0, description="0: no limit.")
    topic: str = Field(default="", max_length=249, description="A source topic; empty: the whole flow.")
    reason: str = _REASON


class NewTopic(_Body):
    topic: str = Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")
    reason: str = _REASON

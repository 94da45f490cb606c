"""Policies of a flow: what is to be done when the world is not as the copy needs it. One field per option `on.*`.

Only the choices. What follows from them is decided in `replication.policies`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policies:
    """The defaults are those of the option table."""

    source_reset: str = "fail"
    """`fail` or `restart`"""
    data_loss: str = "continue"
    """`continue` or `fail`"""
    target_loss: str = "recopy"
    """`recopy` or `fail`"""
    foreign_writer: str = "continue"
    """`continue` or `fail`"""
    bad_record: str = "park"
    """`park`, `skip` or `dead-letter`"""

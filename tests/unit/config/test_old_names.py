from __future__ import annotations

import pytest

from heliograph.config.load import load
from heliograph.config.old_names import OLD
from heliograph.config.options import BY_NAME

BASE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


def test_old_names_mean_the_new_ones_and_say_so() -> None:
    text = BASE + "A->B.topics.whitelist = orders\ntopics.blacklist = x\nrefresh.topics.enable = false\n"
    settings = load(text, "mm2.properties")
    assert settings.warnings == (
        "mm2.properties:5: A->B.topics.whitelist is an old name: write A->B.topics",
        "mm2.properties:6: topics.blacklist is an old name: write topics.exclude",
        "mm2.properties:7: refresh.topics.enable is an old name: write refresh.topics.enabled",
    )
    (flow,) = settings.flows
    assert (flow.topics, flow.topics_exclude, flow.refresh_topics_enabled) == (("orders",), ("x",), False)


def test_where_both_are_set_the_new_name_counts() -> None:
    settings = load(BASE + "topics.whitelist = old\ntopics = new\n", "mm2.properties")
    assert settings.flows[0].topics == ("new",)
    assert settings.warnings == ("mm2.properties:5: topics.whitelist has no effect: topics is set in line 6",)


@pytest.mark.parametrize(("old", "new"), OLD.items())
def test_every_old_name_has_a_row_and_a_new_one_that_exists(old: str, new: str) -> None:
    assert new in BY_NAME and new not in OLD
    assert BY_NAME[old].doc == f"Old name of {new}: understood, with a warning."

"""Classes of a user's own: named in the file, made with the flow's options, used in place of the built-in ones, refused in a sentence."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.config.flows import FlowSettings
from heliograph.config.load import load
from heliograph.errors import ConfigError, SetupError
from heliograph.replication.topic_names import Reason, should_replicate

BASE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
MODULE = """
class Names:
    def __init__(self, options):
        self.mark = options.get("plugin.mark", "x") + options["source.cluster.alias"]

    def format_remote_topic(self, source_alias, topic):
        if topic == "two": return self.mark + "-one"
        return self.mark + "-" + topic

    def topic_source(self, topic):
        return "A" if topic.startswith(self.mark) else None

    def upstream_topic(self, topic):
        return topic.removeprefix(self.mark + "-") if topic.startswith(self.mark) else None


class Filters:
    def __init__(self, options):
        self.end = options["topics"]

    def should_replicate_topic(self, topic):
        if topic == "bad":
            raise KeyError("bad")
        return topic.endswith(self.end)

    def should_replicate_group(self, group):
        return group == "mine"

    def should_replicate_config_property(self, name):
        return name.startswith("retention")


class Broken:
    def __init__(self, options):
        raise OSError("no list")


def plain():
    pass
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "my_mirror.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("my_mirror", None)


def flow(*lines: str) -> FlowSettings:
    settings = load(BASE + "\n".join(lines), "mm2.properties")
    assert settings.warnings == ()
    return settings.flows[0]


def test_a_policy_of_ones_own_names_topics_and_gets_the_flows_options() -> None:
    settings = flow("replication.policy.class = my_mirror:Names", "plugin.mark = m", "A->B.plugin.mark = n")
    assert settings.remote_name("orders") == "nA-orders"
    assert settings.naming.topic_source("nA-orders") == "A"
    assert settings.naming.is_checkpoints("A.checkpoints.internal")
    assert settings.refusal("orders") == ""
    assert settings.refusal("two") == (
        "its remote name 'nA-one' leads back to 'one' (replication.policy.class = my_mirror:Names)"
    )


def test_filters_of_ones_own_choose_topics_groups_and_configs() -> None:
    name = "my_mirror:Filters"
    settings = flow(
        *(f"{option}.filter.class = {name}" for option in ("topic", "group", "config.property")), "topics = s"
    )
    assert [settings.topic_names.accepts(topic) for topic in ("orders", "click")] == [True, False]
    decided = should_replicate("click", settings.topic_names, settings.naming, "B", True)
    assert (decided.replicate, decided.reason) == (False, Reason.EXCLUDED)
    assert [settings.leaves_out_config(config) for config in ("retention.ms", "cleanup.policy")] == [False, True]
    assert [settings.group_names.accepts(group) for group in ("mine", "yours")] == [True, False]


def test_without_a_class_of_ones_own_the_lists_decide() -> None:
    settings = flow("topics = orders", "config.properties.exclude = retention.*")
    assert settings.plugins.classes == settings.plugins.options == ()
    assert settings.topic_names.accepts("orders") and not settings.topic_names.accepts("clicks")
    assert settings.leaves_out_config("retention.ms") and not settings.leaves_out_config("cleanup.policy")


def test_what_a_class_raises_names_it_and_its_question() -> None:
    settings = flow("topic.filter.class = my_mirror:Filters", "topics = s")
    with pytest.raises(SetupError, match=r"topic.filter.class = my_mirror:Filters failed for bad: KeyError: 'bad'"):
        settings.topic_names.accepts("bad")


def test_the_classes_of_the_page_work(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "plugins.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my_mirror.py").write_text(example)
    settings = flow(
        "topic.filter.class = my_mirror:MyFilter", "replication.policy.class = my_mirror:MyPolicy", "plugin.team = web"
    )
    assert settings.remote_name("web.clicks") == "web.clicks-of-A"
    assert settings.refusal("web.clicks") == ""
    assert settings.naming.is_cycle("x-of-B", "B") and not settings.naming.is_cycle("x", "B")
    assert settings.topic_names.accepts("web.clicks") and not settings.topic_names.accepts("sales.orders")


@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("topic.filter.class", "no_such_module:Filter", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("topic.filter.class", "my_mirror:Nothing", "has no attribute 'Nothing'"),
        ("topic.filter.class", "my_mirror:Broken", "OSError: no list"),
        ("topic.filter.class", "my_mirror:plain", "TypeError: plain() takes 0 positional arguments"),
        ("topic.filter.class", "my_mirror:Names", "expected a class with the method should_replicate_topic"),
        ("replication.policy.class", "my_mirror:Filters", "the method format_remote_topic and topic_source and up"),
        ("replication.policy.class", "com.example.Policy", "or a class in Python as module:Class"),
        ("group.filter.class", "my mirror:Groups", "DefaultGroupFilter, or a class in Python"),
    ],
)
def test_a_class_that_cannot_be_used_is_refused_in_a_sentence(option: str, name: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(BASE + f"{option} = {name}", "mm2.properties")
    (fault,) = caught.value.faults
    named = f"{option} = {name}: expected "
    assert fault.startswith((f"mm2.properties:5: {named}", f"mm2.properties: {named}"))
    assert why in fault

"""Planning topics, for any two clusters."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from heliograph.model.topics import ConfigValue, Topic
from heliograph.replication.topic_plan import AddPartitions, CreateTopic, TopicRules, Unnameable, plan_topics

RULES = TopicRules(replication_factor=1, config_exclude=lambda name: name.startswith("x"))
NAMES = st.text("ab._-é", min_size=1, max_size=4)
SOURCES = st.sampled_from(["DYNAMIC_TOPIC_CONFIG", "DEFAULT_CONFIG", "STATIC_BROKER_CONFIG"])
CONFIGS = st.dictionaries(
    st.sampled_from(["a", "b", "x.a", "x.b"]),
    st.builds(ConfigValue, st.none() | st.text("01"), SOURCES, st.booleans(), st.booleans()),
)
CLUSTERS = st.dictionaries(NAMES, st.tuples(st.integers(1, 9), CONFIGS), max_size=6).map(
    lambda found: {name: Topic(name, f"id-{name}", count, configs) for name, (count, configs) in found.items()}
)
NAMINGS: st.SearchStrategy[Callable[[str], str]] = st.sampled_from(
    [lambda name: name, lambda name: f"A.{name}", lambda name: name[:1], lambda name: name * 100]
)


def apply(target: dict[str, Topic], actions: list[CreateTopic | AddPartitions | Unnameable]) -> dict[str, Topic]:
    after = dict(target)
    for action in actions:
        if isinstance(action, CreateTopic):
            assert action.name not in after
            configs = {name: ConfigValue(value) for name, value in action.configs.items()}
            after[action.name] = Topic(action.name, f"new-{action.name}", action.partitions, configs)
        elif isinstance(action, AddPartitions):
            found = after[action.name]
            assert found.partitions == action.have < action.want
            after[action.name] = Topic(found.name, found.topic_id, action.want, found.configs)
    return after


@given(CLUSTERS, CLUSTERS, NAMINGS)
def test_planning_again_after_applying_leaves_nothing_to_apply(
    source: dict[str, Topic], target: dict[str, Topic], naming: Callable[[str], str]
) -> None:
    actions = plan_topics(source, target, naming, RULES)
    after = apply(target, actions)
    again = plan_topics(source, after, naming, RULES)
    assert again == [action for action in actions if isinstance(action, Unnameable)]


@given(CLUSTERS, CLUSTERS, NAMINGS)
def test_after_applying_every_source_partition_has_a_place_or_its_topic_a_reason(
    source: dict[str, Topic], target: dict[str, Topic], naming: Callable[[str], str]
) -> None:
    actions = plan_topics(source, target, naming, RULES)
    after = apply(target, actions)
    unnameable = {action.topic for action in actions if isinstance(action, Unnameable)}
    for name, topic in source.items():
        assert name in unnameable or after[naming(name)].partitions >= topic.partitions


@given(CLUSTERS, CLUSTERS, NAMINGS)
def test_what_the_target_had_is_never_made_smaller(
    source: dict[str, Topic], target: dict[str, Topic], naming: Callable[[str], str]
) -> None:
    after = apply(target, plan_topics(source, target, naming, RULES))
    assert all(after[name].partitions >= topic.partitions for name, topic in target.items())

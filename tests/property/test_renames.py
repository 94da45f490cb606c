"""Rules that are accepted lead back from every name that they give; two topics never get one name from one rule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.replication.renames import Renames, Rewrite, parse_rewrite

names = st.text("ab1._-", min_size=1, max_size=12)
groups = st.sampled_from(["(.*)", "(.+)", "([^.]*)", "([a-z]+)", r"(\d*)", "(a|b.*)", "(?:x)"])
texts = st.sampled_from(["", "a", r"\.", "-", "1", "."])


@st.composite
def rewrites(draw: st.DrawFn) -> Rewrite | None:
    """Random rules of up to three groups; None for those that are refused."""
    count = draw(st.integers(1, 3))
    pattern = "".join(draw(texts) + draw(groups) for _ in range(count)) + draw(texts)
    order = draw(st.permutations(range(1, count + 1)))
    name = "".join(draw(texts).replace("\\", "") + f"${number}" for number in order) + draw(texts).replace("\\", "")
    try:
        return parse_rewrite(f"{pattern} -> {name}")
    except ValueError:
        return None


@given(rewrites(), st.lists(names, min_size=1, max_size=30, unique=True))
def test_an_accepted_rule_is_reversible(rewrite: Rewrite | None, topics: list[str]) -> None:
    if rewrite is None:
        return
    rules = Renames(rewrite=rewrite)
    given_names = {}
    for topic in topics:
        remote = rules.forward(topic)
        if remote:
            assert rules.back(remote) == topic
            assert given_names.setdefault(remote, topic) == topic

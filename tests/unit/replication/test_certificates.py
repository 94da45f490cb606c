"""Certificates that end: who hears of them, when, and what they are told to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from heliograph.model.events import Event, EventKind
from heliograph.replication.certificates import NOTICE, Certificate, merged, news, pause, with_renewals

ENDS = datetime(2026, 12, 16, 2, 30, 57, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
OURS = Certificate("A", "mirror", ENDS, "ssl.keystore.location")
THEIRS = Certificate("A", "broker", ENDS, brokers=("h1:9093",))


def said(certificate: Certificate, now: datetime) -> Event:
    (event,), _ = news({certificate: ["A->B"]}, now, {})
    return event


def test_a_certificate_is_news_from_a_week_before_its_end() -> None:
    assert news({OURS: ["A->B"]}, ENDS - NOTICE - SECOND, {}) == ([], {})
    event = said(OURS, ENDS - NOTICE)
    assert event == Event(
        int((ENDS - NOTICE).timestamp() * 1000),
        "A->B",
        "cluster A",
        EventKind.CERTIFICATE,
        "our certificate in ssl.keystore.location, issued to mirror, expires on 2026-12-16 02:30 UTC",
        "put a new one there and start the run again before then",
    )


def test_one_that_has_ended_is_news_again_and_says_what_still_works() -> None:
    _, told = news({OURS: ["A->B"]}, ENDS - HOUR, {})
    (event,), told = news({OURS: ["A->B"]}, ENDS, told)
    assert event.reason.endswith(
        "expired on 2026-12-16 02:30 UTC: connections that are open go on, new ones are refused"
    )
    assert event.what_to_do == "put a new one there and start the run again"
    assert news({OURS: ["A->B"]}, ENDS + HOUR, told)[0] == []


def test_it_is_told_once_a_day_also_if_it_was_out_of_sight_in_between() -> None:
    at = ENDS - 3 * DAY
    events, told = news({THEIRS: ["A->B", "A->C"]}, at, {})
    assert [event.flow for event in events] == ["A->B", "A->C"]
    assert news({THEIRS: ["A->B"]}, at + DAY - SECOND, told)[0] == []
    nothing, told = news({}, at + HOUR, told)
    assert nothing == []
    assert news({THEIRS: ["A->B"]}, at + 2 * HOUR, told)[0] == []
    events, told = news({THEIRS: ["A->B"]}, at + DAY, told)
    assert len(events) == 1
    assert list(told.values()) == [at + DAY]


def test_another_certificate_in_the_same_place_is_news_of_its_own() -> None:
    _, told = news({OURS: ["A->B"]}, ENDS - DAY, {})
    next_one = Certificate("A", "mirror", ENDS + DAY, "ssl.keystore.location")
    assert len(news({next_one: ["A->B"]}, ENDS - DAY, told)[0]) == 1


def test_brokers_that_show_the_same_certificate_are_named_together() -> None:
    other = Certificate("A", "other", ENDS, brokers=("h3:9093",))
    first, second = merged([THEIRS, Certificate("A", "broker", ENDS, brokers=("h2:9093",)), other])
    assert (first.brokers, second.brokers) == (("h1:9093", "h2:9093"), ("h3:9093",))
    event = said(first, ENDS - DAY)
    assert event.reason.startswith("the certificate of brokers h1:9093, h2:9093, issued to broker, expires on")
    assert event.what_to_do == "give the brokers a new one before then"
    assert said(second, ENDS).what_to_do == "give the broker a new one"


def test_a_renewed_file_only_wants_a_new_start() -> None:
    renewed = Certificate("A", "mirror 2", ENDS + 300 * DAY, "ssl.keystore.location")
    elsewhere = Certificate("B", "mirror", ENDS + 300 * DAY, "ssl.keystore.location")
    (found,) = with_renewals([OURS], [renewed])
    assert found == OURS, "it is told no sooner for that"
    advice = "the file has a new one, until 2027-10-12 02:30 UTC: start the run again before then to use it"
    assert said(found, ENDS - DAY).what_to_do == advice
    assert said(found, ENDS).what_to_do == advice.replace(" before then", "")
    assert [one.renewed for one in with_renewals([OURS, THEIRS], [OURS, elsewhere])] == [None, None]


def test_the_next_look_is_in_an_hour_or_when_there_will_be_news() -> None:
    assert pause([], ENDS) == HOUR
    assert pause([OURS], ENDS) == HOUR
    assert pause([OURS], ENDS - DAY) == HOUR
    assert pause([OURS, THEIRS], ENDS - 20 * SECOND) == 20 * SECOND
    assert pause([OURS], ENDS - NOTICE - 30 * SECOND) == 30 * SECOND
    assert pause([OURS], ENDS - SECOND / 4) == SECOND, "no look follows on the last without a breath"

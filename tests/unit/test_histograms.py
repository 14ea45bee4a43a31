"""Our histograms say what Prometheus' own say."""

from __future__ import annotations

import re

import prometheus_client
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from retrieval.api.histograms import Histogram

BUCKETS = (0.001, 0.25, 1.0, 30.0)

_values = st.floats(0, 100) | st.sampled_from([0.0, *BUCKETS, 1e9])
_labels = st.sampled_from([("POST", "200"), ("GET", "404"), ('a"b\\', "\n")])


@given(st.lists(st.tuples(_labels, _values)))
def test_they_say_what_prometheus_own_say(observed: list[tuple[tuple[str, str], float]]) -> None:
    """But for the moment at which each began."""
    ours, theirs = CollectorRegistry(auto_describe=True), CollectorRegistry(auto_describe=True)
    histogram = Histogram("h_seconds", "What it says.", ["method", "status"], buckets=BUCKETS)
    ours.register(histogram)
    reference = prometheus_client.Histogram(
        "h_seconds", "What it says.", ["method", "status"], buckets=BUCKETS, registry=theirs
    )
    for labels, value in observed:
        histogram.observe(labels, value)
        reference.labels(*labels).observe(value)
    assert _told(ours) == _told(theirs)


def _told(registry: CollectorRegistry) -> list[str]:
    return re.sub(r"(_created\{.*\}) \S+", r"\1", generate_latest(registry).decode()).splitlines()

"""Requests to the admin endpoint of a server, and what it says in the format of OpenMetrics."""

from __future__ import annotations

import contextlib
import http.client

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from servers import Server
from tested import Start

# A sample's name and its labels.
Series = tuple[str, frozenset[tuple[str, str]]]


def begin(start: Start, admin: int, *options: str) -> Server:
    """A server with its admin endpoint on this port."""
    return start("--admin-address", f"127.0.0.1:{admin}", *options)


def request(admin: int, method: str, path: str, authorization: str | None = None) -> tuple[int, str]:
    """Status and text of the answer to a request, which has this header if it is given."""
    status, _, text = answer(admin, method, path, authorization)
    return status, text


def answer(
    admin: int, method: str, path: str, authorization: str | None = None
) -> tuple[int, http.client.HTTPMessage, str]:
    """Status, headers and text of the answer to a request."""
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, headers={} if authorization is None else {"Authorization": authorization})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()


def parse(text: str) -> list[Metric]:
    # The library says of nothing but this function what types it has.
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def sample_names(admin: int) -> set[str]:
    """The names of all samples that there can be, whether there are any at this moment or not."""
    suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
    _, text = request(admin, "GET", "/metrics")
    return {family.name + suffix for family in parse(text) for suffix in suffixes[family.type]}


def scrape(admin: int) -> dict[Series, float]:
    status, text = request(admin, "GET", "/metrics")
    assert status == 200
    found: dict[Series, float] = {}
    for family in parse(text):
        for sample in family.samples:
            series = (sample.name, frozenset(sample.labels.items()))
            assert series not in found
            found[series] = sample.value
    return found


def value(found: dict[Series, float], name: str, **labels: str) -> float:
    return found[(f"snugly_{name}", frozenset(labels.items()))]

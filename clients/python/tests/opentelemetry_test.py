"""Metrics as the SDK of OpenTelemetry collects them."""

from __future__ import annotations

from typing import Any

import opentelemetry.metrics as api
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import snugly
from snugly import opentelemetry

VALUE = b"<p>hello</p>" * 500


def collected(reader: InMemoryMetricReader) -> dict[str, Any]:
    """The metrics by name."""
    data: Any = reader.get_metrics_data()
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "snugly"
    return {metric.name: metric for metric in scope.metrics}


def test_what_codecs_count_is_collected() -> None:
    reader = InMemoryMetricReader()
    opentelemetry.instrument(MeterProvider([reader]))
    before = snugly.statistics()
    tool = snugly.codec.Codec()
    tool.decode(tool.encode(VALUE))
    tool.encode(b"short")
    metrics, counted = collected(reader), snugly.statistics()
    found = {}
    for name, metric in metrics.items():
        assert metric.data.is_monotonic
        for point in metric.data.data_points:
            codec = point.attributes.get("codec")
            found[name.removeprefix("snugly.") + (f"_{codec}" if codec else "")] = point.value
    assert found == counted
    for name, more in {
        "encoded_values_zstd": 1,
        "encoded_bytes_in_zstd": len(VALUE),
        "decoded_values_zstd": 1,
        "skipped_small": 1,
    }.items():
        assert found[name] == before[name] + more


def test_metrics_say_what_they_count_and_in_what() -> None:
    reader = InMemoryMetricReader()
    opentelemetry.instrument(MeterProvider([reader]))
    metrics = collected(reader)
    assert metrics["snugly.encoded_bytes_in"].description == "bytes of these values before encoding"
    units = {
        name: metrics[f"snugly.{name}"].unit for name in ("encoded_values", "decoded_bytes_out", "encode_nanoseconds")
    }
    assert units == {"encoded_values": "{value}", "decoded_bytes_out": "By", "encode_nanoseconds": "ns"}


def test_the_global_provider_is_used_where_none_is_given() -> None:
    opentelemetry.instrument()
    reader = InMemoryMetricReader()
    api.set_meter_provider(MeterProvider([reader]))
    assert "snugly.encoded_values" in collected(reader)

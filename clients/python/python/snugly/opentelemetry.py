"""OpenTelemetry metrics: what codecs have counted, for whichever meter provider the application has set up.

    from snugly import opentelemetry

    opentelemetry.instrument()

It needs the package `opentelemetry-api`, and nothing else of snugly does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from itertools import groupby

from opentelemetry import metrics

from snugly import _native

UNITS = {"_bytes_": "By", "_nanoseconds": "ns"}
"""By a part of the counter's name; the others count values."""
VALUES = "{value}"


def instrument(meter_provider: metrics.MeterProvider | None = None) -> None:
    """Registers the counters of the process, read whenever metrics are collected: to be called once for a provider.

    Each is an observable counter called as `snugly.statistics()` calls it, with "snugly." in front, but the codec in
    the name is an attribute, `codec`: `snugly.encoded_values` with `codec` "zstd". Units are By, ns and {value}.

    `meter_provider` is the global one by default, which may be set later.
    """
    meter = metrics.get_meter("snugly", version("snugly"), meter_provider)
    for (family, meaning), rows in groupby(_native.counters(), key=lambda row: (row[1], row[3])):
        attributes = {name: {"codec": codec} if codec else {} for name, _, codec, _ in rows}
        meter.create_observable_counter(
            f"snugly.{family}", [partial(observed, attributes)], unit=unit_of(family), description=meaning
        )


def observed(attributes: dict[str, dict[str, str]], _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
    """Returns the values of the counters of these names, each with its attributes."""
    counted = _native.process_statistics()
    for name, own in attributes.items():
        yield metrics.Observation(counted[name], own)


def unit_of(family: str) -> str:
    return next((unit for part, unit in UNITS.items() if part in family), VALUES)

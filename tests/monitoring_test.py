"""What is shipped for Prometheus and Grafana: it asks for metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import servers
from admin import begin, sample_names
from tested import Start

pytestmark = pytest.mark.snugly_only

PACKAGING = servers.ROOT / "packaging"
DASHBOARD = PACKAGING / "grafana" / "snugly.json"
ALERTS = PACKAGING / "prometheus" / "alerts.yml"
REFERENCE = servers.ROOT / "docs" / "reference.md"


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def of_dashboard() -> Iterator[str]:
    for panel in board()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))


def of_alerts() -> list[str]:
    return re.findall(r"^ +expr: (.+)$", ALERTS.read_text(), re.MULTILINE)


def of_guide() -> list[str]:
    guide = (servers.ROOT / "docs" / "how-to.md").read_text()
    return re.findall(
        r"^\| .+\? \| `(.+?)`", guide.split("## Watch it with Prometheus")[1].split("\n## ")[0], re.MULTILINE
    )


@pytest.mark.parametrize("expressions", [of_dashboard, of_alerts, of_guide], ids=["dashboard", "alerts", "guide"])
def test_every_metric_exists(start: Start, admin: int, expressions: Any) -> None:
    begin(start, admin)
    used = {name for expression in expressions() for name in re.findall(r"\bsnugly_\w+", expression)}
    assert len(used) > 5
    assert used <= sample_names(admin)


def documented_labels() -> set[str]:
    section = REFERENCE.read_text().split("\n## Metrics\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `snugly_\w+` \| \w+ \| (.*?)\|", section, re.MULTILINE)
    return {label for row in rows for label in re.findall(r"`(\w+)`", row)}


def test_every_label_exists() -> None:
    # Those that Prometheus adds, and the bounds of histograms.
    known = documented_labels() | {"instance", "job", "le"}
    for expression in [*of_dashboard(), *of_alerts()]:
        labels = re.findall(r"[{,] ?(\w+)=", expression)
        grouped = re.findall(r"(?:by|on|without) ?\(([\w, ]+)\)", expression)
        labels += [label.strip() for group in grouped for label in group.split(",")]
        assert set(labels) <= known, expression
    legends = (target["legendFormat"] for panel in board()["panels"] for target in panel.get("targets", []))
    assert {label for legend in legends for label in re.findall(r"{{(\w+)}}", legend)} <= known


def test_the_dashboard_asks_for_its_data_source_when_it_is_imported() -> None:
    found = board()
    assert [one["name"] for one in found["__inputs"]] == ["DS_PROMETHEUS"]
    source = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
    panels = [panel for panel in found["panels"] if panel["type"] != "row"]
    for panel in panels:
        assert panel["title"]
        for target in panel["targets"]:
            assert target["datasource"] == source
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in found["panels"]]
    assert len(set(places)) == len(places)


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    alerts = ALERTS.read_text().split("- alert: ")[1:]
    assert len(alerts) > 10
    for alert in alerts:
        assert re.search(r"severity: (critical|warning|info) ", alert)
        assert "summary:" in alert
        assert "description:" in alert

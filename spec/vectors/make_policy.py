"""Writes policy.json: what the reference of spec/tests decides about values, one after the other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from policy import Policy, spread_of  # noqa: E402
from rules import expand  # noqa: E402

JSON = '{"id": #, "name": "user-#", "tags": ["cache", "json"]},'
LETTERS = {"text": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"}
VALUES: dict[str, dict[str, Any]] = {
    "noise of 100 bytes": {"noise": 1, "size": 100},
    "noise of 1,000 bytes": {"noise": 2, "size": 1000},
    "noise of 2,000 bytes": {"noise": 3, "size": 2000},
    "noise of 20,000 bytes": {"noise": 4, "size": 20000},
    "JSON of 300 bytes": {"count": JSON, "size": 300},
    "JSON of 5,000 bytes": {"count": JSON, "size": 5000},
    "JSON of 40,000 bytes": {"count": JSON, "size": 40000},
    "64 letters in turn": {"repeat": LETTERS, "size": 1000},
    "a byte": {"text": "a"},
    "gzip": {"join": [{"hex": "1f8b08"}, {"noise": 5, "size": 900}]},
    "text that starts as gzip does": {"join": [{"hex": "1f8b08"}, {"count": JSON, "size": 900}]},
    "WebP": {"join": [{"text": "RIFF"}, {"hex": "00010000"}, {"text": "WEBP"}, {"noise": 6, "size": 400}]},
    "MP4": {"join": [{"hex": "00000018"}, {"text": "ftypmp42"}, {"noise": 7, "size": 400}]},
}
# Of each transcript: its name, whether there is a dictionary, and which values come how often, and whether they shrink.
TRANSCRIPTS: list[tuple[str, bool, list[tuple[str, int, bool]]]] = [
    ("values that shrink are never looked at", False, [("noise of 1,000 bytes", 20, True)]),
    (
        "random values are tried ever more rarely, at first with a fast level, and never stop",
        False,
        [("noise of 1,000 bytes", 700, False), ("noise of 1,000 bytes", 300, True)],
    ),
    ("the same with a dictionary", True, [("noise of 1,000 bytes", 100, False)]),
    (
        "the first failures of mixed values are taken for chance",
        False,
        [("64 letters in turn", 300, False), ("64 letters in turn", 80, True)],
    ),
    ("as are those of text", False, [("JSON of 300 bytes", 100, False), ("JSON of 300 bytes", 40, True)]),
    (
        "a failure says nothing of other lengths, and of values that look otherwise",
        False,
        [
            ("noise of 1,000 bytes", 6, False),
            ("noise of 2,000 bytes", 1, True),
            ("64 letters in turn", 2, True),
            ("noise of 1,000 bytes", 3, False),
        ],
    ),
    (
        "suspicion ends after enough successes",
        False,
        [("noise of 100 bytes", 1, False), ("JSON of 300 bytes", 1, True), ("noise of 100 bytes", 12, True)],
    ),
    (
        "long values are always looked at",
        False,
        [("noise of 20,000 bytes", 8, False), ("JSON of 40,000 bytes", 3, True)],
    ),
    (
        "formats that are compressed are left alone, text that starts like one is not",
        False,
        [("gzip", 3, False), ("WebP", 2, False), ("MP4", 2, False), ("text that starts as gzip does", 3, True)],
    ),
]


def verdicts(with_dictionary: bool, steps: list[tuple[str, int, bool]]) -> list[dict[str, Any]]:
    """The decisions about the values of a transcript; those that are alike stand together."""
    policy = Policy()
    rows: list[dict[str, Any]] = []
    for name, times, gained in steps:
        for _ in range(times):
            verdict = policy.consider(expand(VALUES[name]), with_dictionary)
            is_tried = verdict in ("try", "doubtful")
            if is_tried:
                policy.report(gained)
            row = {"value": name, "verdict": verdict} | ({"gained": gained} if is_tried else {})
            if rows and {**rows[-1], "times": 0} == row | {"times": 0}:
                rows[-1]["times"] += 1
            else:
                rows.append(row | {"times": 1})
    return rows


def document() -> dict[str, Any]:
    return {
        "values": VALUES,
        "spreads": {name: spread_of(expand(rule)) for name, rule in VALUES.items()},
        "transcripts": [
            {"name": name, "dictionary": with_dictionary, "steps": verdicts(with_dictionary, steps)}
            for name, with_dictionary, steps in TRANSCRIPTS
        ],
    }


if __name__ == "__main__":
    (HERE / "policy.json").write_text(json.dumps(document(), indent=1, ensure_ascii=False) + "\n")

"""Arguments of the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snugly_bench.clients.command import backends, corpora, parse_arguments
from snugly_bench.clients.peers import has_dictionaries
from snugly_bench.clients.plan import BACKENDS, LEARNED


def test_with_a_dictionary_only_those_values_are_measured_that_nobody_learned_from(tmp_path: Path) -> None:
    path = tmp_path / "values.jsonl"
    path.write_text("".join(json.dumps({"number": number % 90}) + "\n" for number in range(100)))
    (plain,) = corpora(parse_arguments(["--data-file", str(path)]), 1000)
    assert (len(plain.values), plain.training) == (100, ())
    (divided,) = corpora(parse_arguments(["--data-file", str(path), "--dictionary"]), 1000)
    assert divided.training
    assert not set(divided.training) & set(divided.values)
    assert set(divided.training) | set(divided.values) == set(plain.values)


def test_a_dictionary_is_measured_where_asked_for_and_there_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert backends(parse_arguments([])) == BACKENDS
    found = backends(parse_arguments(["--dictionary"]))
    assert found == ((*BACKENDS, *LEARNED) if has_dictionaries() else BACKENDS)
    assert ("Without dictionaries" in capsys.readouterr().err) is not has_dictionaries()

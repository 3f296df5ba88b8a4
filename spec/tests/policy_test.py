"""The vectors of the policy are what its reference decides."""

from __future__ import annotations

import json

import make_policy


def test_the_vectors_of_the_policy_are_those_of_the_reference() -> None:
    written = json.loads((make_policy.HERE / "policy.json").read_text())
    assert written == json.loads(json.dumps(make_policy.document()))

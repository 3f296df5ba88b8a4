"""Accepted configurations, and the errors of others."""

from __future__ import annotations

import json
from typing import Any

import pytest

import servers
import snugly
from published import STORED, USERS, user
from snugly import CompressionBackend, CompressionConfiguration, ConfigurationError, _native

WRONG = [
    ({"backend": "brotli"}, "backend is 'brotli': choose 'zstd', 'lz4', 'auto', 'none'"),
    ({"backend": None}, "backend is None: choose 'zstd', 'lz4', 'auto', 'none'"),
    ({"compression_level": 23}, "compression_level is 23: for zstd it is a number from -131072 to 22"),
    ({"compression_level": -131073}, "compression_level is -131073: for zstd it is a number from -131072 to 22"),
    ({"backend": "lz4", "compression_level": 13}, "compression_level is 13: for lz4 it is a number from -128 to 12"),
    ({"backend": "auto", "compression_level": 1}, "compression_level goes with a backend, and 'auto' chooses both"),
    ({"goal": "small"}, "goal is 'small': choose 'memory', 'balanced', 'speed'"),
    ({"dictionary_exclude": "session:*"}, "dictionary_exclude is 'session:*': give some patterns of keys, such as"),
    ({"exclude": "lock:*"}, "exclude is 'lock:*': give some patterns of keys, such as"),
    ({"dictionary_exclude": [7]}, "dictionary_exclude is [7]: give some patterns of keys, such as"),
    ({"dictionary_memory": 1000}, "dictionary_memory is 1000: it is a number from 1048576 to 1073741824"),
    ({"compression_level": "3"}, "compression_level is '3': for zstd it is a number from -131072 to 22"),
    ({"min_compression_size": 5}, "min_compression_size is 5: it is a number from 6 to 4294967295"),
    ({"min_compression_size": True}, "min_compression_size is True: it is a number from 6 to 4294967295"),
    ({"max_decompressed_size": 0}, "max_decompressed_size is 0: it is a number from 1 to 4294967295"),
    ({"existing_envelopes": "pass"}, "existing_envelopes is 'pass': choose 'keep', 'wrap'"),
    ({"on_undecodable": "ignore"}, "on_undecodable is 'ignore': choose 'raise', 'raw'"),
    ({"checksum": 1}, "checksum is 1: choose True or False"),
    ({"enabled": "yes"}, "enabled is 'yes': choose True or False"),
    ({"value_types": "hashes"}, "value_types is 'hashes': give a set with some of 'strings', 'hashes', 'lists', "),
    ({"value_types": {"sets"}}, "value_types is 'sets': choose 'strings', 'hashes', 'lists', 'streams'"),
    ({"value_types": []}, "value_types is empty: give some of 'strings', 'hashes', 'lists', 'streams', or "),
]


@pytest.mark.parametrize(("settings", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_value_is_refused_with_what_is_allowed(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(snugly.ConfigurationError) as caught:
        CompressionConfiguration(**settings)
    assert str(caught.value).startswith(message)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("backend", "levels"), [("zstd", [-131072, 0, 22]), ("lz4", [-128, 0, 12])])
def test_every_level_of_a_backend_is_taken(backend: Any, levels: list[int]) -> None:
    page = b"<p>hello</p>" * 100
    for level in levels:
        tool = snugly.codec.Codec(CompressionConfiguration(backend=backend, compression_level=level))
        assert tool.decode(tool.encode(page)) == page


def test_compression_ends_with_the_backend_alone() -> None:
    page = b"<p>hello</p>" * 100
    none = CompressionConfiguration(backend=CompressionBackend.NONE, compression_level=19, dictionary="auto")
    assert snugly.codec.Codec(none).encode(page) == page


@pytest.mark.parametrize("settings", [{"backend": "none"}, {"enabled": False}], ids=str)
def test_without_compression_a_dictionary_is_read_with(settings: dict[str, Any]) -> None:
    tool = snugly.codec.Codec(CompressionConfiguration(dictionary=USERS, **settings))
    assert tool.decode(STORED) == user(1)
    assert tool.encode(user(1)) == user(1)


def test_names_may_be_given_for_members() -> None:
    named = CompressionConfiguration(backend="lz4", value_types=["hashes"])  # type: ignore[arg-type, list-item]
    assert named.backend is CompressionBackend.LZ4
    assert named.value_types == frozenset({snugly.ValueType.HASHES})


def configured(name: str, value: Any) -> CompressionConfiguration:
    settings: dict[str, Any] = {name: value}
    return CompressionConfiguration(**settings)


SPECIFIED = json.loads((servers.ROOT / "spec" / "data" / "options.json").read_text())


def test_the_defaults_are_those_of_the_specification() -> None:
    chosen = CompressionConfiguration()
    assert (chosen.enabled, chosen.compression_level) == (True, None)
    for name, option in SPECIFIED.items():
        if "default" in option:
            value = getattr(chosen, name)
            assert (sorted(value) if isinstance(value, frozenset | tuple) else value) == option["default"], name
    for backend, levels in SPECIFIED["compression_level"].items():
        assert _native.levels(backend) == (levels["least"], levels["most"], levels["default"])


@pytest.mark.parametrize("name", [name for name, option in SPECIFIED.items() if "choices" in option])
def test_every_choice_of_the_specification_is_taken_and_no_other(name: str) -> None:
    for choice in SPECIFIED[name]["choices"]:
        value: Any = {choice} if name == "value_types" else choice
        assert getattr(configured(name, value), name) == value
    with pytest.raises(ConfigurationError):
        configured(name, {"other"} if name == "value_types" else "other")


@pytest.mark.parametrize("name", [name for name, option in SPECIFIED.items() if "least" in option])
def test_the_range_of_an_option_is_that_of_the_specification(name: str) -> None:
    option = SPECIFIED[name]
    whole = isinstance(option["least"], int)
    within = [option["least"], *([float(option["most"])] if "most" in option else [])]
    beyond = [option["least"] - (1 if whole else 0.01), *([option["most"] + 1.0] if "most" in option else [])]
    for value in within:
        assert getattr(configured(name, value), name) == value
    for value in beyond:
        with pytest.raises(ConfigurationError):
            configured(name, value)

"""Keys that are never compressed: locks and tokens that scripts compare."""

from __future__ import annotations

from typing import Any

import pytest

import snugly
from kinds import Connect, Driver
from servers import Server
from snugly import CompressionConfiguration, ExistingEnvelopes, ValueType, codec

TOKEN = "token-" + "0123456789abcdef" * 20
RELEASE = 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end'
EXCLUDING = CompressionConfiguration(
    exclude=("{a}lock:*", b"{a}[xy]"), value_types={ValueType.STRINGS, ValueType.HASHES}
)


def test_a_script_finds_what_an_excluded_key_was_set_to(connect: Connect, plain: Driver) -> None:
    client = connect(EXCLUDING)
    client("set", "{a}lock:1", TOKEN, nx=True, px=60_000)
    assert plain("get", "{a}lock:1") == TOKEN.encode()
    assert plain("eval", RELEASE, 1, "{a}lock:1", TOKEN) == 1


def test_other_keys_are_compressed_beside_it(connect: Connect, plain: Driver) -> None:
    client = connect(EXCLUDING)
    names = ("{a}lock:1", "{a}x", "{a}z", "{a}lock")
    client("mset", dict.fromkeys(names, TOKEN))
    client.batch(*(("hset", f"{name}-fields", "field", TOKEN) for name in names))
    kept = [plain("get", name) == TOKEN.encode() for name in names]
    assert kept == [True, True, False, False]
    fields = [plain("hget", f"{name}-fields", "field") == TOKEN.encode() for name in names]
    assert fields == [True, False, False, False]
    assert [value.decode() for value in client("mget", names)] == [TOKEN] * 4


def test_values_from_before_are_read_and_envelopes_are_kept_or_wrapped(connect: Connect, plain: Driver) -> None:
    envelope = codec.encode(TOKEN.encode())
    plain("set", "{a}x", envelope)
    assert connect(EXCLUDING)("get", "{a}x") == TOKEN.encode()
    wrapping = connect(CompressionConfiguration(exclude=("*",), existing_envelopes=ExistingEnvelopes.WRAP))
    wrapping("set", "{a}x", envelope)
    assert wrapping("get", "{a}x") == envelope


def test_nothing_is_learned_from_excluded_keys(valkey_server: Server) -> None:
    learning = CompressionConfiguration(backend="auto", exclude=("session:*",), dictionary_refresh=0.5)  # type: ignore[arg-type]
    with snugly.Valkey(port=valkey_server.port, compression=learning) as client:
        for number in range(300):
            client.set(f"session:{number}", f"{number} {TOKEN}")
        told = snugly.explain(client, "session:1")
        assert (told.codec, told.pattern) == ("none", None)
        assert told.why == "none: the configuration excludes such keys"


@pytest.mark.parametrize("wrong", ["lock:*", [7], None])
def test_patterns_are_refused_that_are_none(wrong: Any) -> None:
    with pytest.raises(snugly.ConfigurationError, match=r"exclude is .*: give some patterns of keys"):
        CompressionConfiguration(exclude=wrong)


def test_a_codec_knows_no_keys() -> None:
    with pytest.raises(snugly.ConfigurationError, match="exclude has patterns of keys, which only clients know"):
        codec.Codec(CompressionConfiguration(exclude=("lock:*",)))

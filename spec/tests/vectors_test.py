"""The vectors hold for a second implementation, for a real GLIDE and for a real server's patterns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from glide_shared import CompressionConfiguration
from glide_sync import GlideClient, GlideClientConfiguration, NodeAddress

import envelope
import hostile
import make_commands
import make_lz4_dictionary
import servers
from rules import Rule, expand

SPEC = Path(__file__).resolve().parent.parent
VECTORS = SPEC / "vectors"
ENVELOPES = json.loads((VECTORS / "envelopes.json").read_text())
WRITERS = json.loads((VECTORS / "writers.json").read_text())
LZ4_DICTIONARY = json.loads((VECTORS / "lz4_dictionary.json").read_text())
CATALOGUE = json.loads((VECTORS / "catalogue.json").read_text())


def by_name(cases: list[Rule]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in cases])


def dictionaries_of(case: Rule) -> dict[int, bytes]:
    known = {**LZ4_DICTIONARY["dictionaries"], **ENVELOPES["dictionaries"]}
    named = [known[name] for name in case.get("dictionaries", [])]
    return {each["id"]: expand(each["bytes"]) for each in named}


@by_name([*ENVELOPES["cases"], *LZ4_DICTIONARY["cases"]])
def test_a_reader_finds_what_the_vector_says(case: Rule) -> None:
    limit = case.get("options", {}).get("max_decompressed_size", envelope.DEFAULT_LIMIT)
    given = expand(case["envelope"])
    if case["expect"] == "error":
        with pytest.raises(envelope.Undecodable) as caught:
            envelope.decode(given, limit, dictionaries_of(case))
        assert caught.value.kind == case["error"], caught.value
    else:
        wanted = expand(case["value"]) if case["expect"] == "value" else None
        assert envelope.decode(given, limit, dictionaries_of(case)) == wanted


def test_errors_are_of_the_kinds_that_the_vectors_define() -> None:
    used = {case["error"] for case in ENVELOPES["cases"] if case["expect"] == "error"}
    assert used == set(ENVELOPES["errors"])


def test_the_file_holds_every_envelope_made_by_hand() -> None:
    by_hand = [
        *hostile.not_envelopes(),
        *hostile.short_prefixes(),
        *hostile.zstd_frames(),
        *hostile.lz4_blocks(),
    ]
    kept = {case["name"]: case for case in ENVELOPES["cases"]}
    for case in by_hand:
        assert kept[case["name"]] == case, "run spec/vectors/make.py"


def test_the_file_for_lz4_with_dictionaries_holds_all_that_is_made_by_hand() -> None:
    known = make_lz4_dictionary.dictionaries()
    assert LZ4_DICTIONARY["dictionaries"] == known, "run spec/vectors/make_lz4_dictionary.py"
    by_hand = [case for case in LZ4_DICTIONARY["cases"] if case["made_by"] == "hand"]
    assert by_hand == make_lz4_dictionary.by_hand(known), "run spec/vectors/make_lz4_dictionary.py"


def test_what_is_read_with_a_dictionary_for_lz4_is_well_formed() -> None:
    for case in LZ4_DICTIONARY["cases"]:
        if case["expect"] == "value":
            assert envelope.well_formed(expand(case["envelope"])), case["name"]


def test_commands_are_what_the_reference_finds() -> None:
    assert make_commands.FILE.read_text() == make_commands.document(), "run spec/vectors/make_commands.py"


def test_the_vectors_stay_small() -> None:
    assert sum(path.stat().st_size for path in VECTORS.glob("*.json")) < 320_000


@by_name(WRITERS["cases"])
def test_a_writer_does_what_the_vector_says(case: Rule) -> None:
    options = {**WRITERS["defaults"], **case.get("options", {})}
    value = expand(case["value"])
    sent = envelope.encode(
        value,
        options["backend"],
        options.get("level"),
        options["min_compression_size"],
        options["existing_envelopes"] == "wrap",
    )
    assert (sent == value) == (case["expect"] == "as_is")
    if case["expect"] == "encoded":
        assert envelope.well_formed(sent)
        assert envelope.decode(sent) == value


@by_name(CATALOGUE["patterns"])
def test_patterns_match_as_the_servers_do(server: servers.Server, case: Rule) -> None:
    with server.connect() as connection:
        for key, wanted in case["keys"].items():
            connection.command("FLUSHALL")
            connection.command("SET", key, "1")
            matching = [row["id"] for row in case["active"] if connection.command("KEYS", row["pattern"])]
            assert next(iter(matching), None) == wanted, key


def test_a_dictionary_has_the_id_of_its_content() -> None:
    for each in ENVELOPES["dictionaries"].values():
        dictionary = expand(each["bytes"])
        assert envelope.dictionary_id(dictionary) == each["id"] == int.from_bytes(dictionary[4:8], "little")
    for case in CATALOGUE["ids"]:
        assert envelope.dictionary_id(bytes(8) + expand(case["content"])) == case["id"]


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.valkey() as running:
        yield running


@pytest.fixture(scope="module")
def glide(server: servers.Server) -> Iterator[GlideClient]:
    address = NodeAddress("127.0.0.1", server.port)
    compression = CompressionConfiguration(enabled=True)
    client = GlideClient.create(GlideClientConfiguration([address], compression=compression))
    yield client
    client.close()


@by_name([case for case in ENVELOPES["cases"] if case["expect"] == "value" and "dictionaries" not in case])
def test_glide_reads_every_good_envelope(server: servers.Server, glide: GlideClient, case: Rule) -> None:
    with server.connect() as raw:
        raw.command("SET", "key", expand(case["envelope"]))
    assert glide.get("key") == expand(case["value"])


def first_with_a_dictionary(vectors: Rule) -> Rule:
    return next(case for case in vectors["cases"] if case.get("dictionaries") and case["expect"] == "value")


@by_name([first_with_a_dictionary(ENVELOPES), first_with_a_dictionary(LZ4_DICTIONARY)])
def test_glide_hands_out_a_dictionary_envelope_raw(server: servers.Server, glide: GlideClient, case: Rule) -> None:
    """Why dictionaries are a decision for a whole fleet."""
    with server.connect() as raw:
        raw.command("SET", "key", expand(case["envelope"]))
    assert glide.get("key") == expand(case["envelope"])


def examples() -> list[Any]:
    """The examples of envelope.md: fenced blocks of `value`, `envelope` lines.

    Those of backend 82 are marked, for readers that do not know it."""
    text = (SPEC / "envelope.md").read_text()
    blocks = re.findall(r"```example(?:-82)?\n(.*?)```", text, re.DOTALL)
    return [pytest.param(dict(line.split(": ", 1) for line in block.splitlines()), id=block[:40]) for block in blocks]


def test_the_specification_has_examples() -> None:
    assert len(examples()) >= 5


@pytest.mark.parametrize("example", examples())
def test_the_examples_of_the_specification_hold(example: dict[str, str]) -> None:
    given = bytes.fromhex(example["envelope"])
    dictionaries = dictionaries_of({"dictionaries": list(ENVELOPES["dictionaries"])})
    if "error" in example:
        with pytest.raises(envelope.Undecodable) as caught:
            envelope.decode(given, dictionaries=dictionaries)
        assert caught.value.kind == example["error"]
    else:
        wanted = None if example["value"] == "(not an envelope)" else expand(json.loads(example["value"]))
        assert envelope.decode(given, dictionaries=dictionaries) == wanted
    cases = [*ENVELOPES["cases"], *LZ4_DICTIONARY["cases"]]
    assert any(expand(case["envelope"]) == given for case in cases), "no code made this one"

"""Values of files, and random ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from snugly_bench.corpora import Corpus, file_corpus, generated_corpus, value


def test_a_line_that_is_a_json_string_stands_for_what_it_holds() -> None:
    assert value('"<p>\\u00e4</p>"\n') == "<p>ä</p>".encode()
    assert value('{"a": 1}\n') == b'{"a": 1}'


def test_a_file_has_a_value_on_each_line_and_a_folder_one_in_each_file(tmp_path: Path) -> None:
    (tmp_path / "my data.jsonl").write_text('{"a":1}\n\n"b"\n{"c":3}\n')
    assert file_corpus(tmp_path / "my data.jsonl", 3) == Corpus("my-data", (b'{"a":1}', b"b"))
    (tmp_path / "other").write_bytes(b"\x00\xff")
    assert file_corpus(tmp_path, 10).values == ((tmp_path / "my data.jsonl").read_bytes(), b"\x00\xff")


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_where_there_are_no_values_it_says_what_to_give(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(SystemExit, match="give"):
        file_corpus(tmp_path / name, 10)


def test_random_values_have_just_the_size_and_are_the_same_each_time() -> None:
    corpus = generated_corpus("no program is needed", "random", 38, 5)
    assert {len(each) for each in corpus.values} == {38}
    assert len(set(corpus.values)) == 5
    assert corpus.mean_bytes == 38
    assert corpus == generated_corpus("nor here", "random", 38, 5)

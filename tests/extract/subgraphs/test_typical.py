"""Phrases repeat and never overlap; typical subgraphs run as in their parents."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extract.subgraphs.phrases import phrases
from extract.subgraphs.splice import runs_as_in_parent
from extract.subgraphs.typical import typical
from tests.extract.subgraphs.dags import SHAPE, Graphs, graphs

words = st.lists(st.one_of(st.none(), st.sampled_from("abc")), max_size=40)


@settings(max_examples=300, deadline=None)
@given(st.lists(words, max_size=5), st.integers(2, 4), st.integers(4, 12))
def test_phrases_stand_where_they_say_and_never_overlap(sequences, least, most):
    taken: set[tuple[int, int]] = set()
    for phrase, places in phrases(sequences, least, most).items():
        assert least <= len(phrase) <= most
        for sequence, first in places:
            assert tuple(sequences[sequence][first : first + len(phrase)]) == phrase
            spots = {(sequence, first + i) for i in range(len(phrase))}
            assert not spots & taken
            taken |= spots


@settings(max_examples=200, deadline=None)
@given(st.lists(words, min_size=1, max_size=4))
def test_every_phrase_occurs_twice_without_overlap(sequences):
    text = "|".join("".join(w or "." for w in s) for s in sequences)
    for phrase in phrases(sequences, 2, 8):
        assert text.count("".join(phrase)) >= 2


def test_a_repeated_block_is_one_phrase_and_its_double_none():
    found = phrases([list("xabcdabcdabcdabcdy")], 4, 64)
    assert found == {tuple("abcd"): [(0, 1), (0, 5), (0, 9), (0, 13)]}


def test_a_sequence_that_counts_more_decides_the_fold():
    sequences = [list("xab"), list("yab"), list("zbc"), list("wbc"), list("abc")]
    assert (4, 0) in phrases(sequences, 2, 2, [9, 9, 1, 1, 1])[tuple("ab")]
    assert (4, 1) in phrases(sequences, 2, 2, [1, 1, 9, 9, 1])[tuple("bc")]


@pytest.mark.parametrize("blocks", [3, 6])
def test_blocks_of_one_model_are_occurrences_of_one_sequence(blocks):
    build = Graphs()
    x = build.input(shape=SHAPE)
    for _ in range(blocks):
        y = build.any_call("torch.sigmoid", build.any_call("torch.relu", build.any_call("torch.matmul", x, x)))
        x = build.any_call("operator.add", y, x)
    (found,) = typical([build.output(x)])
    assert sorted(found.operators) == sorted(["torch.matmul", "torch.relu", "torch.sigmoid", "operator.add"])
    assert len(found.found) >= blocks - 1 and found.skipped == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(graphs(), min_size=1, max_size=3))
def test_typical_subgraphs_run_as_in_their_parents(records):
    records = [*records, records[0]]
    pieces: dict[int, list] = {}
    for sequence in typical(records, least=2):
        assert len(sequence.found) + sequence.skipped >= 2
        for k, piece in sequence.found:
            pieces.setdefault(k, []).append(piece)
    for k, cut in pieces.items():
        assert not any(runs_as_in_parent(records[k], cut))
        rows = [r for p in cut for r in p.rows]
        assert len(rows) == len(set(rows))

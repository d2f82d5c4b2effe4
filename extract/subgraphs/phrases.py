"""Repeated phrases in sequences of words, found by folding the most frequent pair of neighbours again and again.

In: sequences of words (None: nothing folds across it) and how much each sequence counts. Out: phrases and where they
stand, never overlapping. Each fold replaces one pair everywhere by a new symbol, as grammar compression does, so the
work grows nearly linearly with the words. Equal input gives equal output: ties are broken by the words.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

Phrase = tuple[str, ...]
Pair = tuple[int, int]
_WALL, _END, _GONE = -1, -2, -3


def phrases(
    sequences: Sequence[Sequence[str | None]], least: int, most: int, weights: Sequence[float] | None = None
) -> dict[Phrase, list[tuple[int, int]]]:
    """Phrases of `least` to `most` words that were folded at least twice -> (sequence, first word) of each occurrence.

    A phrase of `least` words or more said twice is no phrase of its own. Occurrences of all phrases together never
    overlap: where a phrase is part of a longer one within `most`, the longer one counts.
    """
    folding = _Folding(sequences, weights or [1.0] * len(sequences))
    folding.fold(least, most)
    found: dict[Phrase, list[tuple[int, int]]] = {}
    for k, start in enumerate(folding.starts):
        at = folding.after[start]
        while folding.symbols[at] != _END:
            symbol = folding.symbols[at]
            if symbol >= folding.words and len(folding.expansions[symbol]) >= least:
                found.setdefault(folding.expansions[symbol], []).append((k, at - start - 1))
            at = folding.after[at]
    return found


class _Folding:
    """The sequences end to end, linked both ways so that a fold takes a position out in constant time."""

    def __init__(self, sequences: Sequence[Sequence[str | None]], weights: Sequence[float]):
        words = sorted({w for s in sequences for w in s if w is not None})
        number = {w: i for i, w in enumerate(words)}
        self.words = len(words)
        self.expansions: list[Phrase] = [(w,) for w in words]
        self.symbols: list[int] = []
        self.weights: list[float] = []
        self.starts: list[int] = []
        for sequence, counts in zip(sequences, weights, strict=True):
            self.starts.append(len(self.symbols))
            self.symbols += [_WALL, *(_WALL if w is None else number[w] for w in sequence), _END]
            self.weights += [counts] * (len(sequence) + 2)
        self.after = list(range(1, len(self.symbols) + 1))
        self.before = list(range(-1, len(self.symbols) - 1))
        self.places: dict[Pair, dict[int, None]] = {}
        self.count: dict[Pair, float] = {}
        for at in range(len(self.symbols)):
            self._add(at)

    def fold(self, least: int, most: int) -> None:
        heap = [self._entry(pair) for pair in self.places]
        heapq.heapify(heap)
        while heap:
            claimed, _, _, pair = heapq.heappop(heap)
            if len(self.places[pair]) < 2:
                continue
            if -claimed != self.count[pair]:
                heapq.heappush(heap, self._entry(pair))
                continue
            one, two = (self.expansions[s] for s in pair)
            if len(one) + len(two) > most or (one == two and len(one) >= least):
                continue
            apart = self._apart(pair)
            if len(apart) < 2:
                continue
            new = len(self.expansions)
            self.expansions.append(one + two)
            for near in self._replace(apart, new):
                heapq.heappush(heap, self._entry(near))

    def _entry(self, pair: Pair) -> tuple[float, Phrase, Phrase, Pair]:
        return -self.count[pair], self.expansions[pair[0]], self.expansions[pair[1]], pair

    def _pair(self, at: int) -> Pair | None:
        if at < 0 or self.symbols[at] < 0 or self.symbols[self.after[at]] < 0:
            return None
        return self.symbols[at], self.symbols[self.after[at]]

    def _add(self, at: int) -> Pair | None:
        pair = self._pair(at)
        if pair is not None and at not in self.places.setdefault(pair, {}):
            self.places[pair][at] = None
            self.count[pair] = self.count.get(pair, 0.0) + self.weights[at]
        return pair

    def _drop(self, at: int) -> None:
        pair = self._pair(at)
        if pair is not None and at in self.places[pair]:
            del self.places[pair][at]
            self.count[pair] -= self.weights[at]

    def _apart(self, pair: Pair) -> list[int]:
        """Places of the pair, from left to right, that share no position: in a run of equal symbols every other one."""
        found: list[int] = []
        taken = -1
        for at in sorted(self.places[pair]):
            if at != taken:
                found.append(at)
                taken = self.after[at]
        return found

    def _replace(self, places: list[int], new: int) -> list[Pair]:
        """Put `new` in these places; the pairs that then stand beside it."""
        beside: dict[Pair, None] = {}
        for at in places:
            gone, left = self.after[at], self.before[at]
            for place in (left, at, gone):
                self._drop(place)
            self.symbols[at], self.symbols[gone] = new, _GONE
            self.after[at] = self.after[gone]
            self.before[self.after[gone]] = at
            for place in (left, at):
                near = self._add(place)
                if near is not None:
                    beside[near] = None
        return list(beside)

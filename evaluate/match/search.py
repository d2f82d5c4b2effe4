"""Where a pattern occurs in a graph: a search with backtracking, and the nearest miss where it does not.

In go a pass and a graph, out come the embeddings of the pattern in graph order. An embedding maps every operator node
of the pattern to a node of its own; a pattern argument takes any value (node or literal), the same at each of its uses.
The order of commutative operands is tried both ways, and outputs that no other output leads to are searched for among
all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from evaluate.match.calls import Call, neutral, spelled
from evaluate.match.literals import alike, whole
from evaluate.match.pattern import Pass

#: Steps of one search after which it is given up: patterns of many equal commutative operands could take for ever.
MOST_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class Miss:
    """Why the nearest occurrence is none. matched: of `total` operators of the pattern. node: of the graph."""

    rule: str
    matched: int
    total: int
    wanted: str
    node: str
    expected: str
    found: str
    change: str

    def __str__(self) -> str:
        return (
            f"{self.rule}: {self.matched} of {self.total} operators match; at {self.wanted} of the pattern and "
            f"{self.node} of the graph: expected {self.expected}, found {self.found}; {self.change}"
        )


@dataclass(frozen=True, slots=True)
class Embedding:
    """nodes: pattern operator -> graph node. values: pattern argument -> graph node or literal."""

    nodes: Mapping[fx.Node, fx.Node]
    values: Mapping[fx.Node, Any]

    @property
    def covered(self) -> frozenset[fx.Node]:
        return frozenset(self.nodes.values())


@dataclass(slots=True)
class _State:
    nodes: dict[fx.Node, fx.Node] = field(default_factory=dict)
    values: dict[fx.Node, Any] = field(default_factory=dict)
    taken: set[fx.Node] = field(default_factory=set)

    def copy(self) -> _State:
        return _State(dict(self.nodes), dict(self.values), set(self.taken))


_Pair = tuple[Any, Any, fx.Node, fx.Node, str]  # pattern value, graph value, the two calls they belong to, parameter


class Search:
    """One pattern in one graph. `nearest` is the best miss of all that was tried."""

    def __init__(self, rule: Pass, calls: Mapping[fx.Node, Call]):
        self.rule = rule
        self.calls = calls
        self.nearest: Miss | None = None
        self._by_key: dict[str, list[fx.Node]] = {}
        for node, call in calls.items():
            self._by_key.setdefault(call.key, []).append(node)
        self._steps = 0

    def embeddings(self) -> Iterator[Embedding]:
        """Embeddings by the graph's order of the node for the pattern's last output."""
        anchor = self.rule.outputs[-1]
        candidates = self._by_key.get(self.rule.calls[anchor].key, [])
        if not candidates:
            self._no_anchor(anchor)
        for node in candidates:
            self._steps = 0
            for state in self._unify([(anchor, node, anchor, node, "")], _State()):
                yield Embedding(state.nodes, state.values)

    def note(self, miss: Miss) -> None:
        if self.nearest is None or miss.matched > self.nearest.matched:
            self.nearest = miss

    def _unify(self, todo: list[_Pair], state: _State) -> Iterator[_State]:
        todo = list(todo)
        while todo:
            self._steps += 1
            if self._steps > MOST_STEPS:
                return
            wanted, found, pattern_call, graph_call, name = todo.pop()
            if isinstance(wanted, fx.Node) and wanted.op == "placeholder":
                if wanted not in state.values:
                    state.values[wanted] = found
                elif not _same(state.values[wanted], found):
                    before = _value(state.values[wanted])
                    self._miss(state, pattern_call, graph_call, f"{name}={before}", f"{name}={_value(found)}",
                               f"give the pattern another argument than {wanted.name} here")  # fmt: skip
                    return
                continue
            if not isinstance(wanted, fx.Node):
                pairs = self._literal(wanted, found, pattern_call, graph_call, name, state)
                if pairs is None:
                    return
                todo += pairs
                continue
            if wanted in state.nodes:
                if state.nodes[wanted] is not found:
                    self._miss(state, pattern_call, graph_call, f"{name}={state.nodes[wanted].name}",
                               f"{name}={_value(found)}", "the graph computes it several times")  # fmt: skip
                    return
                continue
            if not self._operator(wanted, found, pattern_call, graph_call, name, state):
                return
            state.nodes[wanted] = found
            state.taken.add(found)
            mine, theirs = self.rule.calls[wanted], self.calls[found]
            pairs = self._arguments(mine, theirs, wanted, found, state)
            if pairs is None:
                return
            if mine.commutes and theirs.commutes:
                swapped = {"self": theirs.arguments["other"], "other": theirs.arguments["self"]}
                other = self._arguments(mine, Call(theirs.key, {**theirs.arguments, **swapped}), wanted, found, state)
                yield from self._unify(todo + pairs, state.copy())
                if other is not None:
                    yield from self._unify(todo + other, state.copy())
                return
            todo += pairs
        loose = next((o for o in reversed(self.rule.outputs) if o not in state.nodes), None)
        if loose is None:
            yield state
            return
        for node in self._by_key.get(self.rule.calls[loose].key, []):
            if node not in state.taken:
                yield from self._unify([(loose, node, loose, node, "")], state.copy())

    def _operator(
        self, wanted: fx.Node, found: Any, pattern_call: fx.Node, graph_call: fx.Node, name: str, state: _State
    ) -> bool:  # fmt: skip
        """Whether graph value `found` can stand for the pattern's operator node `wanted`, noting why not."""
        call = self.calls.get(found) if isinstance(found, fx.Node) else None
        at = f"{name}=" if name else ""
        if call is None:
            self._miss(state, pattern_call, graph_call, f"{at}{spelled(wanted)}", f"{at}{_value(found)}",
                       "make it an argument of the pattern")  # fmt: skip
        elif call.key != self.rule.calls[wanted].key:
            self._miss(state, wanted, found, spelled(wanted), spelled(found), f"write {call.key} in the pattern there")
        elif found in state.taken:
            self._miss(state, wanted, found, "a node of its own", "one that another operator of the pattern has",
                       "use one value twice in the pattern, too")  # fmt: skip
        else:
            return True
        return False

    def _arguments(
        self, mine: Call, theirs: Call, wanted: fx.Node, found: fx.Node, state: _State
    ) -> list[_Pair] | None:
        pairs: list[_Pair] = []
        for name in {**mine.arguments, **theirs.arguments}:
            if name not in mine.arguments or name not in theirs.arguments:
                there = theirs.arguments.get(name, mine.arguments.get(name))
                if not neutral(name, there) and not whole(name, there, theirs):
                    missing = "nothing"
                    expected = f"{name}={_value(there)}" if name in mine.arguments else missing
                    got = f"{name}={_value(there)}" if name in theirs.arguments else missing
                    self._miss(state, wanted, found, expected, got, f"write the call as {spelled(found)}")
                    return None
                continue
            pairs.append((mine.arguments[name], theirs.arguments[name], wanted, found, name))
        return pairs[::-1]

    def _literal(
        self, wanted: Any, found: Any, pattern_call: fx.Node, graph_call: fx.Node, name: str, state: _State
    ) -> list[_Pair] | None:
        """The pairs that remain of a literal of the pattern and what the graph has; None when they differ."""
        if isinstance(wanted, slice) and isinstance(found, slice):
            parts = ((wanted.start, found.start), (wanted.stop, found.stop), (wanted.step, found.step))
            return [(w, f, pattern_call, graph_call, name) for w, f in parts]
        whole_tuples = isinstance(wanted, tuple) and isinstance(found, tuple) and len(wanted) == len(found)
        if whole_tuples and not alike(name, wanted, found, self.calls[graph_call], graph_call):
            return [(w, f, pattern_call, graph_call, name) for w, f in zip(wanted, found, strict=True)][::-1]
        if not isinstance(wanted, (tuple, slice)) and _same(wanted, found):
            return []
        if alike(name, wanted, found, self.calls[graph_call], graph_call):
            return []
        change = f"write {_value(found)}, or make it an argument of the pattern and of replacement_args"
        self._miss(state, pattern_call, graph_call, f"{name}={_value(wanted)}", f"{name}={_value(found)}", change)
        return None

    def _miss(self, state: _State, wanted: fx.Node, node: fx.Node, expected: str, found: str, change: str) -> None:
        total = len(self.rule.calls)
        self.note(Miss(self.rule.name, len(state.nodes), total, wanted.name, node.name, expected, found, change))

    def _no_anchor(self, anchor: fx.Node) -> None:
        have = ", ".join(sorted(self._by_key)[:12])
        self.note(
            Miss(
                self.rule.name,
                0,
                len(self.rule.calls),
                anchor.name,
                "(none)",
                spelled(anchor),
                "no such operator",
                f"the graph has: {have}",
            )  # fmt: skip
        )


def _same(first: Any, second: Any) -> bool:
    """Whether two values are one: the same node, or literals of equal worth (1 and 1.0; never True and 1)."""
    if isinstance(first, fx.Node) or isinstance(second, fx.Node):
        return first is second
    if isinstance(first, bool) or isinstance(second, bool):
        return isinstance(first, bool) and isinstance(second, bool) and first == second
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    numbers = isinstance(first, (int, float)) and isinstance(second, (int, float))
    return bool((numbers or type(first) is type(second)) and (first == second or (first != first and second != second)))


def _value(value: Any) -> str:
    if isinstance(value, fx.Node):
        return spelled(value) if value.op.startswith("call_") else value.name
    return repr(value)[:60]

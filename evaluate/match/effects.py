"""Whether an embedding may be replaced where it stands: nothing else may see the difference.

In go a graph and an embedding, out comes the place for the replacement, or the reason why there is none:
- a value that the pattern keeps to itself is used elsewhere (escape);
- a covered call draws random numbers or switches a mode;
- a covered call writes a value that somebody else can see;
- somebody else writes a value that the pattern reads, between the reading and the place of the replacement;
- inputs and users interleave, so there is no place.
A write is functionalised when only covered calls can see it: `relu_` on a convolution's result is `relu`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import fx

from evaluate.match.search import Embedding
from warehouse.graph import operators

#: Marks, in a node's meta, what a pass put into the graph.
REPLACEMENT = "passnet_replacement"


@dataclass(frozen=True, slots=True)
class Refusal:
    """node: of the graph, at fault. found and change: for the nearest miss."""

    node: fx.Node
    expected: str
    found: str
    change: str


class Effects:
    """What the calls of one graph write, and which values may share memory."""

    def __init__(self, graph: fx.Graph):
        self.order: dict[fx.Node, int] = {node: i for i, node in enumerate(graph.nodes)}
        self._root: dict[fx.Node, set[fx.Node]] = {}
        self._class: dict[fx.Node, set[fx.Node]] = {}
        self.writes: dict[fx.Node, tuple[fx.Node, ...]] = {}
        self.loud: set[fx.Node] = set()
        for node in graph.nodes:
            if node.op in ("call_function", "call_method"):
                self._read(node)
            self._class.setdefault(node, {node})

    def _read(self, node: fx.Node) -> None:
        name = operators.name_of(node.target, node.op) or ""
        if node.target is getattr:
            name = f"{operators.METHOD}{node.args[1]}"
        written: tuple[fx.Node, ...] = ()
        if not name:
            # An operator that nobody listed may do anything. What passes put in is pure: the judge sees to that.
            written = () if node.meta.get(REPLACEMENT) else tuple(node.all_input_nodes)
        elif node.target is not getattr:
            at = operators.mutated_operands(name, node.args, node.kwargs)
            values = [node.kwargs[p] if isinstance(p, str) else node.args[p] for p in at]
            written = tuple(v for v in values if isinstance(v, fx.Node))
            if operators.is_effectful(name, node.args, node.kwargs) and not written:
                self.loud.add(node)
        if written:
            self.writes[node] = written
        shares = set(written)
        if name in operators.VIEWS or name == "operator.getitem":
            # The result may share memory with the first argument; of these two operators, with any.
            every = name in ("torch.meshgrid", "torch.broadcast_tensors")
            shares |= set(node.all_input_nodes if every else node.all_input_nodes[:1])
        for other in shares:
            self._join(node, other)

    def _join(self, first: fx.Node, second: fx.Node) -> None:
        one, two = self.aliases(first), self.aliases(second)
        if one is not two:
            one |= two
            for node in two:
                self._class[node] = one

    def aliases(self, node: fx.Node) -> set[fx.Node]:
        """Every value that may share memory with `node`, itself included."""
        return self._class.setdefault(node, {node})

    def place(self, embedding: Embedding, outputs: Iterable[fx.Node]) -> fx.Node | Refusal:
        """The node behind which the replacement may stand."""
        covered, given_out = embedding.covered, set(outputs)
        read: list[fx.Node] = []
        fx.node.map_aggregate(tuple(embedding.values.values()), lambda v: read.append(v) if v in covered else None)
        if read:
            return Refusal(read[0], "arguments from outside the pattern", "one that the pattern itself computes",
                           "use the pattern's own value instead of an argument")  # fmt: skip
        for node in sorted(covered, key=self.order.__getitem__):
            if node in self.loud:
                return Refusal(node, "a pure call", "one that draws random numbers or switches a mode",
                               "leave it out of the pattern")  # fmt: skip
            if node not in given_out and (outside := [u for u in node.users if u not in covered]):
                return Refusal(node, "a value that only the pattern uses", f"a use by {outside[0].name}",
                               "return it from the pattern as a further output")  # fmt: skip
            for written in self.writes.get(node, ()):
                if (seen := self._seen(written, node, covered)) is not None:
                    return Refusal(node, "a write that nobody else sees", f"{seen.name} sees {written.name} written",
                                   "leave this call out of the pattern")  # fmt: skip
        return self._between(covered, given_out)

    def _seen(self, written: fx.Node, writer: fx.Node, covered: frozenset[fx.Node]) -> fx.Node | None:
        """Somebody outside who may see what `writer` writes, other than through its result."""
        for alias in sorted(self.aliases(written), key=self.order.__getitem__):
            if self.order[alias] >= self.order[writer]:
                break  # made from what the writer returns, so it sees the replacement's value
            if alias.op in ("placeholder", "get_attr"):
                return alias
            late = [u for u in alias.users if u not in covered and self.order[u] > self.order[writer]]
            if late:
                return late[0]
        return None

    def _between(self, covered: frozenset[fx.Node], given_out: set[fx.Node]) -> fx.Node | Refusal:
        order = self.order
        first, last = min(map(order.__getitem__, covered)), max(map(order.__getitem__, covered))
        inputs = {i for node in covered for i in node.all_input_nodes if i not in covered}
        users = [u for node in given_out for u in node.users if u not in covered]
        nodes: Sequence[fx.Node] = list(order)
        place = last
        if users and (early := min(map(order.__getitem__, users))) < last:
            ready = max((order[i] for i in inputs), default=0)
            if ready >= early:
                return Refusal(nodes[early], "all inputs of the pattern before any use of its outputs",
                               f"{nodes[early].name} needs an output before {nodes[ready].name} is computed",
                               "split the pattern, or leave the outputs apart")  # fmt: skip
            place = early - 1
        seen = {alias for i in inputs for alias in self.aliases(i)}
        for node in nodes[min(first, place + 1) : max(last, place) + 1]:
            if node not in covered and not seen.isdisjoint(self.writes.get(node, ())):
                return Refusal(node, "inputs that nobody writes meanwhile", f"a write by {node.name}",
                               "leave the calls before it out of the pattern")  # fmt: skip
        return nodes[place]

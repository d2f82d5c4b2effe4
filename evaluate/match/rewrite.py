"""Passes applied to a graph: `rewrite(graph_module, passes)`.

In go a graph and passes in order, out come the rewritten graph (a new module; the given one stays as it is), every
site, how much of the graph is covered, and the nearest miss of each pass that matched nowhere. Sites are taken
greedily: pass by pass in the submission's order, inside a pass in the graph's order; a node belongs to one site at
most. So the same graph and passes always give the same sites.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from evaluate.match.calls import call_of
from evaluate.match.effects import REPLACEMENT, Effects, Refusal
from evaluate.match.pattern import Argument, Pass
from evaluate.match.search import Embedding, Miss, Search
from warehouse.graph import operators

#: Least share of a graph's operators that a submission must cover; less is no match.
LEAST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Named:
    """The value of a node of the original graph."""

    name: str


@dataclass(frozen=True, slots=True)
class Site:
    """One place where a pass was applied. Names are those of the original graph's nodes.

    covered     the nodes replaced, in graph order
    inputs      the values that the replaced nodes read from outside, in order of first use
    outputs     the nodes whose values the replacement gives, in the order of the pattern's outputs
    call        name of the replacement's node in the rewritten graph
    arguments   what the replacement is called with: nodes as Named, literals as they are
    replacement the function that is called
    single      it returns one value, not a tuple
    """

    rule: str
    covered: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    call: str
    arguments: tuple[Any, ...]
    replacement: Callable[..., Any]
    single: bool


@dataclass(frozen=True, slots=True)
class Coverage:
    """ops: operators of the graph. covered: of them replaced. work: covered ones that compute (no mere view, no reading
    of attributes or tuples)."""

    ops: int
    covered: int
    work: int

    @property
    def share(self) -> float:
        return self.covered / self.ops if self.ops else 0.0

    def trivial(self, least: float = LEAST_SHARE) -> str | None:
        """Why the sites together are no match, or None: nothing that computes, or too little of the graph."""
        if not self.covered:
            return "no site"
        if not self.work:
            return f"the {self.covered} covered operators only view or read"
        if self.share < least:
            return f"{self.covered} of {self.ops} operators covered, at least {100 * least:.0f}% must be"
        return None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """`graph_module` computes what the original does with `sites` replaced; it equals the original without sites."""

    graph_module: fx.GraphModule
    sites: tuple[Site, ...]
    coverage: Coverage
    misses: tuple[Miss, ...]


def rewrite(
    graph_module: fx.GraphModule,
    passes: Pass | Sequence[Pass],
    without: Collection[tuple[str, tuple[str, ...]]] = (),
) -> Rewritten:
    """Apply passes to a copy of `graph_module`; `without`: not at these sites, given by rule and covered nodes."""
    rules = [passes] if isinstance(passes, Pass) else list(passes)
    graph = fx.Graph()
    copied: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(graph_module.graph, copied))
    names = {copy: node.name for node, copy in copied.items()}
    ops = [n for n in graph.nodes if n.op in ("call_function", "call_method")]
    work = {n for n in ops if _computes(n)}
    sites: list[Site] = []
    misses: list[Miss] = []
    covered: set[fx.Node] = set()
    for rule in rules:
        found, nearest = _apply(graph, rule, names, {nodes for name, nodes in without if name == rule.name})
        sites += [site for site, _ in found]
        covered |= {node for _, nodes in found for node in nodes}
        if not found and nearest is not None:
            misses.append(nearest)
    graph.lint()
    made = fx.GraphModule(graph_module, graph, class_name="Rewritten")
    return Rewritten(made, tuple(sites), Coverage(len(ops), len(covered), len(covered & work)), tuple(misses))


def _apply(
    graph: fx.Graph, rule: Pass, names: dict[fx.Node, str], without: Collection[tuple[str, ...]]
) -> tuple[list[tuple[Site, frozenset[fx.Node]]], Miss | None]:
    """Replace every site of one pass, one by one: a replacement changes what the next site reads."""
    calls = {n: c for n in graph.nodes if REPLACEMENT not in n.meta and (c := call_of(n)) is not None}
    made: list[tuple[Site, frozenset[fx.Node]]] = []
    while True:
        search, effects = Search(rule, calls), Effects(graph)
        chosen = _first(search, effects, names, without)
        if chosen is None:
            return made, search.nearest
        site, users = _replace(graph, rule, *chosen, effects, names)
        made.append((site, chosen[0].covered))
        for node in chosen[0].covered:
            del calls[node]
        for node in users:
            if node in calls and (call := call_of(node)) is not None:
                calls[node] = call


def _first(
    search: Search, effects: Effects, names: dict[fx.Node, str], without: Collection[tuple[str, ...]]
) -> tuple[Embedding, fx.Node] | None:
    """The first embedding that may be replaced, and where; the search learns why others may not."""
    for embedding in search.embeddings():
        if without and tuple(names[n] for n in sorted(embedding.covered, key=effects.order.__getitem__)) in without:
            continue
        place = effects.place(embedding, [embedding.nodes[o] for o in search.rule.outputs])
        if not isinstance(place, Refusal):
            return embedding, place
        search.note(_refused(search.rule, embedding, place))
    return None


def _replace(
    graph: fx.Graph, rule: Pass, embedding: Embedding, place: fx.Node, effects: Effects, names: dict[fx.Node, str]
) -> tuple[Site, set[fx.Node]]:
    """The site, and the nodes outside that now read the replacement."""
    inside = embedding.covered
    covered = sorted(inside, key=effects.order.__getitem__)
    values = [embedding.values[p] for p in rule.parameters]
    with graph.inserting_after(place):
        call = graph.call_function(rule.replacement, tuple(_given(a, values) for a in rule.arguments))
    outputs = [embedding.nodes[o] for o in rule.outputs]
    news = [call]
    if not rule.single:
        news, after = [], call
        for i in range(len(outputs)):
            with graph.inserting_after(after):
                after = graph.call_function(operator.getitem, (call, i))
            news.append(after)
    site = Site(
        rule.name,
        tuple(names[n] for n in covered),
        tuple(dict.fromkeys(names[i] for n in covered for i in n.all_input_nodes if i not in inside)),
        tuple(names[n] for n in outputs),
        call.name,
        tuple(_told(a, values, names) for a in rule.arguments),
        rule.replacement,
        rule.single,
    )
    users: set[fx.Node] = set()
    for node in {call, *news}:
        node.meta[REPLACEMENT] = rule.name
    for old, new in zip(outputs, news, strict=True):
        users.update(u for u in old.users if u not in inside)
        names[new] = names[old]
        new.meta |= {k: old.meta[k] for k in ("shape", "example_value") if k in old.meta}
        old.replace_all_uses_with(new, delete_user_cb=lambda user: user not in inside and user is not call)
    for node in reversed(covered):
        graph.erase_node(node)
    return site, users


def _given(argument: Any, values: Sequence[Any]) -> Any:
    if isinstance(argument, Argument):
        return values[argument.index]
    return tuple(_given(a, values) for a in argument) if isinstance(argument, tuple) else argument


def _told(argument: Any, values: Sequence[Any], names: dict[fx.Node, str]) -> Any:
    """An argument with names of the original graph's nodes in place of nodes."""
    return fx.node.map_aggregate(_given(argument, values), lambda v: Named(names[v]) if isinstance(v, fx.Node) else v)


def _computes(node: fx.Node) -> bool:
    if node.target is getattr:
        return False
    name = operators.name_of(node.target, node.op)
    return name is not None and name not in operators.VIEWS and name != "operator.getitem"


def _refused(rule: Pass, embedding: Embedding, why: Refusal) -> Miss:
    back = {found: wanted for wanted, found in embedding.nodes.items()}
    wanted = back[why.node].name if why.node in back else rule.outputs[-1].name
    total = len(rule.calls)
    # All operators fit, so this says more than any miss of the search.
    return Miss(rule.name, total, total, wanted, why.node.name, why.expected, why.found, why.change)

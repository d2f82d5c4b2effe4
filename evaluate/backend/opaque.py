"""A replacement as one operator that compilers look past: `torch.ops.passnet.<rule>_<hash>`.

In go the original graph and its rewriting; the rewriting's replacement calls become operators of the library `passnet`.
What such an operator gives is known without looking into it: the shapes, dtypes and strides of the subgraph that it
replaces, which is run on fake tensors. So Inductor compiles the rest as one graph, and calls the kernels in between.

An operator's name covers what it computes (the pass's text, the subgraph, its constants), so that a compiler's caches
may keep it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from evaluate.match.rewrite import Named, Rewritten, Site

_LIBRARY = torch.library.Library("passnet", "FRAGMENT")
#: Inputs reach the kernel with the strides that the subgraph would have seen.
_TAGS = tuple(t for name in ("needs_exact_strides",) if (t := getattr(torch.Tag, name, None)) is not None)


def unfit(module: fx.GraphModule, site: Site) -> str | None:
    """Why a site cannot be one operator, or None."""
    nodes = {n.name: n for n in module.graph.nodes}
    if odd := next((n for n in _values(site) if _kind(nodes[n]) is None), None):
        return f"{odd} is neither a tensor nor a size, so the replacement cannot be one operator"
    odd = next((n for n in site.outputs if _kind(nodes[n]) != "Tensor"), None)
    return None if odd is None else f"its output {odd} is no tensor"


def as_operators(module: fx.GraphModule, made: Rewritten) -> None:
    """Let `made.graph_module` call operators instead of the sites' functions. `module` is the original graph."""
    original = {n.name: n for n in module.graph.nodes}
    graph = made.graph_module.graph
    nodes = {n.name: n for n in graph.nodes}
    given: dict[str, fx.Node] = {}
    for site in made.sites:
        call = nodes[site.call]
        members = [call] if site.single else sorted(call.users, key=lambda n: n.args[1])
        given.update(zip(site.outputs, members, strict=True))
    for site in made.sites:
        names = _values(site)
        call = nodes[site.call]
        call.target = _operator(module, site, names, [_kind(original[n]) or "Tensor" for n in names])
        call.args = tuple(given.get(n) or nodes[n] for n in names)
    graph.lint()
    made.graph_module.recompile()


def _values(site: Site) -> list[str]:
    """Names of all values that the replacement or the subgraph reads."""
    read: list[str] = []
    fx.node.map_aggregate(site.arguments, lambda a: read.append(a.name) if isinstance(a, Named) else None)
    return list(dict.fromkeys([*read, *site.inputs]))


def _kind(node: fx.Node) -> str | None:
    """The schema's type of a node's value."""
    value = node.meta.get("example_value")
    if isinstance(value, torch.Tensor) or (value is None and node.op == "get_attr"):
        return "Tensor"
    if isinstance(value, bool):
        return "bool"
    return "SymInt" if isinstance(value, (int, torch.SymInt)) else None


def _operator(module: fx.GraphModule, site: Site, names: list[str], kinds: list[str]) -> Any:
    subgraph = _subgraph(module, site)
    inside = {n: i for i, n in enumerate(names)}
    text = [site.rule, _source(site.replacement), subgraph.code, repr(site.arguments), names, kinds, len(site.outputs)]
    name = f"{site.rule}_{hashlib.blake2b(repr(text).encode(), digest_size=8).hexdigest()}"
    if not hasattr(torch.ops.passnet, name):
        returns = "Tensor" if site.single else "(" + ", ".join(["Tensor"] * len(site.outputs)) + ")"
        takes = ", ".join(f"{kind} a{i}" for i, kind in enumerate(kinds))
        _LIBRARY.define(f"{name}({takes}) -> {returns}", tags=_TAGS)
        _LIBRARY.impl(name, _called(site, inside), "CompositeExplicitAutograd")
        torch.library.register_fake(f"passnet::{name}", _faked(subgraph, site, inside), lib=_LIBRARY)
    return getattr(torch.ops.passnet, name).default


def _called(site: Site, inside: dict[str, int]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        arguments = fx.node.map_aggregate(
            site.arguments, lambda a: values[inside[a.name]] if isinstance(a, Named) else a
        )
        returned = site.replacement(*arguments)  # type: ignore[misc]
        return returned if site.single else tuple(returned)

    return call


def _faked(subgraph: fx.GraphModule, site: Site, inside: dict[str, int]) -> Callable[..., Any]:
    def fake(*values: Any) -> Any:
        outputs = subgraph(*(values[inside[n]] for n in site.inputs))
        new = [torch.empty_strided(o.shape, o.stride(), dtype=o.dtype, device=o.device) for o in outputs]
        return new[0] if site.single else tuple(new)

    return fake


def _subgraph(module: fx.GraphModule, site: Site) -> fx.GraphModule:
    """What the site replaces, by itself: its inputs in order in, a tuple of its outputs out."""
    original = {n.name: n for n in module.graph.nodes}
    graph = fx.Graph()
    made = {original[name]: graph.placeholder(name) for name in site.inputs}
    for name in site.covered:
        made[original[name]] = graph.node_copy(original[name], lambda n: made[n])
    graph.output(tuple(made[original[name]] for name in site.outputs))
    return fx.GraphModule(torch.nn.Module(), graph)


def _source(replacement: Callable[..., Any]) -> Sequence[str]:
    """The text of the whole file that the replacement stands in: its kernels are there."""
    return inspect.getsource(inspect.getmodule(replacement) or replacement)

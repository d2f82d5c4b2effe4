"""Each site run against what it replaced, on values as they occur in the graph.

In go the original graph, its rewriting and inputs, out comes a `SiteCheck` for each site. The original runs once, node
by node; what a site reads is copied when it reads it, what it gives when its last node has run. Then the replacement
runs on the copies. A pattern that is wider than its replacement (right for one stride, say) shows here, by its own
name, and not as an error somewhere behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from evaluate.match.rewrite import Named, Rewritten, Site
from evaluate.measure.compare import Agreement, agreement


@dataclass(frozen=True, slots=True)
class SiteCheck:
    """agreement: of the replacement's outputs with the replaced subgraph's; None when it did not run. problem: what is
    wrong whatever the values: it raised, wrote its inputs, gave other shapes, dtypes or kinds."""

    site: Site
    agreement: Agreement | None
    problem: str | None

    def correct_at(self, t: int) -> bool:
        level = self.agreement.t if self.agreement else None
        return self.problem is None and level is not None and level <= t


def check_sites(original: fx.GraphModule, rewritten: Rewritten, inputs: Sequence[Any]) -> list[SiteCheck]:
    """Run `original` on copies of `inputs`, and every site on what it reads there. Raises what `original` raises."""
    watch = _Watch(original, rewritten.sites)
    with torch.no_grad():
        watch.run(*map(_copy, inputs))
        return [_check(site, watch.read[i], watch.given[i]) for i, site in enumerate(rewritten.sites)]


class _Watch(fx.Interpreter):
    def __init__(self, original: fx.GraphModule, sites: Sequence[Site]):
        super().__init__(original)
        self.read: list[dict[str, Any]] = [{} for _ in sites]
        self.given: list[list[Any]] = [[] for _ in sites]
        self._sites = sites
        self._kept: dict[str, Any] = {}
        self._at: dict[str, int] = {name: i for i, site in enumerate(sites) for name in site.covered}

    def run_node(self, n: fx.Node) -> Any:
        i = self._at.get(n.name)
        if i is None:
            return super().run_node(n)
        site = self._sites[i]
        for node in n.all_input_nodes:
            if node.name in site.inputs and node.name not in self.read[i]:
                self.read[i][node.name] = fx.node.map_aggregate(self.env[node], _copy)
        value = super().run_node(n)
        if n.name in site.outputs:
            self._kept[n.name] = value  # the interpreter forgets a value after its last use
        if n.name == site.covered[-1]:
            self.given[i] = [fx.node.map_aggregate(self._kept[name], _copy) for name in site.outputs]
        return value


def _check(site: Site, read: dict[str, Any], given: list[Any]) -> SiteCheck:
    before = {name: fx.node.map_aggregate(value, _copy) for name, value in read.items()}
    arguments = fx.node.map_aggregate(site.arguments, lambda a: read[a.name] if isinstance(a, Named) else a)
    try:
        returned = site.replacement(*arguments)  # type: ignore[misc]
    except Exception as error:  # a stranger's function may raise anything
        return SiteCheck(site, None, f"the replacement failed ({type(error).__name__}: {error})"[:400])
    outputs = [returned] if site.single else list(returned) if isinstance(returned, (tuple, list)) else None
    if outputs is None or len(outputs) != len(given):
        return SiteCheck(site, None, f"the replacement gives {_kind(returned)}, the pattern has {len(given)} outputs")
    for name, value in before.items():
        if not _equal(value, read[name]):
            return SiteCheck(site, None, f"the replacement writes its input {name}")
    for i, (mine, theirs) in enumerate(zip(outputs, given, strict=True)):
        if _kind(mine) != _kind(theirs):
            return SiteCheck(site, None, f"output {i} is {_kind(mine)}, the pattern's is {_kind(theirs)}")
    found = agreement(outputs, given)
    return SiteCheck(site, found, found.problem)


def _copy(value: Any) -> Any:
    """A tensor's copy with its strides; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    if 0 in value.stride() and value.numel():  # expanded: its elements share memory, so the memory is copied
        memory = value.untyped_storage().clone()
        return torch.empty(0, dtype=value.dtype, device=value.device).set_(
            memory, value.storage_offset(), value.shape, value.stride()
        )
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return made.copy_(value.detach())


def _equal(first: Any, second: Any) -> bool:
    if not isinstance(first, torch.Tensor):
        return True
    return (
        bool(torch.equal(torch.nan_to_num(first), torch.nan_to_num(second)))
        if first.is_floating_point()
        else bool(torch.equal(first, second))
    )


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {[*value.shape]}"
    return f"{type(value).__name__}" + (f" of {len(value)}" if isinstance(value, (tuple, list)) else "")

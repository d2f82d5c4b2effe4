"""One Inductor compilation: a callable that has not run yet, how long it took, and what the scheduler fused.

In go a graph module and inputs that stand only for dtype, shape, strides and device (their values are never read); out
comes a `Compiled`. The compiled code is loaded but not run, so the device stays free for whoever measures beside.

The scheduler's groups come from `torch._inductor.config._post_fusion_custom_pass`, which sees its nodes after fusion.
Each ATen node carries the text of the line that it was traced from, a line of the stored graph's own code, whose left
side is the name of the graph's node: that leads from a kernel back to rows of the record.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._functorch import config as functorch
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx

from warehouse.graph.record import GraphRecord

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}
_LINE = re.compile(r'File "<eval_with_key>[^\n]*\n\s+(\w+)\s*(?::[^=\n]+)?=')


@dataclass(frozen=True, slots=True)
class Group:
    """What the scheduler put into one launch. kind: kernel, extern or view (no launch). rows: of the record; those of a
    kernel may take in producers that it computes again, or that Inductor's origins merely mention."""

    kind: str
    rows: tuple[int, ...]


@dataclass(slots=True)
class Compiled:
    """`call` runs the compiled graph. seconds: tracing, lowering, code generation, compiling and loading kernels."""

    call: Callable[..., Any]
    seconds: float
    groups: list[Group] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(group.kind == kind for group in self.groups)


def names_to_rows(module: fx.GraphModule, record: GraphRecord) -> dict[str, int]:
    """Names of the module's nodes, as `to_graph_module` makes them, and the rows of the record that they stand for."""
    rows = [row for row, node in enumerate(record.nodes) if node.op != "placeholder"]
    nodes = [node for node in module.graph.nodes if node.op != "placeholder"]
    return {node.name: row for node, row in zip(nodes, rows, strict=True) if node.op != "output"}


def compile_ahead(module: fx.GraphModule, record: GraphRecord, examples: Sequence[Any], mode: str) -> Compiled:
    """Compile under no_grad with static shapes as one graph. Raises whatever Dynamo and Inductor raise.

    Call `torch._dynamo.reset()` before the next one: Dynamo keeps what it compiled.
    """
    rows = names_to_rows(module, record)
    groups: list[Group] = []
    opened = False

    def after_fusion(nodes: list[Any]) -> list[Any]:
        groups.extend(_settled([_group(node, rows) for node in nodes]))
        return nodes

    def backend(graph: fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        inner: Any = compile_fx(graph, inputs)
        # Until the gate opens, the call that compiles gets nothing for each output: Dynamo only hands them on. An
        # exception would serve too, but torch.fx looks into it while Dynamo still traces every frame.
        outputs: Any = graph.graph.output_node().args[0]
        nothing = [None] * len(outputs)

        def gate(*arguments: Any) -> Any:
            return inner(*arguments) if opened else nothing

        return gate

    # Every compilation is a real one: nothing comes from, or goes to, a cache of graphs.
    options = {"fx_graph_cache": False, "fx_graph_remote_cache": False, "_post_fusion_custom_pass": after_fusion}
    call = torch.compile(module, backend=backend, dynamic=False, fullgraph=True)
    start = time.perf_counter()
    with config.patch({**options, **MODES[mode]}), functorch.patch(enable_autograd_cache=False), torch.no_grad():
        call(*examples)
    seconds = time.perf_counter() - start
    opened = True
    return Compiled(call, seconds, groups)


def _group(node: Any, rows: dict[str, int]) -> Group:
    """A scheduler node, fused or single, as a group."""
    parts = list(node.get_nodes())
    found: set[int] = set()
    for part in parts:
        for origin in part.node.get_origins() if part.node is not None else ():
            match = _LINE.search(origin.meta.get("stack_trace") or "")
            if match and match.group(1) in rows:
                found.add(rows[match.group(1)])
    kinds = {type(part).__name__ for part in parts}
    kind = "extern" if node.is_extern() else "view" if kinds <= {"NopKernelSchedulerNode"} else "kernel"
    return Group(kind, tuple(sorted(found)))


def _settled(groups: list[Group]) -> list[Group]:
    """Groups in order, extern ones without the producers of their operands: a ready-made kernel computes none."""
    made: list[Group] = []
    earlier: set[int] = set()
    for group in groups:
        own = tuple(row for row in group.rows if row not in earlier)
        made.append(Group(group.kind, own) if group.kind == "extern" and own else group)
        earlier |= set(group.rows)
    return made

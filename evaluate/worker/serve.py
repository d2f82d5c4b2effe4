"""One worker's life: load one task's passes, rewrite its graphs, run calls that the judge asks for, report.

Messages in, each with a `nonce` that its answer repeats:
    load   the submission's files, or a baseline's name   -> rules
    graph  a record and the lowering                      -> sites, coverage, nearest misses
    call   inputs as bytes, flags                         -> outputs as bytes, and what was noted
    time   how many calls of which clock                  -> raw samples, seconds
An answer with `failed` says where and how. Nothing here decides; whoever runs in this process can forge any answer, and
gains nothing on correctness by it, since the judge compares the bytes.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from evaluate.match import rewrite
from evaluate.passes.allowed import MOST_CONFIGS
from evaluate.passes.files import Limits, TaskPasses
from evaluate.passes.load import load
from evaluate.worker import clocks, watch
from evaluate.worker.channel import Closed, receive, send
from evaluate.worker.lower import lowered, of_baseline
from evaluate.worker.tensors import pack, unpack
from warehouse.graph.record import GraphRecord, Node
from warehouse.graph.to_fx import to_graph_module


class Worker:
    """State of one life. device: cpu or cuda."""

    def __init__(self, scratch: Path, device: str):
        self.scratch, self.device = scratch, device
        self.folder = scratch / "pass_dir"
        self.passes: list[Any] = []
        self.baseline: str | None = None
        self.held: list[Any] = []
        self.run: Callable[..., Any] = lambda *values: ()
        self.around = watch.Replacements()
        self.audit = watch.Audit(str(self.folder))
        self.before: dict[str, str] = {}
        self.threads = 0

    def load(self, message: dict[str, Any], files: list[int]) -> dict[str, Any]:
        self.before, self.threads = watch.state(), watch.threads()
        self.baseline = message.get("baseline")
        if self.baseline is None:
            passes = TaskPasses(
                message["task"], tuple(message["rules"]), message["sources"], Limits(**message["limits"])
            )
            passes.written(self.folder)
            self.audit.install()
            self.passes = load(passes, self.folder)
            self.audit.events += _oversized(str(self.folder))
        return {"rules": [p.name for p in self.passes], **self._noted()}

    def graph(self, message: dict[str, Any], files: list[int]) -> dict[str, Any]:
        torch._dynamo.reset()
        module = to_graph_module(record_of(message["record"])).to(self.device).eval()
        self.held = []
        if self.baseline is not None:
            self.run = of_baseline(module, self.baseline)
            return {"sites": [], **self._noted()}
        made = rewrite(module, self.passes)
        calls = {site.call for site in made.sites}
        for node in made.graph_module.graph.nodes:
            if node.name in calls:
                node.target = self.around.around(node.target)
        made.graph_module.recompile()
        self.run = lowered(made.graph_module, message["lowering"], self.device)
        return {
            "sites": [{"rule": s.rule, "covered": list(s.covered)} for s in made.sites],
            "coverage": [made.coverage.ops, made.coverage.covered, made.coverage.work],
            "trivial": made.coverage.trivial(),
            "misses": [str(miss)[:500] for miss in made.misses[:3]],
            **self._noted(),
        }

    def call(self, message: dict[str, Any], files: list[int]) -> dict[str, Any]:
        """inputs in files[0], room for outputs and for the inputs afterwards in files[1]. refill: into the memory of
        the inputs before. watched: guard the replacements. ghost: kernels do nothing."""
        given = unpack(message["inputs"], files[0])
        self._place(given, bool(message.get("refill")))
        self.around.guarded, self.around.poison = bool(message.get("watched")), bool(message.get("poison", True))
        self.around.computed, self.around.idle = set(), 0
        launched = watch.LAUNCHES.count
        with torch.no_grad(), watch.stopped_launches(bool(message.get("ghost"))):
            returned = self.run(*self.held)
            self._wait()
        outputs, problem = _flat(returned)
        if problem:
            return {"problem": problem, **self._noted()}
        answer: dict[str, Any] = {"launches": watch.LAUNCHES.count - launched, **self._noted()}
        answer["types"] = [type(v).__name__ for v in outputs]
        answer["aliases"] = _aliases(outputs, self.held)
        if self.around.guarded:
            answer |= {"computed": sorted(self.around.computed), "idle": self.around.idle}
        plain = [_plain(v) for v in outputs]
        after = [v.cpu() if isinstance(v, torch.Tensor) else v for v in self.held]
        specs = pack([*plain, *after], files[1])
        return {**answer, "outputs": specs[: len(plain)], "after": specs[len(plain) :]}

    def time(self, message: dict[str, Any], files: list[int]) -> dict[str, Any]:
        self.around.guarded = False
        with torch.no_grad():
            return clocks.taken(lambda: self.run(*self.held), message["clock"], int(message["samples"]), self.device)

    def _place(self, given: list[Any], refill: bool) -> None:
        fits = len(given) == len(self.held) and all(_alike(a, b) for a, b in zip(given, self.held, strict=False))
        if refill and fits:
            for mine, new in zip(self.held, given, strict=True):
                if isinstance(mine, torch.Tensor):
                    _memory(mine).copy_(_memory(new))
        else:
            # Strides and gaps travel with the whole stretch of memory.
            self.held = [_moved(v, self.device) if isinstance(v, torch.Tensor) else v for v in given]
        self._wait()

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def _noted(self) -> dict[str, Any]:
        if self.baseline is not None:  # ours
            return {}
        now = watch.state()
        return {
            "events": self.audit.events[:],
            "changed": [k for k in now if self.before.get(k) != now[k]],
            "threads": max(0, watch.threads() - self.threads) if self.device == "cpu" else 0,
        }


def serve(channel: socket.socket, scratch: Path, device: str, layers: list[str]) -> None:
    """Answer until the judge closes its end."""
    worker = Worker(scratch, device)
    send(channel, {"up": layers})
    verbs = {"load": worker.load, "graph": worker.graph, "call": worker.call, "time": worker.time}
    while True:
        try:
            message, files = receive(channel, files=2)
        except Closed:
            return
        try:
            answer = verbs[message["verb"]](message, files)
        except Exception as error:  # whatever a submission raises is its own, and becomes a row
            text = " ".join(str(error).split())[:300]
            answer = {"failed": f"{type(error).__name__}: {text}", "kind": type(error).__name__, **worker._noted()}
        send(channel, {"nonce": message["nonce"], **answer})
        for handle in files:
            os.close(handle)


def _oversized(folder: str) -> list[tuple[str, str]]:
    """Tuners of the submission that would try more configurations than are allowed, however they were listed."""
    modules = [m for m in sys.modules.values() if str(getattr(m, "__file__", "")).startswith(folder)]
    sizes = [len(v.configs) for m in modules for v in vars(m).values() if isinstance(getattr(v, "configs", None), list)]
    return [("unbounded_autotune", f"{n} configurations, at most {MOST_CONFIGS}") for n in sizes if n > MOST_CONFIGS]


def record_of(data: dict[str, Any]) -> GraphRecord:
    """A record from its JSON form; `to_graph_module` validates it."""
    nodes = []
    for fields in data["nodes"]:
        for name in ("shape", "stride"):
            if fields[name] is not None:
                fields[name] = tuple(fields[name])
        nodes.append(Node(**fields))
    return GraphRecord(tuple(nodes), tuple(record_of(b) for b in data["bodies"]))


def _flat(returned: Any) -> tuple[list[Any], str | None]:
    """Outputs of a graph in order, or what is odd about them."""
    if isinstance(returned, torch.Tensor):
        return [returned], None
    if not isinstance(returned, (tuple, list)):
        return [], f"an output of type {type(returned).__name__}"
    flat: list[Any] = []
    for member in returned:
        inner, problem = _flat(member) if isinstance(member, (tuple, list, torch.Tensor)) else ([member], None)
        if problem or not all(v is None or isinstance(v, (torch.Tensor, int, float, bool)) for v in inner):
            return [], problem or f"an output of type {type(member).__name__}"
        flat += inner
    return flat, None


def _plain(value: Any) -> Any:
    """A tensor's values on the host, dense: what a subclass or an override would have answered does not matter."""
    if not isinstance(value, torch.Tensor):
        return value
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        value = value.as_subclass(torch.Tensor)
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value)


def _aliases(outputs: list[Any], inputs: list[Any]) -> list[list[int]]:
    places: dict[int, int] = {}
    for i, value in enumerate(inputs):
        if isinstance(value, torch.Tensor) and value.numel():
            places.setdefault(value.untyped_storage().data_ptr(), i)
    return [
        [o, places[value.untyped_storage().data_ptr()]]
        for o, value in enumerate(outputs)
        if isinstance(value, torch.Tensor) and value.numel() and value.untyped_storage().data_ptr() in places
    ]


def _memory(value: torch.Tensor) -> torch.Tensor:
    from evaluate.worker.tensors import reach

    return value.as_strided((reach(value.shape, value.stride()),), (1,), value.storage_offset())


def _moved(value: torch.Tensor, device: str) -> torch.Tensor:
    return _memory(value).to(device, copy=True).as_strided(value.shape, value.stride())


def _alike(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return type(one) is type(other)
    return (one.shape, one.stride(), one.dtype) == (other.shape, other.stride(), other.dtype)

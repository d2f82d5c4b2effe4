"""Building a module without its weights, and turning what was built into fake tensors on the device traced for.

Three build modes, tried in this order (`MODES`):

empty   parameters become meta tensors as they are registered, and factory calls above `LARGE` elements give meta
        tensors at once; buffers and small constants stay real, since constructors often read them (`.item()`)
meta    the constructor runs under `torch.device("meta")`: for classes that reject `empty`
real    ordinary tensors: only for small models, whose forward depends on values

Nothing is initialised: the values of weights never reach a captured graph.
"""

from __future__ import annotations

import contextlib
import random
import weakref
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

MODES = ("empty", "meta", "real")
#: Elements above which a factory call in a constructor gives a meta tensor (16 MiB of float32).
LARGE = 4 << 20
#: Scalar parameters up to which the `real` mode may be tried.
SMALL = 250_000_000
#: Integers up to which an observed tensor keeps its values: sizes of images, lengths, offsets.
FEW = 64

_SIZED = {torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn}
_FILLED = {torch.full}


class _LargeOnMeta(TorchFunctionMode):
    """Sends factory calls above `LARGE` elements to the meta device; everything else runs as written."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if (func in _SIZED or func in _FILLED) and kwargs.get("device") in (None, "cpu", torch.device("cpu")):
            size = kwargs.get("size", args[:1] if func in _FILLED else args)
            if _elements(size) > LARGE:
                kwargs["device"] = "meta"
                kwargs.pop("pin_memory", None)
        return func(*args, **kwargs)


def _elements(size: Any) -> int:
    count = 1
    for dim in pytree.tree_leaves(size):
        if not isinstance(dim, int):
            return 0
        count *= dim
    return count


@contextlib.contextmanager
def building(mode: str, dtype: torch.dtype = torch.float32) -> Iterator[None]:
    """Context in which a constructor runs under a build mode, with `dtype` as the default floating type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if mode == "empty":
                stack.enter_context(_parameters_on_meta())
                stack.enter_context(_LargeOnMeta())
            elif mode == "meta":
                stack.enter_context(torch.device("meta"))
            if mode != "real":
                stack.enter_context(_without_initialisation())
            yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def _parameters_on_meta() -> Iterator[None]:
    register = nn.Module.register_parameter

    def on_meta(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and param.device.type != "meta" and type(param) is nn.Parameter:
            param = nn.Parameter(param.data.to("meta"), requires_grad=param.requires_grad)
        register(self, name, param)

    nn.Module.register_parameter = on_meta  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


@contextlib.contextmanager
def _without_initialisation() -> Iterator[None]:
    """Make torch.nn.init a set of no-ops: initialising meta tensors costs time and gives nothing."""
    names = [n for n in vars(nn.init) if n.endswith("_") and not n.startswith("_") and callable(getattr(nn.init, n))]
    saved = {n: getattr(nn.init, n) for n in names}

    def unchanged(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return tensor

    for name in names:
        setattr(nn.init, name, unchanged)
    try:
        yield
    finally:
        for name, function in saved.items():
            setattr(nn.init, name, function)


def seed() -> None:
    """Start every generator that a constructor, an input or a forward may draw from: captures must be repeatable."""
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def parameter_count(module: nn.Module) -> int:
    """Scalar parameters, tied ones counted once."""
    return sum(p.numel() for p in module.parameters())


class FakeWorld:
    """Fake tensors of one capture: a fake mode, and one fake for each tensor it is asked about (ties are kept)."""

    def __init__(self, device: str, dtype: torch.dtype):
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.device = torch.device(device)
        self.dtype = dtype
        self._fakes: dict[int, torch.Tensor] = {}
        self._kept: list[torch.Tensor] = []

    def fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake that stands for `tensor` on the device, floating types cast to the variant's dtype."""
        if isinstance(tensor, FakeTensor):
            return tensor
        known = self._fakes.get(id(tensor))
        if known is not None:
            return known
        dtype = self.dtype if tensor.dtype in (torch.float32, torch.float64) else tensor.dtype
        with self.mode:
            made: torch.Tensor = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=self.device)
        if isinstance(tensor, nn.Parameter):
            made = nn.Parameter(made, requires_grad=tensor.requires_grad)
        self._fakes[id(tensor)] = made
        self._kept.append(tensor)
        return made

    def enter(self, module: nn.Module) -> None:
        """Replace every parameter and buffer of `module` by its fake, in place."""
        for part in module.modules():
            tables: tuple[dict[str, Any], ...] = (part._parameters, part._buffers)
            for table in tables:
                for name, held in table.items():
                    if held is not None:
                        table[name] = self.fake(held)
            if isinstance(part, nn.RNNBase):  # it keeps two more lists of its weights
                part._flat_weights = [getattr(part, name, None) for name in part._flat_weights_names]
                part._flat_weight_refs = [None if w is None else weakref.ref(w) for w in part._flat_weights]

    def inputs(self, value: Any) -> Any:
        """The same structure with its tensors replaced by fakes."""
        return pytree.tree_map_only(torch.Tensor, self.fake, value)


def cast(value: Any, dtype: torch.dtype) -> Any:
    """The same structure, floating tensors cast to `dtype` (for real tensors)."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    return pytree.tree_map_only(torch.Tensor, one, value)


def observed(tensor: torch.Tensor) -> dict[str, Any] | None:
    """Statistics of a real tensor that `warehouse.graph.inputs` makes recipes from; None when there is no data."""
    if isinstance(tensor, FakeTensor) or tensor.device.type == "meta" or tensor.numel() == 0 or tensor.is_complex():
        return None
    if isinstance(tensor, nn.Parameter):  # never initialised here: its values say nothing
        return None
    data = tensor.detach().to(torch.float64)
    if not bool(torch.isfinite(data).all()):
        return None
    stats: dict[str, Any] = {"min": float(data.min()), "max": float(data.max()), "mean": float(data.mean())}
    stats["std"] = float(data.std(unbiased=False))
    if not tensor.is_floating_point() and tensor.dim() > 0:
        row = data.reshape(-1, tensor.shape[-1])[0]
        arange = torch.arange(tensor.shape[-1], dtype=torch.float64)
        stats["is_arange"] = bool((row - row[0] == arange).all()) and tensor.shape[-1] > 1
        if tensor.numel() <= FEW:
            stats["values"] = tensor.reshape(-1).tolist()
    return stats

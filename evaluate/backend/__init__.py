"""Passes in the compiler: `torch.compile(model, backend=passnet_backend("pass_dir"))`; docs/backend.md."""

from evaluate.backend.backend import Dropped, GraphReport, PassnetBackend, Replaced, passnet_backend

__all__ = ["Dropped", "GraphReport", "PassnetBackend", "Replaced", "passnet_backend"]

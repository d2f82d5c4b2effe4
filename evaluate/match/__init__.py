"""Passes in graphs: our own matcher on torch.fx, what it replaces, and why it does not match.

`rewrite(graph_module, passes)` is the way in; docs/writing-passes.md says what matches what.
"""

from evaluate.match.equivalence import SiteCheck, check_sites
from evaluate.match.pattern import Pass, PassError, make_pass
from evaluate.match.rewrite import LEAST_SHARE, Coverage, Rewritten, Site, rewrite
from evaluate.match.search import Miss

__all__ = [
    "LEAST_SHARE",
    "Coverage",
    "Miss",
    "Pass",
    "PassError",
    "Rewritten",
    "Site",
    "SiteCheck",
    "check_sites",
    "make_pass",
    "rewrite",
]

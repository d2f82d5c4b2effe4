"""The rules by which tasks are chosen: every threshold in one place, with its reason. They go into the manifest."""

from __future__ import annotations

from dataclasses import dataclass

MODE = "default"
SELECTIONS = ("mix", "device", "headroom", "host")


@dataclass(frozen=True, slots=True)
class Rules:
    """What a regeneration is told, and what it goes by.

    device, mode             whose profiles count
    seed                     orders what the rules leave equal, and sends model families to a side
    tasks, subgraphs         how many tasks, and how many members they have together at most
    select                   mix, or one stratum alone
    head_share               the most frequent operator sequences that make up this share are the head of the curve
    slower                   Inductor is slower when its time is over this many times eager's: two runs agree at 5%
    headroom                 device time over the floor from which a better kernel is worth looking for
    launches                 least device time, in launches of an empty copy
    spread                   widest interquartile range over the median: the published benchmark's limit
    loosest_t                tolerance level that eager and Inductor must reach on every distribution
    eval_share               share of the model families whose subgraphs may be in eval
    host_share               share of the tasks that are there by the host's clock alone
    most_members             most members of a task
    unprofiled_a_profiled    held-out members without figures for each profiled one, at most
    """

    device: str
    seed: int = 0
    tasks: int = 200
    subgraphs: int = 2060
    select: str = "mix"
    mode: str = MODE
    head_share: float = 0.5
    slower: float = 1.05
    headroom: float = 1.3
    launches: float = 1.2
    spread: float = 0.2
    loosest_t: int = -3
    eval_share: float = 0.5
    host_share: float = 0.2
    most_members: int = 32
    unprofiled_a_profiled: float = 2.0

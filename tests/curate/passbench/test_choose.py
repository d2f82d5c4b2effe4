"""How tasks are chosen: each filter takes what it names, the splits share nothing, equal rows choose alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.passbench.choose import Choice, choose
from curate.passbench.rules import Rules
from tests.curate.passbench.world import GPU, OPS, Region, connection, regions

#: Everything is in the tail, so that a world of few regions has tasks.
RULES = Rules(GPU, tasks=10, subgraphs=40, head_share=0.0)


def chosen(world: list[Region], **rules: Any) -> Choice:
    return choose(connection(world), replace(RULES, **rules))


def taken(choice: Choice) -> dict[str, int]:
    """Structures by the filter that took them."""
    return {row["filter"]: row["structures"] for row in choice.funnel if row["structures"]}


@pytest.mark.parametrize(
    ("filter", "figures"),
    [
        ("unprofiled", None),
        ("not_measured", {"class": "degenerate"}),
        ("several_kernels", {"scheduler_kernels": 2}),
        ("several_kernels", {"scheduler_kernels": 0, "extern_kernels": 1}),
        ("several_kernels", {"extern_kernels": None}),
        ("several_kernels", {"inductor_copies": 1}),
        ("trivial_answer", {"zero_passes": True}),
        ("trivial_answer", {"constant_passes": True}),
        ("trivial_answer", {"copy_passes": True}),
        ("trivial_answer", {"zero_passes": None}),
        ("ignores_inputs", {"insensitive": [0]}),
        ("inexact", {"inductor_problem": "1 outputs instead of 2"}),
        ("inexact", {"inductor_t": None}),
        ("inexact", {"inductor_t": 0}),
        ("inexact", {"eager_t": 0, "inductor_t": 0}),
        ("inexact", {"reference": None}),
        ("unstable", {"inductor_device_spread": 0.5}),
        ("launch_noise", {"inductor_device_us": 1.3, "eager_device_us": 1.0}),
        (
            "well_served",
            {"inductor_host_us": 30.0, "inductor_device_us": 5.0, "headroom": 1.1},
        ),
    ],
)
def test_each_filter_takes_what_it_names(filter: str, figures: dict[str, Any] | None):
    world = [*regions(6), Region(("relu", "gelu"), ("spoilt",), figures)]
    assert taken(chosen(world))[filter] == 1


def test_a_lone_operator_is_no_task():
    assert taken(chosen([*regions(6), Region(("relu",), ("spoilt",))]))["lone"] == 1


def test_what_has_no_floating_point_input_is_no_task():
    whole = Region(("relu", "gelu"), ("spoilt",), forms=(("given", "int64", 64),))
    assert taken(chosen([*regions(6), whole]))["no_floats"] == 1


def test_figures_of_a_cpu_make_tasks_by_the_hosts_clock_alone():
    no_gpu = dict.fromkeys(("eager_device_us", "inductor_device_us", "launch_us", "headroom", "inductor_kernels"))
    found = chosen(regions(30, figures=no_gpu)).of("eval")
    assert len(found) == 10 and {t["stratum"] for t in found} == {"host"} and found[0]["headroom"] is None


def test_frequent_operator_sequences_are_no_tasks_and_graphs_of_one_template_count_once():
    common = Region(("relu", "gelu"), tuple(f"family{i}" for i in range(20)))
    found = choose(connected := connection([*regions(20), common]), replace(RULES, head_share=0.25))
    assert taken(found)["frequent"] == 1
    rows = connected.sql("SELECT templates, tail_share FROM curve ORDER BY place").fetchall()
    assert rows[0] == (20, 0.0) and rows[1] == (1, 0.5), "20 of 40 pairs are the common one's"


def test_splits_share_no_template_operator_sequence_or_model():
    world = [
        *regions(120),
        # In several families, some of which are on either side.
        *(Region((a, "relu", "tanh", a), (f"family{i}", f"family{i + 40}")) for i, a in enumerate(OPS)),
        # One operator sequence as two structures, of families of their own.
        *(Region(("gelu",) * n, (f"a{n}",), forms=(("given", "float32", w),)) for n in range(2, 8) for w in (64, 4096)),
    ]
    connected = connection(world)
    for seed in range(5):
        found = choose(connected, replace(RULES, tasks=200, subgraphs=2000, seed=seed))
        sides = [found.of("eval"), found.of("train")]
        assert all(len(s) > 20 for s in sides)
        for column in ("structure_hash", "template_hash", "op_hash"):
            left, right = ({t[column] for t in side} for side in sides)
            assert not left & right, column
        families = [{f for t in side for f in t["families"]} for side in sides]
        assert not families[0] & families[1]
        members = [{m["subgraph_hash"] for m in found.members if m["split"] == s} for s in ("eval", "train")]
        assert not members[0] & members[1]


@st.composite
def worlds(draw: st.DrawFn) -> list[Region]:
    """Regions over few operators and families, so that they share sequences and models; some forms without figures."""
    ops = st.lists(st.sampled_from(OPS[:3]), min_size=1, max_size=3).map(tuple)
    families = st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=3).map(lambda f: tuple(sorted(f)))
    figures = st.sampled_from(({}, {"zero_passes": True}, {"headroom": 1.0, "inductor_device_us": 5.0}, None))
    missing = st.sampled_from(({}, {"float16": None}, {"bfloat16": {"insensitive": [0]}}))
    return draw(st.lists(st.builds(Region, ops, families, figures, missing), min_size=1, max_size=12))


@settings(max_examples=25, deadline=None)
@given(worlds(), st.integers(0, 3))
def test_whatever_the_world_splits_are_disjoint_and_shown_members_are_sound(world: list[Region], seed: int):
    connected = connection(world)
    found = choose(connected, replace(RULES, seed=seed))
    told = {split: {t["structure_hash"] for t in found.of(split)} for split in ("eval", "train")}
    for column in ("template_hash", "op_hash"):
        left, right = ({t[column] for t in found.of(split)} for split in told)
        assert not left & right
    left, right = ({f for t in found.of(split) for f in t["families"]} for split in told)
    assert not left & right
    verdicts = dict(connected.sql("SELECT subgraph_hash, dropped_by FROM verdicts").fetchall())
    for member in found.members:
        assert verdicts[member["subgraph_hash"]] == (None if member["profiled"] else "unprofiled")
        assert member["profiled"] or member["case"] != "given"
        assert member["structure_hash"] in told[member["split"]]
    shown = {(m["split"], m["structure_hash"]) for m in found.members if m["case"] == "given"}
    assert shown == {(split, key) for split, keys in told.items() for key in keys}, "every task shows a member"
    assert sum(r["subgraphs"] for r in found.funnel) == len(verdicts)


def test_the_same_rows_give_the_same_choice_and_another_seed_another():
    world = regions(60)
    one, two = chosen(world), chosen(list(reversed(world)))
    assert (one.tasks, one.members, one.funnel) == (two.tasks, two.members, two.funnel)
    assert [t["structure_hash"] for t in chosen(world, seed=1).of("eval")] != [
        t["structure_hash"] for t in one.of("eval")
    ]


def test_strata_are_labelled_and_the_hosts_alone_get_their_share():
    only_host = {"inductor_device_us": 8.0, "headroom": 1.1}
    only_room = {"inductor_device_us": 8.0, "headroom": 1.5}
    pairs = [(a, b) for a in OPS for b in OPS]
    kinds = ({}, only_room, only_host)
    world = [Region(p, (f"f{i}",), kinds[i % 3]) for i, p in enumerate(pairs)]
    strata = [t["stratum"] for t in chosen(world).of("eval")]
    assert {s: strata.count(s) for s in set(strata)} == {"device": 4, "headroom": 4, "host": 2}
    for select in ("device", "headroom", "host"):
        assert {t["stratum"] for t in chosen(world, select=select).tasks} == {select}


def test_tasks_spread_over_families_before_any_family_comes_twice():
    many = [Region((a, b, "relu"), ("crowd",)) for a in OPS for b in OPS[:4]]
    families = [t["family"] for t in chosen([*regions(30), *many], eval_share=1.0, tasks=12).of("eval")]
    assert families.count("crowd") <= 1 and len(set(families)) == 12


def test_members_are_dtypes_and_sizes_of_one_structure_and_some_are_held_out():
    found = chosen(regions(30))
    tasks = {t["structure_hash"]: t for t in found.of("eval")}
    assert len(tasks) == 10
    for key, task in tasks.items():
        mine = [m for m in found.members if m["structure_hash"] == key]
        assert task["members"] == len(mine) == 4 and task["dtypes"] == ["bfloat16", "float16", "float32"]
        assert task["held_out"] == sum(m["case"] != "given" for m in mine) == 1
        assert all(m["case"] in ("given", "held-out", f"held-out {m['variant']}") for m in mine)
        assert mine[0]["case"] == "given" and mine[0]["profiled"]


def test_unprofiled_forms_are_held_out_only_and_bring_no_figures():
    world = regions(30, by_form={"float16": None, "bfloat16": None})
    found = chosen(world)
    unprofiled = [m for m in found.members if not m["profiled"]]
    assert unprofiled and all(m["case"] == f"held-out {m['variant']}" for m in unprofiled)
    assert all(m["host_ratio"] is None and m["headroom"] is None for m in unprofiled)


def test_an_unsound_form_costs_itself_alone():
    found = chosen(regions(30, by_form={"float16": {"zero_passes": True}}))
    assert found.of("eval") and not any(m["variant"] == "float16" for m in found.members)


def test_figures_of_another_device_or_mode_do_not_count():
    assert not chosen(regions(10), device="Another GPU").tasks
    assert not chosen(regions(10), mode="max-autotune").tasks


def test_every_subgraph_is_accounted_for():
    world = [*regions(40), *regions(3, figures={"class": "timeout"})]
    found = chosen(world)
    assert sum(r["subgraphs"] for r in found.funnel) == len({s for r in world for s in r.forms}) * 40
    assert found.funnel[-1]["filter"] == "chosen"

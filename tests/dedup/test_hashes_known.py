"""The definition of the hashes does not change by accident."""

import pytest

from dedup.hashes import HASH_VERSION, hashes
from tests.dedup.graphs import Builder
from warehouse.graph.record import GraphRecord


def writing():
    """softmax of (x + y) * 0.5, the product in place."""
    build = Builder()
    x, y = build.input(), build.input(shape=(3,), dtype="float16")
    z = build.call("operator.add", x, y)
    build.call("torch.Tensor.mul_", z, 0.5, effect=True)
    return build.output(build.call("torch.nn.functional.softmax", z, kwargs={"dim": -1}))


def symbolic():
    """x.view(n * 2) for x of shape [n, 2]; two inputs that only their use tells apart; an unused one."""
    build = Builder()
    n = build.add("placeholder", value="symint", expr="s0", slot=0, role="symbol", dtype=None, shape=None)
    x, y, z = (build.input(shape=(4, 2), expr="[s0, 2]") for _ in range(3))
    build.input(shape=(3,))
    size = build.call("operator.mul", n, 2, value="symint", expr="2*s0", dtype=None, shape=None)
    total = build.call("operator.add", y, x, shape=(4, 2), expr="[s0, 2]")
    gap = build.call("operator.sub", y, z, shape=(4, 2), expr="[s0, 2]")
    flat = build.call("torch.Tensor.view", total, size, shape=(8,), expr="[2*s0]")
    return build.output(flat, gap)


def holding():
    """A condition between two nested graphs, one of which draws."""

    def body(target, effect):
        build = Builder()
        return build.output(build.call(target, build.input(), effect=effect))

    build = Builder()
    x = build.input()
    one, two = (build.add("get_attr", f"body_{i}", value="other") for i in range(2))
    out = build.call("torch.ops.higher_order.cond", x, one, two, [x], effect=True)
    return GraphRecord(build.output(out).nodes, (body("torch.relu", False), body("torch.rand_like", True)))


KNOWN = {
    writing: (
        "89f4799ebfccfaa2f166a7d0968ac369",
        "952580b0e5efe0fccbb8ebdf0c3e5f09",
        "9d1558280aa5eaeb5f475076f90ab4db",
        "1ab574a873763a0598b5ce3cbd71af2a",
    ),
    symbolic: (
        "28beebb1a44e5ecf3c83202158d3ca0f",
        "aa1f700c086e8b1dc6cc46fefc273dd7",
        "8475d6bb078cc36a7eb70270cb93550e",
        "12f1804b381db3c0c079e215f108f673",
    ),
    holding: (
        "efef194362ee1e6807fdb60854a6185e",
        "b2ea1924930b71e703916f8cba480ff5",
        "17de115009c476cb6b992009cfc79a98",
        "5bdaf490aa8989aed0fa2a103b611eea",
    ),
}


@pytest.mark.parametrize("graph", [writing, symbolic, holding])
def test_hashes_are_what_they_were(graph):
    """If this fails on purpose, raise HASH_VERSION and write the new values here."""
    found = hashes(graph())
    assert (found.graph_hash, found.structure_hash, found.template_hash, found.op_hash) == KNOWN[graph]
    assert HASH_VERSION == 2

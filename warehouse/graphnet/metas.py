"""The placeholders of a record as `weight_meta.py`: a class for each, from its dtype, sizes and value recipe.

GraphNet's own attributes say of a recipe what they can (mean and std, extremes, values of small tensors); the recipe
itself, the parameter's path, its role and its strides stand beside them for readers that know them.
"""

from __future__ import annotations

import math
from typing import Any

from warehouse.graph.inputs import infer_recipes
from warehouse.graph.literals import loads
from warehouse.graph.record import GraphRecord, Node
from warehouse.graphnet.layout import PATH, RECIPE, ROLE, STRIDE

#: Tensors below this size carry their values where the recipe fixes them.
LITERAL = 64


def meta_text(record: GraphRecord, arguments: tuple[str, ...]) -> str:
    """The text of weight_meta.py; `arguments` are the names in forward, by slot."""
    if any(node.recipe is None for _, node in record.placeholders()):
        record = infer_recipes(record)
    classes = []
    for name, (_, node) in zip(arguments, record.placeholders(), strict=True):
        lines = [f"    {key} = {_literal(value)}" for key, value in _attributes(name, node).items()]
        classes.append(f"class Program_weight_tensor_meta_{name}:\n" + "\n".join(lines) + "\n")
    return "\n\n".join(classes)


def constraints_text(record: GraphRecord, arguments: tuple[str, ...]) -> str:
    """The text of input_tensor_constraints.py: no symbols, the sizes of each argument."""
    shapes = zip(arguments, record.placeholders(), strict=True)
    listed = "\n".join(f"    ({list(node.shape or ())}, {name!r})," for name, (_, node) in sorted(shapes))
    return (
        "dynamic_dim_constraint_symbols = []\n\ndynamic_dim_constraint_symbol2example_value = {}\n\n"
        f"dynamic_dim_constraint_relations = []\n\ndynamic_dim_constraint_input_shapes = [\n{listed}\n]\n"
    )


def _attributes(name: str, node: Node) -> dict[str, Any]:
    recipe = loads(node.recipe or "null") or {"kind": "normal", "mean": 0.0, "std": 1.0}
    symbol = node.value != "tensor"
    shape = [] if symbol else [max(s, 1) if s < 0 else s for s in node.shape or ()]
    device = {"cuda": "cuda:0"}.get(node.device or "cpu", node.device or "cpu")
    stated = {
        "name": name,
        PATH: node.name or name,
        "shape": shape,
        "dtype": f"torch.{'int64' if symbol else node.dtype}",
        "device": "cpu" if symbol else device,
        "mean": None,
        "std": None,
        **_numbers(recipe, math.prod(shape), str(node.dtype)),
        ROLE: node.role,
        RECIPE: node.recipe,
    }
    return stated | ({STRIDE: list(node.stride)} if node.stride is not None else {})


def _numbers(recipe: dict[str, Any], elements: int, dtype: str) -> dict[str, Any]:
    """What GraphNet's attributes can say of a recipe."""
    kind = recipe["kind"]
    real = "float" in dtype
    if kind == "symbol":
        return {"data": [int(recipe["value"])]}
    if kind == "values":
        return {"mean": 0.0 if real else None, "std": 0.0 if real else None, "data": list(recipe["values"])}
    if kind == "constant" and elements < LITERAL and dtype != "bool":
        number = float(recipe["value"]) if real else int(recipe["value"])
        return {"mean": number if real else None, "std": 0.0 if real else None, "data": [number] * elements}
    if kind == "constant":
        number = float(recipe["value"])
        return {"mean": number, "std": 0.0, "min_val": int(number), "max_val": int(number)} if not real else {
            "mean": number, "std": 0.0, "data": None}  # fmt: skip
    if kind == "index":
        return {"min_val": int(recipe["low"]), "max_val": int(recipe["high"]) - 1}
    if kind == "arange":
        return {"min_val": int(recipe["start"]), "max_val": int(recipe["start"])}
    if kind == "normal":
        bounds = {"min_val": recipe["low"], "max_val": recipe["high"]} if "low" in recipe else {}
        return {"mean": float(recipe["mean"]), "std": float(recipe["std"]), **bounds, "data": None}
    if kind == "positive":
        return {
            "mean": float(recipe["mean"]),
            "std": float(recipe["std"]),
            "min_val": recipe["mean"] / 10,
            "data": None,
        }
    if kind == "probability":
        return {"mean": 0.5, "std": 0.26, "min_val": 0.05, "max_val": 0.95, "data": None}
    if real:  # a mask, drawn as what it leaves through
        return {"mean": 0.0 if recipe.get("form") == "additive" else 1.0, "std": 0.0, "data": None}
    return {"data": None} if dtype == "bool" else {"min_val": 0, "max_val": 1}


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(v) for v in value) + "]"
    return repr(value)

"""Symbolic sizes without the names of their symbols.

In: the `expr` column of a record (`s0*2`, `[s0, 3, s1//2]`). Out: a text that depends neither on how symbols are called
nor on the order in which sympy, which sorts by name, prints the terms of a sum or the factors of a product.

Expressions are read as Python syntax and never evaluated. Text that is not such syntax keeps its order of words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

_SYMBOL = re.compile(r"\b[a-z]+\d+\b")
_UNORDERED = {"Max", "Min", "Eq", "Ne", "And", "Or"}
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

Label = Callable[[str], str]


def nameless(expressions: Iterable[str]) -> list[str]:
    """Each expression with its symbols renamed by first use along the sequence.

    Symbols that are a size or a value by themselves come first: where `s0*s1` is all that is known of two symbols, the
    order in which they are printed says nothing.
    """
    texts = list(expressions)
    names: dict[str, str] = {}

    def label(symbol: str) -> str:
        return names.setdefault(symbol, f"{_kind(symbol)}{len(names)}")

    distinct = list(dict.fromkeys(texts))
    for text in distinct:
        for symbol in alone(text):
            label(symbol)
    for text in distinct:
        for symbol in _SYMBOL.findall(text):
            label(symbol)
    said = {text: _normal(text, label) for text in distinct}
    return [said[text] for text in texts]


@lru_cache(1 << 14)
def blank(expression: str) -> str:
    """The expression with every symbol left out: what can be said of it without looking at other rows."""
    return _normal(expression, lambda symbol: _kind(symbol) + "?")


@lru_cache(1 << 14)
def alone(expression: str) -> tuple[str, ...]:
    """The symbols that make up a size (or the whole) of an expression by themselves, in order."""
    return tuple(size for size in _sizes(expression) if _SYMBOL.fullmatch(size))


@lru_cache(1 << 14)
def mentions(expression: str) -> tuple[tuple[str, int], ...]:
    """(symbol, place) of each mention. Place is which size, from 1, the symbol is by itself; 0 inside of another."""
    found: list[tuple[str, int]] = []
    for place, size in enumerate(_sizes(expression), 1):
        whole = _SYMBOL.fullmatch(size)
        found += [(size, place)] if whole else [(symbol, 0) for symbol in _SYMBOL.findall(size)]
    return tuple(found)


def _sizes(expression: str) -> list[str]:
    """The sizes of a shape, or the one expression of a symbolic number."""
    if not expression.startswith("["):
        return [expression]
    sizes, depth, start = [], 0, 1
    for at, letter in enumerate(expression):
        depth += (letter in "([") - (letter in ")]")
        if (letter == "," and depth == 1) or (letter == "]" and depth == 0):
            sizes.append(expression[start:at].strip())
            start = at + 1
    return sizes


def _kind(symbol: str) -> str:
    return "u" if symbol.startswith("u") else "s"  # u: known only once data is seen


def _normal(text: str, label: Label) -> str:
    try:
        return _read(_parsed(text), label)
    except _UNREADABLE:
        return _SYMBOL.sub(lambda match: label(match.group(0)), text)


@lru_cache(1 << 14)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _read(node: ast.AST, label: Label) -> str:
    if isinstance(node, ast.Name):
        return label(node.id) if _SYMBOL.fullmatch(node.id) else node.id
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return "+(" + ",".join(sorted(_terms(node, label))) + ")"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div) or isinstance(node, ast.UnaryOp):
        return _product(node, 1, label)
    if isinstance(node, ast.Call):
        args = [_read(a, label) for a in node.args]
        name = _read(node.func, label)
        return f"{name}({','.join(sorted(args) if name in _UNORDERED else args)})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        return f"{type(node.op).__name__}({','.join(sorted((_read(node.left, label), _read(node.right, label))))})"
    parts = [_read(child, label) for child in ast.iter_child_nodes(node)]  # a list, a comparison, a power ...
    return f"{type(node).__name__}({','.join(parts)})"


def _terms(node: ast.AST, label: Label) -> list[str]:
    """The terms of a sum, each with its sign."""
    found: list[str] = []
    waiting = [(node, 1)]
    while waiting:
        part, sign = waiting.pop()
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
            waiting += [(part.left, sign), (part.right, -sign if isinstance(part.op, ast.Sub) else sign)]
        else:
            found.append(_product(part, sign, label))
    return found


def _product(node: ast.AST, sign: int, label: Label) -> str:
    """A product: its sign, then its factors in order, divisors marked."""
    factors: list[str] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
            sign = -sign
            waiting.append(part.operand)
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
            waiting += [part.left, part.right]
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
            waiting.append(part.left)
            factors.append("/" + _read(part.right, label))
        elif isinstance(part, ast.UnaryOp):
            factors.append(f"{type(part.op).__name__}({_read(part.operand, label)})")
        else:
            factors.append(_read(part, label))
    sign_text = "-" if sign < 0 else ""
    return sign_text + (factors[0] if len(factors) == 1 else "*(" + ",".join(sorted(factors)) + ")")

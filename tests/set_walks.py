"""Finds code that goes through a set, one element after the other.

Elements of a set come in the order of their hashes, and those of texts and bytes differ in each
process. What only asks, counts or sorts does not hang on the order; a loop that awaits or answers
does. Names are taken for sets by their annotations and by what is assigned to them, in their own
function; numbers hash to themselves, so sets of them are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

ORDERLESS = frozenset({"sorted", "set", "frozenset", "any", "all", "sum", "min", "max", "len"})
"""Calls that give the same for each order of what they are given."""
ORDERED = frozenset({"list", "tuple", "iter", "dict", "join", "extend", "fromkeys", "pop"})
"""Calls that keep the order, or take what comes first."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def set_walks(tree: ast.Module) -> list[tuple[int, str]]:
    """Line and text of each set that is gone through."""
    fields = _sets_of(node for node in ast.walk(tree) if _is_field(node))
    found = {}
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, Function))):
        own = list(_own_nodes(scope))
        arguments = scope.args if isinstance(scope, Function) else None
        names = fields | _sets_of([*own, *(ast.walk(arguments) if arguments else ())])
        found.update({(walked.lineno, ast.unparse(walked)): None for walked in _walked(own, names)})
    return list(found)


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """What is in a scope, and not in a function within it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, Function):
            yield child
            yield from _own_nodes(child)


def _is_field(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute)


def _sets_of(nodes: Iterator[ast.AST] | list[ast.AST]) -> set[str]:
    """Names that nodes declare to be sets, or assign sets to."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and _is_set_type(node.annotation):
            found.add(ast.unparse(node.target))
        elif isinstance(node, ast.arg) and node.annotation and _is_set_type(node.annotation):
            found.add(node.arg)
        elif isinstance(node, ast.Assign) and _is_set_value(node.value):
            found.update(map(ast.unparse, node.targets))
    return found


def _is_set_type(node: ast.expr) -> bool:
    kind, _, element = ast.unparse(node).partition("[")
    return kind.rpartition(".")[2] in {"set", "frozenset", "Set"} and not element.startswith("int")


def _is_set_value(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in {"set", "frozenset"}
    return isinstance(node, (ast.Set, ast.SetComp))


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _walked(nodes: list[ast.AST], names: set[str]) -> Iterator[ast.expr]:
    """Sets that are gone through in an order that shows."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    harmless: set[int] = set()  # parts of calls and of sets, which have no order
    for node in nodes:
        if isinstance(node, ast.SetComp):
            harmless.update(map(id, node.generators))
    for call in calls:
        if _name_of(call) in ORDERLESS:
            harmless.update(map(id, call.args))
            for argument in call.args:
                if isinstance(argument, (ast.GeneratorExp, ast.ListComp)):
                    harmless.update(map(id, argument.generators))
    for node in nodes:
        if id(node) not in harmless:
            yield from (each for each in _goes_through(node) if _is_set(each, names))


def _is_set(node: ast.expr, names: set[str]) -> bool:
    return _is_set_value(node) or ast.unparse(node) in names


def _goes_through(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        return [node.iter]
    if isinstance(node, ast.Starred):
        return [node.value]
    if isinstance(node, ast.Call) and _name_of(node) in ORDERED:
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return node.args or (owner if _name_of(node) == "pop" else [])
    return []

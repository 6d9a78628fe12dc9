"""Modules and packages that import each other in a circle, from a graph of imports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from tests.package_source import Module, imports

Graph = Mapping[str, AbstractSet[str]]


def import_graph(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Module -> modules of ours that it imports, also late, and also for the type checker alone."""
    by_name = {module.name: module for module in modules}
    graph: dict[str, set[str]] = {}
    for name, module in by_name.items():
        graph[name] = {home_of(each.target, by_name) for each in imports(module)} - {"", name}
    return graph


def home_of(target: str, names: Mapping[str, object]) -> str:
    """The module among `names` that has `target`, which may be a name in it; empty for foreign."""
    while target and target not in names:
        target = target.rpartition(".")[0]
    return target


def room_graph(graph: Graph, packages: AbstractSet[str]) -> dict[str, set[str]]:
    """The same between rooms: a room is a package with the modules that lie in it directly."""

    def room(name: str) -> str:
        return name if name in packages else name.rpartition(".")[0]

    rooms: dict[str, set[str]] = {}
    for name, targets in graph.items():
        rooms.setdefault(room(name), set()).update(room(each) for each in targets)
    return {name: targets - {name} for name, targets in rooms.items()}


def circles(graph: Graph) -> list[set[str]]:
    """The largest groups whose members reach each other; groups of one are left out."""
    reached = {name: _reached(graph, name) for name in graph}
    found: list[set[str]] = []
    seen: set[str] = set()
    for name in sorted(graph):
        if name not in seen and name in reached[name]:
            circle = {each for each in reached[name] if name in reached.get(each, ())}
            seen |= circle
            found.append(circle)
    return found


def _reached(graph: Graph, start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph.get(waiting.pop(), ()):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached

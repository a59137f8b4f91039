"""The order of the rooms: a package imports only those above it, and no module imports itself by a detour."""

import ast
from pathlib import Path

import pactrain

SOURCE = Path(pactrain.__file__).parent

ROOMS = (
    "runtime", "problem", "distributions", "bounds", "scan", "rules", "training", "certification", "runs", "report",
    "fit", "baselines", "data", "models", "sklearn", "integrations", "experiments", "cli",
)  # fmt: skip
"""From the ground up, as docs/architecture.md lists them."""

MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}


def imports(path: Path) -> set[str]:
    """Our modules that a file imports anywhere: late imports and those for type checkers too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pactrain":
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                found.add(inner if inner in MODULES else str(node.module))
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith("pactrain.")}
    return found & MODULES.keys()


def room(module: str) -> str | None:
    """The room of a module; None for the package itself, which only names what it holds."""
    name = module.partition(".")[2].partition(".")[0]
    return name if name in ROOMS else None


def test_nothing_is_imported_from_a_room_above() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, path in MODULES.items()
        for other in imports(path)
        if (here := room(module)) and (there := room(other)) and ROOMS.index(there) > ROOMS.index(here)
    ]
    assert wrong == []


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {module: {o for o in imports(path) if room(o)} - {module} for module, path in MODULES.items()}
    while free := [module for module, needed in graph.items() if not needed]:
        graph = {m: needed - set(free) for m, needed in graph.items() if m not in free}
    assert not graph, f"modules in or above a cycle: {sorted(graph)}"


def test_a_newcomer_sees_few_things() -> None:
    entries = [path for path in SOURCE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 22
    assert sum(path.suffix == ".py" for path in entries) <= 5
    assert {path.stem for path in entries} - {"__init__", "__main__", "py"} == set(ROOMS)

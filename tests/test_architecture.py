"""What keeps the code easy to find one's way in: the order of the rooms, few things at the top, short files, tests that mirror modules."""

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pactrain

SOURCE, TESTS = Path(pactrain.__file__).parent, Path(__file__).parent

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


def test_bounds_are_formulas_alone() -> None:
    found = {room(other) for module, path in MODULES.items() if room(module) == "bounds" for other in imports(path)}
    assert found == {"bounds", "runtime"}


def test_a_newcomer_sees_few_things() -> None:
    entries = [path for path in SOURCE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 22
    assert sum(path.suffix == ".py" for path in entries) <= 5
    assert {path.stem for path in entries} - {"__init__", "__main__", "py"} == set(ROOMS)


def test_nothing_binds_the_name_of_fit_to_its_module() -> None:
    """Python would: `pactrain.fit` is then no function any more, for all code of the process."""
    files = [
        *SOURCE.rglob("*.py"),
        *TESTS.rglob("*.py"),
        *(TESTS.parent / "examples").rglob("*.py"),
        *(TESTS.parent / "docs").rglob("*.md"),
    ]
    importing = re.compile(r"^ *(?:from|import) pactrain\.fit\b", re.MULTILINE)
    allowed = {SOURCE / "__init__.py"}  # for type checkers alone
    assert [str(file) for file in files if file not in allowed and importing.search(file.read_text())] == []


def test_fit_is_a_table_of_contents() -> None:
    assert len(imports(MODULES["pactrain.fit"])) <= 15


def test_files_and_functions_are_short() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES.values()}
    assert 80 <= statistics.median(lengths.values()) <= 200
    lengths |= {str(path): len(path.read_text().splitlines()) for path in TESTS.rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > 320} == {}
    functions = {
        f"{path.relative_to(SOURCE)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES.values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in functions.items() if lines > 60} == {}


ACROSS = {"attacks", "docs", "faults", "oracle", "statistics", "tools"}
"""Folders of tests about several modules at once, or about none."""


def mirrors(test: Path) -> bool:
    """True for `x/test_y.py` and `x/test_y_some_aspect.py` if there is a module `x/y.py` or a package `x/y`, and for `x/test_x.py`."""
    folder, name = SOURCE / test.parent, test.stem.removeprefix("test_")
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()} | {folder.name}
    return any(name == module or name.startswith(f"{module}_") for module in modules)


def test_tests_mirror_the_modules() -> None:
    tests = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    assert [str(test) for test in tests if test.parts[0] not in ACROSS and not mirrors(test)] == []
    assert not mirrors(Path("bounds/test_gone.py"))


def test_the_page_names_files_that_there_are() -> None:
    page = (TESTS.parent / "docs" / "architecture.md").read_text()
    named = {name for name in re.findall(r"`([\w./]+/[\w.]+\.(?:py|jinja))`", page) if "x/" not in name}
    assert len(named) > 80
    assert [name for name in sorted(named) if not any((root / name).is_file() for root in (SOURCE, TESTS.parent))] == []


def patched_constants(test: Path) -> Iterator[str]:
    """Constants of pactrain that a test patches, each as `module.NAME` by the name under which the test reaches the module."""
    tree = ast.parse(test.read_text())
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pactrain"):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr" and node.args:
            place, *rest = node.args
            if isinstance(place, ast.Constant) and str(place.value).startswith("pactrain."):
                name = str(place.value)
            elif isinstance(place, ast.Name) and place.id in known and rest and isinstance(rest[0], ast.Constant):
                name = f"{known[place.id]}.{rest[0].value!s}"
            else:
                continue
            if name.rpartition(".")[2].isupper():
                yield name


def defines(module: Path, name: str) -> bool:
    """True if a module assigns to a name at its top."""
    nodes = [node for node in ast.parse(module.read_text()).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [t for node in nodes for t in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    return any(isinstance(part, ast.Name) and part.id == name for target in targets for part in ast.walk(target))


def test_tests_patch_constants_where_they_are_defined() -> None:
    found = {name for test in TESTS.rglob("*.py") for name in patched_constants(test)}
    assert len(found) > 15
    assert not defines(MODULES["pactrain.rules.gamma.walk"], "FURTHER_LENGTH")  # imported there
    assert [
        name for name in sorted(found) if not defines(MODULES[name.rpartition(".")[0]], name.rpartition(".")[2])
    ] == []


CATCH_ALL = {
    "runtime/gave_up.py": 1,  # the user's own network and loss, which may raise anything; becomes a note
    "runs/run.py": 1,  # drawing the report, which must not cost a finished run; becomes a note
    "experiments/plan.py": 1,  # a run of a sweep; its traceback becomes the outcome's error
}


def _is_broad(node: ast.AST) -> bool:
    """True for `except:`, `except Exception`, also in a tuple, and `suppress(Exception)`."""
    if isinstance(node, ast.ExceptHandler):
        named = [node.type] if not isinstance(node.type, ast.Tuple) else node.type.elts
    elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "suppress":
        named = list(node.args)
    else:
        return False
    return any(name is None or getattr(name, "id", "") in ("Exception", "BaseException") for name in named)


def test_few_handlers_catch_everything() -> None:
    counts = {
        str(file.relative_to(SOURCE)): sum(map(_is_broad, ast.walk(ast.parse(file.read_text()))))
        for file in sorted(SOURCE.rglob("*.py"))
    }
    assert {name: count for name, count in counts.items() if count} == CATCH_ALL
    assert _is_broad(ast.parse("try:\n    pass\nexcept (OSError, Exception):\n    pass").body[0].handlers[0])  # type: ignore[attr-defined]

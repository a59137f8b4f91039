"""`pactrain data`: the named data sets, where they are, and how to get them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pactrain.cli.option_types import Folder, JsonFile
from pactrain.cli.output import console, write_result
from pactrain.runtime.progress import Bar

if TYPE_CHECKING:
    from pactrain.data.catalogue import Entry


@dataclass
class _Look:
    data_root: Folder = None
    """Folder with data files; then $PACTRAIN_DATA and the user's cache are looked at."""
    json_to: JsonFile = None
    """Write the result as JSON to this file, or to standard output for '-'."""


@dataclass
class List(_Look):
    """Every named data set: what it is, whether it is here, and where."""

    def run(self) -> int:
        """Carry it out."""
        from pactrain.data.catalogue import ENTRIES

        screen = console(self.json_to)
        sets = [described(entry, self.data_root) for entry in ENTRIES.values()]
        lines = [("name", "kind", "examples", "test", "classes", "where")] + [
            (
                s["name"],
                s["kind"],
                f"{s['examples']:,}",
                f"{s['test']:,}" if s["test"] else "",
                str(s["classes"] or "regression"),
                s["where"] or ("not here: pactrain data fetch " + s["name"] if s["fetchable"] else "not here"),
            )
            for s in sets
        ]
        for name, kind, examples, test, classes, where in lines:  # not a table: paths are to be seen whole
            screen.print(f"{name:21}{kind:7}{examples:>9}{test:>8}{classes:>9}  {where}", markup=False)
        write_result(self.json_to, {"sets": sets})
        return 0


@dataclass
class _One:
    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """As in `pactrain data list`."""


@dataclass
class Where(_Look, _One):
    """The file or folder that holds a data set."""

    def run(self) -> int:
        """Carry it out."""
        from pactrain.data.catalogue import entry_of, fetchable
        from pactrain.data.places import places
        from pactrain.runtime.errors import DataError

        entry = entry_of(self.name)
        found = described(entry, self.data_root)
        if not found["present"]:
            searched = ", ".join(map(str, places(self.data_root)))
            way = f"; get it with `pactrain data fetch {self.name}`" if fetchable(entry) else ""
            raise DataError(f"{self.name} is in none of {searched}{way}")
        console(self.json_to).print(found["where"], markup=False)
        write_result(self.json_to, found)
        return 0


@dataclass
class Fetch(_One):
    """Download a data set from its home, unless it is here already."""

    data_root: Folder = None
    """Folder to put it into; by default the user's cache."""
    json_to: JsonFile = None
    """Write the result as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out."""
        from pactrain.data.catalogue import entry_of, fetch, where

        screen, entry = console(self.json_to), entry_of(self.name)
        here = where(entry, self.data_root) is not None
        with Bar(screen) as bar:
            path = fetch(entry, self.data_root, into=self.data_root, progress=bar)
        screen.print(f"{self.name} {'was here already' if here else 'was fetched'}: {path}", markup=False)
        write_result(self.json_to, described(entry, self.data_root) | {"fetched": not here})
        return 0


def described(entry: "Entry", root: Path | None) -> dict[str, Any]:
    """A set as data."""
    from pactrain.data.catalogue import fetchable, where

    found = where(entry, root)
    return {
        "name": entry.name,
        "kind": entry.kind,
        "examples": entry.examples,
        "test": entry.test,
        "classes": entry.classes,
        "present": found is not None,
        "where": None if found is None else str(found),
        "fetchable": fetchable(entry),
    }


ACTIONS = ("list", "where", "fetch")

Action = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Where, tyro.conf.subcommand("where")]
    | Annotated[Fetch, tyro.conf.subcommand("fetch")]
)


@dataclass
class Data:
    """The named data sets: list them, find them, fetch them."""

    action: Action

    def run(self) -> int:
        """Carry it out."""
        return self.action.run()

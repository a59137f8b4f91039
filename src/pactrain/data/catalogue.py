"""The named data sets: what they are, which files hold them, where those are found, and where they come from."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pactrain.data.archive import unpack
from pactrain.data.download import download
from pactrain.data.places import cache_folder, places
from pactrain.runtime.errors import DataError
from pactrain.runtime.events import Callback, silent

Kind = Literal["table", "images", "graph", "text"]


@dataclass(frozen=True)
class Published:
    """A file on its home's server; `folder` is what an archive unpacks to, or where a file is put."""

    url: str
    md5: str
    size: int
    folder: str


@dataclass(frozen=True)
class Entry:
    """A named set.

    layouts:   sets of files, any one of which holds it; a file may have .gz at its end as well.
    published: what to fetch; empty where a set comes with scikit-learn or has no home of its own (graphs: `graphs.py`).
    """

    name: str
    kind: Kind
    examples: int
    test: int
    classes: int
    layouts: tuple[tuple[str, ...], ...] = ()
    published: tuple[Published, ...] = ()


def _table(name: str, examples: int, classes: int, file: str = "") -> Entry:
    return Entry(name, "table", examples, 0, classes, ((file,),) if file else ())


def _graph(name: str, nodes: int, classes: int) -> Entry:
    return Entry(f"graph:{name}", "graph", nodes, 0, classes, ((f"{name}.npz",),))


def _cifar(classes: int, parts: Iterable[str], md5: str, size: int) -> Entry:
    parts, stem = list(parts), f"cifar-{classes}"
    binary, python = ("batches-bin", "batches-py") if classes == 10 else ("binary", "python")
    layouts = (
        tuple(f"{stem}-{binary}/{part}.bin" for part in parts),
        tuple(f"{stem}-{python}/{part}" for part in parts),
    )
    url = f"https://www.cs.toronto.edu/~kriz/{stem}-binary.tar.gz"
    return Entry(
        f"cifar{classes}", "images", 50_000, 10_000, classes, layouts, (Published(url, md5, size, f"{stem}-{binary}"),)
    )


IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def _idx(name: str, folders: Iterable[str], home: str, checks: Iterable[tuple[str, int]]) -> Entry:
    layouts = [tuple(f"{folder}/{file}" for file in IDX) for folder in folders]
    layouts.append((f"{name}.npz",))
    published = tuple(
        Published(f"{home}/{file}.gz", md5, size, name) for file, (md5, size) in zip(IDX, checks, strict=True)
    )
    return Entry(name, "images", 60_000, 10_000, 10, tuple(layouts), published)


ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _table("digits", 1797, 10),
        _table("breast_cancer", 569, 2),
        _table("wine", 178, 3),
        _table("iris", 150, 3),
        _table("diabetes", 442, 0),
        _idx(
            "mnist",
            ("mnist", "MNIST/raw"),
            "https://ossci-datasets.s3.amazonaws.com/mnist",  # the home of old answers no more; the checksums are its own
            (
                ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
                ("d53e105ee54ea40749a09fcbcd1e9432", 28_881),
                ("9fb629c4189551a2d022fa330f9573f3", 1_648_877),
                ("ec29112dd5afa0611ce80d1b7f02629c", 4_542),
            ),
        ),
        _idx(
            "fashion_mnist",
            ("fashion_mnist", "fashion-mnist", "FashionMNIST/raw"),
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            (
                ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
                ("25c81989df183df01b3e8a0aad5dffbe", 29_515),
                ("bef4ecab320f06d8554ea6380940ec79", 4_422_102),
                ("bb300cfdad3c16e7a12a480ee83cd310", 5_148),
            ),
        ),
        _cifar(
            10,
            [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"],
            "c32a1d4ab5d03f1284b67883e8d87530",
            170_052_171,
        ),
        _cifar(100, ["train", "test"], "03b5dce01913d631647c71ecec9e9cb8", 168_513_733),
        _table("uci:concrete", 1030, 0, "uci_regression.npz"),
        _table("uci:energy", 768, 0, "uci_regression.npz"),
        _table("uci:wine_quality_red", 1599, 0, "uci_regression.npz"),
        _table("uci:yacht", 308, 0, "uci_regression.npz"),
        _graph("cora_ml", 2_995, 7),
        _graph("citeseer", 4_230, 6),
        _graph("dblp", 17_716, 4),
        _graph("pubmed", 19_717, 3),
        _graph("cora", 19_793, 70),
    )
}


def entry_of(name: str) -> Entry:
    """The set of that name."""
    if name not in ENTRIES:
        raise DataError(f"there is no data set {name!r}; use one of {', '.join(ENTRIES)}")
    return ENTRIES[name]


def fetchable(entry: Entry) -> bool:
    """True if the set can be downloaded."""
    return bool(entry.published) or entry.kind == "graph"


def located(entry: Entry, root: str | Path | None = None) -> list[Path] | None:
    """The files of the first layout that is all there, in the first place that has one; None if no place has."""
    for place in places(root):
        for layout in entry.layouts:
            found = [p for name in layout for p in (place / name, place / f"{name}.gz") if p.is_file()]
            if len({p.name.removesuffix(".gz") for p in found}) == len(layout):
                return [p for p in found if p.suffix != ".gz" or p.with_suffix("") not in found]
    return None


def where(entry: Entry, root: str | Path | None = None) -> Path | None:
    """The file or folder that holds the set; None if it is nowhere."""
    if not entry.layouts:
        import sklearn.datasets

        return Path(sklearn.datasets.__file__).parent / "data"
    files = located(entry, root)
    return None if files is None else files[0] if len(files) == 1 else files[0].parent


def fetch(
    entry: Entry, root: str | Path | None = None, *, into: str | Path | None = None, progress: Callback = silent
) -> Path:
    """Download a set, into the cache by default, unless it is already in one of the places; tells where it is."""
    if (present := where(entry, root)) is not None:
        return present
    goal = Path(into or cache_folder())
    if entry.kind == "graph":
        from pactrain.data.graphs import fetch_graph

        return fetch_graph(entry.name.removeprefix("graph:"), goal, progress=progress)
    if not entry.published:
        names = " or ".join(", ".join(layout) for layout in entry.layouts)
        raise DataError(f"{entry.name} has no home to be fetched from; put {names} into {goal}")
    for item in entry.published:
        _fetch(item, goal, progress)
    found = where(entry, goal)
    if found is None:
        raise DataError(f"{entry.name} was fetched from its home into {goal}, but its files are not all there")
    return found


def _fetch(item: Published, goal: Path, progress: Callback) -> None:
    name = item.url.rpartition("/")[2]
    is_archive = ".tar" in name
    path = name if is_archive else f"{item.folder}/{name}"
    got = download(item.url, path, md5=item.md5, size=item.size, into=goal, progress=progress)
    if is_archive:
        try:
            unpack(got, goal, folder=item.folder)
        finally:
            got.unlink(missing_ok=True)


def files_of(name: str, root: str | Path | None = None) -> list[Path]:
    """The files of a set, which must be there."""
    entry = entry_of(name)
    found = located(entry, root)
    if found is None:
        looked = ", ".join(map(str, places(root)))
        raise DataError(
            f"{entry.layouts[0][0]} was not found (looked in {looked}); fetch {name} with `pactrain data fetch {name}`, "
            "or name its folder with --data-root"
        )
    return found

"""Which problems there are.  `DESIGN` rows were looked at while rules were made; `JUDGING` rows decide whether a rule stays.

A judging row is run once per candidate and never used to choose a number.  `QUICK` are those that take seconds each.
"""

from collections.abc import Callable
from functools import partial

from problems import (
    Arrays,
    Problem,
    few,
    genes,
    graph,
    images,
    islp,
    junk,
    keel,
    named,
    of_arrays,
    quality,
    r_raw,
    r_table,
    sst2,
    unscaled,
    wrong_labels,
)
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

Row = Callable[[int], Problem]


def table(arrays: Callable[[int], Arrays], *, n: int | None = None, wrong: float = 0.0, noise: int = 0) -> Row:
    """A row of a table: of its first n training rows, with wrong labels or columns of noise."""

    def row(seed: int) -> Problem:
        made = arrays(seed)
        made = few(made, n) if n else made
        made = wrong_labels(made, wrong, seed) if wrong else made
        return of_arrays(junk(made, noise, seed) if noise else made, seed)

    return row


def _islp(file: str, target: str, kind: str, drop: tuple[str, ...] = ()) -> Callable[[int], Arrays]:
    return lambda seed: islp(file, target, kind, drop, seed)  # type: ignore[arg-type]


def _r(name: str, target: str, drop: tuple[str, ...] = ()) -> Callable[[int], Arrays]:
    return lambda seed: r_table(name, target, drop, seed)


_KEEL = (
    "australian banana bands breast bupa chess contraceptive crx german hayes-roth heart housevotes ionosphere led7digit mammographic "
    "marketing monk-2 movement_libras mushroom phoneme pima ring saheart satimage segment sonar spambase splice tae texture "
    "tic-tac-toe titanic twonorm vehicle vowel wisconsin"
)

_R = {  # target, and columns left out: names, and other forms of the target
    "Ecdat/Caschool": ("testscr", ("distcod", "district", "readscr", "mathscr")),
    "Ecdat/Cigar": ("sales", ()),
    "Ecdat/Crime": ("crmrte", ()),
    "MASS/cpus": ("perf", ("name", "estperf")),
    "car/Salaries": ("salary", ()),
    "ggplot2/mpg": ("hwy", ("model", "cty")),
    "reshape2/tips": ("tip", ()),
    "robustbase/radarImage": ("Band.1", ()),
}

DESIGN: dict[str, Row] = {
    **{name: table(partial(named, name)) for name in ("digits", "breast_cancer", "wine", "iris", "diabetes")},
    **{f"uci:{s}": table(partial(named, f"uci:{s}")) for s in ("concrete", "energy", "wine_quality_red", "yacht")},
    "digits 30 % wrong": table(partial(named, "digits"), wrong=0.3),
    "wine_quality_red as classes": table(quality),
    **{f"mnist {n} {k}": partial(images, "mnist", n, k) for n in (1000, 10_000) for k in ("mlp", "cnn")},
    **{f"cifar10 5000 {k}": partial(images, "cifar10", 5000, k) for k in ("cnn", "batchnorm")},
    **{
        f"{g} {k}{' row-normalised' if r else ''}": partial(graph, g, k, normal=r)
        for g in ("cora_ml", "citeseer", "dblp")
        for k in ("gcn", "appnp")
        for r in (False, True)
    },
    "sst2 100": sst2,
    **{
        f"{name} raw": table(partial(unscaled, load))
        for name, load in (
            ("iris", load_iris),
            ("digits", load_digits),
            ("wine", load_wine),
            ("breast_cancer", load_breast_cancer),
            ("diabetes", load_diabetes),
        )
    },
    "islp:Auto": table(_islp("Auto", "mpg", "regression", ("name",))),
    "islp:Boston": table(_islp("Boston", "medv", "regression")),
    "islp:Carseats": table(_islp("Carseats", "Sales", "regression")),
    "islp:College": table(_islp("College", "Grad.Rate", "regression")),
    "islp:OJ": table(_islp("OJ", "Purchase", "classification")),
    "islp:Smarket": table(_islp("Smarket", "Direction", "classification", ("Today",))),
    **{f"keel:{name}": table(partial(keel, name)) for name in _KEEL.split()},
    **{f"r:{name}": table(_r(name, *what)) for name, what in _R.items()},
}

_penbased = partial(keel, "penbased")
_magic = partial(keel, "magic")
_diamonds = _r("ggplot2/diamonds", "price")
_hedonic = _r("Ecdat/Hedonic", "mv", ("townid",))

QUICK: dict[str, Row] = {
    # classification
    **{f"penbased 500 {w} % wrong": table(_penbased, n=500, wrong=w / 100) for w in (0, 20, 40)},
    "letter 2000": table(partial(keel, "letter"), n=2000),
    "magic 1000": table(_magic, n=1000),
    "magic 1000 20 % wrong": table(_magic, n=1000, wrong=0.2),
    "magic 500 100 junk columns": table(_magic, n=500, noise=100),
    "yeast4, 3 % in a class": table(partial(keel, "yeast4", kind="imbalanced")),
    "haberman": table(partial(keel, "haberman", kind="imbalanced")),
    "glass1": table(partial(keel, "glass1", kind="imbalanced")),
    "BrainCancer, 44 rows": table(_islp("BrainCancer", "status", "classification", ("time",))),
    "Khan, 41 rows of 2,308 genes": table(genes),
    # regression
    "Hitters": table(_islp("Hitters", "Salary", "regression")),
    "Hedonic": table(_hedonic),
    "Hedonic 100 junk columns": table(_hedonic, noise=100),
    "Bwages": table(_r("Ecdat/Bwages", "wage")),
    "MedExp, heavy tail": table(_r("Ecdat/MedExp", "med"), n=1000),
    "Prestige, 51 rows": table(_r("car/Prestige", "prestige", ("census",))),
    "diamonds 2000": table(_diamonds, n=2000),
    # inputs and targets unscaled
    "Prestige raw": table(lambda seed: r_raw("car/Prestige", "prestige", ("census",), seed)),
    "Hedonic raw, target in 10⁻⁶": table(lambda seed: r_raw("Ecdat/Hedonic", "mv", ("townid",), seed, times=1e6)),
}

JUDGING: dict[str, Row] = {
    **QUICK,
    "diamonds 26970": table(_diamonds),
    "magic 9510": table(_magic),
    **{f"mnist 14×14 1000 {k}": partial(images, "mnist", 1000, k, side=14) for k in ("mlp", "cnn", "batchnorm")},
    "mnist 14×14 1000 mlp 40 % wrong": lambda seed: _noisy_images(seed),
    "cifar10 16×16 2000 cnn": partial(images, "cifar10", 2000, "cnn", side=16),
    "citeseer gcn, training nodes alone": partial(graph, "citeseer", "gcn", validation=False),
    "cora_ml gcn, half of the edges": partial(graph, "cora_ml", "gcn", edges=0.5),
    "dblp appnp, half of the edges": partial(graph, "dblp", "appnp", edges=0.5),
}


def _noisy_images(seed: int) -> Problem:
    arrays = images("mnist", 1000, "mlp", seed, side=14).arrays
    assert arrays is not None
    return of_arrays(wrong_labels(arrays, 0.4, seed), seed)


ROWS = DESIGN | JUDGING

"""The page in a real Chromium: nothing asked of the network, no error, and it fits a phone in light and dark."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from torch import nn

import pactrain
from pactrain.certification.before_training import Described
from pactrain.data.task import RowLabels
from pactrain.report import write_report
from pactrain.rules.presets import AUTHORS
from tests.zoo import rows

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium and chromium-driver are not installed"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs side by side: digits in two stages, and one with names that would run as scripts and are too long for a phone."""
    root = tmp_path_factory.mktemp("browser")
    name = "<script>document.title='broken'</script><img src=x onerror=alert(1)>" + "x" * 200
    model = nn.Sequential()
    model.add_module(name.replace(".", ""), nn.Linear(6, 3))
    config = {"data": {"name": name}, "model": name}
    described = Described(rows(), config=config)
    pactrain.fit(model, described, test=rows(20, seed=2), budget="4 epochs", out=root / "one")
    x, y = load_digits(return_X_y=True)
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    two = AUTHORS.replace(enter_stage2=0.0, stage2_share=0.5)
    data, test = Described((x[::2] / 16, y[::2]), config=config), (x[1::2] / 16, y[1::2])
    pactrain.fit(network, data, test=test, preset=two, budget="60 epochs", out=root / "digits")
    assert (root / "digits" / "report.html").stat().st_size < 500_000
    return write_report([root / "one", root / "digits"], root / "page.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium that logs what it asks of the network and what it complains about."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def shown(browser: Any, report: Path, scheme: str) -> None:
    """Open the page on a phone that prefers light or dark."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get_log("performance")
    browser.get(report.as_uri())
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_request_no_error_and_it_fits_a_phone(browser: Any, report: Path, scheme: str) -> None:
    shown(browser, report, scheme)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert asked  # the log works: it has the page itself
    assert set(asked) <= {report.as_uri(), "data:,"}
    assert browser.get_log("browser") == []
    assert browser.title == "2 runs · pactrain"
    page = "document.documentElement"
    assert browser.execute_script(f"return {page}.scrollWidth") == 360 == browser.execute_script("return innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out(browser: Any, report: Path, scheme: str) -> None:
    """Contrast of 4.5 to 1 for words, in figures and out of them, and of 3 to 1 for curves."""
    shown(browser, report, scheme)
    colours = browser.execute_script(
        """
        const read = (element, name) => getComputedStyle(element)[name];
        const all = (what, name) => [...document.querySelectorAll(what)].map(e => read(e, name));
        return {paper: read(document.body, 'backgroundColor'), card: read(document.querySelector('figure'), 'backgroundColor'),
                words: all('h1, p, figcaption, dt, dd, td, th, a, summary', 'color'),
                letters: all('svg text', 'fill'), curves: all('svg g[id] path, svg path', 'stroke')};
        """
    )
    assert colours["letters"]
    assert colours["words"]
    for word in set(colours["words"]):
        assert contrast(word, colours["paper"]) >= 4.5, word
    for letter in set(colours["letters"]):
        assert contrast(letter, colours["card"]) >= 4.5, letter
    faint = {
        "none",
        browser.execute_script("return getComputedStyle(document.querySelector('.scroll')).borderTopColor"),
    }
    curves = set(colours["curves"]) - faint
    assert curves
    for curve in curves:
        assert contrast(curve, colours["card"]) >= 3, curve


def test_a_keyboard_reaches_what_scrolls_and_a_reader_hears_the_figures(browser: Any, report: Path) -> None:
    shown(browser, report, "light")
    hidden = browser.execute_script(
        """
        return [...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0
            && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.tabIndex < 0).map(e => e.outerHTML.slice(0, 80))
        """
    )
    assert hidden == []
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    images = [n["name"]["value"] for n in nodes if n.get("role", {}).get("value") in ("image", "img")]
    assert len(images) == 19 == len(set(images))
    assert all(len(name) > 40 for name in images)


ENCODING = {
    "target": "y<b>",
    "kind": "classification",
    "classes": ["<b>no</b>", "yes", "perhaps"],
    "numeric": [{"name": f"n{i}<img src=x onerror=alert(1)>", "mean": 5.0, "std": 2.0} for i in range(3)],
    "categorical": [{"name": "colour" * 20, "categories": ["red<i>", "green", "blue"]}],
}


@pytest.fixture(scope="module")
def about_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of single runs: images, a table with names nobody should trust, and a regression."""
    root = tmp_path_factory.mktemp("models")
    x, y = load_digits(return_X_y=True)
    digits = Described((x[:200] / 16, y[:200]), config={"data": {"name": "digits"}})
    pactrain.fit(nn.Linear(64, 10), digits, test=(x[200:300] / 16, y[200:300]), budget="5 epochs", out=root / "images")
    fates = [{"column": "id<s>", "became": "left out", "features": 0, "why": "<u>an identifier"}]
    labels = RowLabels("row", np.arange(101, 131), {"text<b>": np.array(["<i>a</i> " + 60 * "long "] * 30)})
    table = Described(rows(), config={"preprocess": ENCODING, "columns": fates}, labels=labels)
    pactrain.fit(nn.Linear(6, 3), table, test=rows(30, seed=2), budget="4 epochs", out=root / "table")
    inputs = rows()[0]
    test = (inputs[:20], 1e6 * inputs[:20, :1])
    pactrain.fit(nn.Linear(6, 1), (inputs, 1e6 * inputs[:, :1]), test=test, budget="4 epochs", out=root / "numbers")
    return {name: root / name / "report.html" for name in ("images", "table", "numbers")}


PARTS = {
    "images": ["How good it is", "Rows to look at", "How training went"],
    "table": ["How good it is", "Rows to look at", "What it learned from", "How training went"],
    "numbers": ["How good it is", "Rows to look at", "What it learned from", "How training went"],
}
METHOD = ["What can be said about new data", "The noise and the bound", "Configuration"]


@pytest.mark.parametrize("name", list(PARTS))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_model_and_data_come_first_and_fit_a_phone(
    browser: Any, about_models: dict[str, Path], name: str, scheme: str
) -> None:
    shown(browser, about_models[name], scheme)
    heads = browser.execute_script("return [...document.querySelectorAll('h2')].map(e => e.textContent)")
    assert heads == PARTS[name] + METHOD
    assert browser.execute_script("return document.documentElement.scrollWidth") == 360
    assert browser.get_log("browser") == []
    links = browser.execute_script(
        "return [...document.querySelectorAll('nav a')].map(e => e.getAttribute('href').slice(1))"
    )
    assert all(browser.execute_script("return document.getElementById(arguments[0]) !== null", link) for link in links)


def test_hardest_images_are_shown_with_words(browser: Any, about_models: dict[str, Path]) -> None:
    shown(browser, about_models["images"], "light")
    images = browser.execute_script(
        "return [...document.querySelectorAll('.pictures img')].map(e => [e.alt, e.naturalWidth, e.clientWidth])"
    )
    assert len(images) == 12
    for words, own, drawn in images:
        assert words.startswith("A held-out row: ")
        assert "sure" in words
        assert own == 8
        assert 60 < drawn < 360
    assert browser.execute_script("return document.querySelectorAll('.confusion tbody tr').length") == 10


def test_names_of_a_table_stay_words(browser: Any, about_models: dict[str, Path]) -> None:
    shown(browser, about_models["table"], "light")
    assert (
        browser.execute_script("return document.querySelectorAll('main img, main b, main s, main u, main i').length")
        == 0
    )
    text = browser.execute_script("return document.querySelector('main').textContent")
    for words in (
        "<b>no</b>",
        "n0<img src=x onerror=alert(1)>",
        "id<s>",
        "left out: <u>an identifier",
        "text<b>",
        "<i>a</i>",
    ):
        assert words in text


def test_rows_are_named_as_in_their_file_and_show_their_texts(browser: Any, about_models: dict[str, Path]) -> None:
    shown(browser, about_models["table"], "light")
    tables = browser.execute_script(
        "return [...document.querySelectorAll('main table')].map(t => [t.caption.textContent, t.rows[1].innerText, t.rows[1].cells[0]"
        ".textContent, t.rows[0].lastElementChild.textContent, t.rows[1].lastElementChild.offsetHeight > 2 * 24])"
    )
    found = [values for caption, *values in tables if caption == "Held-out rows, numbered as in the file"]
    assert found
    for _, number, head, wrapped in found:
        assert 101 <= int(number) <= 130
        assert head == "text<b>"
        assert wrapped  # a long text takes several lines, not the width of a phone


def test_what_proves_nothing_is_one_line(browser: Any, about_models: dict[str, Path]) -> None:
    shown(browser, about_models["images"], "light")
    section = browser.execute_script(
        "const all = [...document.querySelector('main').children]; const from = all.findIndex(e => e.id == 'certificate');"
        "const to = all.findIndex((e, i) => i > from && e.tagName == 'H2');"
        "return all.slice(from, to).filter(e => e.tagName == 'P' || e.tagName == 'UL').map(e => e.textContent)"
    )
    assert sum("From the 200 training rows alone nothing useful can be proved" in text for text in section) == 1
    assert not any("vacuous" in text for text in section)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours as the browser writes them, `rgb(r, g, b)`."""
    first, second = sorted((luminance(one), luminance(other)))
    return (second + 0.05) / (first + 0.05)


def luminance(colour: str) -> float:
    """How bright a colour is to the eye."""
    parts = [int(v) / 255 for v in colour[4:-1].split(",")]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

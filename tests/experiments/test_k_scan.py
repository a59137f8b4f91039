"""K scanned std by std."""

import json
from pathlib import Path

import numpy as np

from pactrain.experiments import image_drawings as draw
from pactrain.experiments.image_figures import carry_out_scan
from pactrain.experiments.k_scan import Scan
from tests.experiments.small_images import Here


def test_k_is_scanned_std_by_std(cifar: Path) -> None:
    here = Here(cifar)
    scan = Scan("cnn9:width=.0625", "cifar10", images=40, draws=2, points=4)
    ks = carry_out_scan(scan, here)
    assert len(here.done) == 4
    assert ks.k.shape == (4, 40)
    assert (np.diff(ks.k, axis=0) >= 0).all()  # a wider prior never looks cheaper
    assert (np.diff(ks.k, axis=1) <= 1e-15).all()  # a larger γ1 leaves out part of the supremum
    assert (ks.k[:, 0] <= ks.lemma).all()
    assert ks.planes["CGF"] >= ks.near(ks.knee)["K"]
    for name, drawing in (("k.png", draw.draw_k), ("upper.png", draw.draw_k_upper)):
        draw.write_figure(drawing(ks), cifar / name)
        assert (cifar / name).stat().st_size > 5000
    assert len(json.loads(json.dumps(ks.to_dict()))["K"]) == 4

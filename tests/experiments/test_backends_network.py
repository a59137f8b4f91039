"""A cluster of which a part is cut off from the network in the middle of a plan."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pactrain.experiments import Store, carry_out
from tests.experiments.processes import ROOT
from tests.experiments.recipes import plan

pytestmark = pytest.mark.slow

HERE, THERE, PORT = "10.213.77.1", "10.213.77.2", 38713
NAMESPACE, CABLE = f"pactrain{os.getpid() % 1000}", f"pt{os.getpid() % 1000}"


def ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network of its own, joined to this one by a cable that can be cut."""
    if shutil.which("ip") is None or ip("netns", "add", NAMESPACE).returncode:
        pytest.skip("network namespaces are not allowed here, or iproute2 is not installed")
    try:
        steps = [
            ("link", "add", CABLE, "type", "veth", "peer", "name", "there", "netns", NAMESPACE),
            ("addr", "add", f"{HERE}/24", "dev", CABLE),
            ("link", "set", CABLE, "up"),
            ("-n", NAMESPACE, "addr", "add", f"{THERE}/24", "dev", "there"),
            ("-n", NAMESPACE, "link", "set", "there", "up"),
            ("-n", NAMESPACE, "link", "set", "lo", "up"),
        ]
        for words in steps:
            if (done := ip(*words)).returncode:
                pytest.skip(f"network namespaces cannot be joined here: {done.stderr.strip()}")
        yield NAMESPACE
    finally:
        ip("link", "del", CABLE)
        ip("netns", "del", NAMESPACE)


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the block."""
    quick = {
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "15s",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    process = subprocess.Popen(
        words, env=os.environ | quick, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def test_a_dask_worker_that_is_cut_off_loses_nothing(namespace: str, tmp_path: Path) -> None:
    distributed: Any = pytest.importorskip("distributed")
    log, address = tmp_path / "log", f"tcp://{HERE}:{PORT}"
    log.mkdir()
    worker = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-dashboard",
        "--no-nanny",
    ]
    scheduler = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        HERE,
        "--port",
        str(PORT),
        "--no-dashboard",
    ]
    with ExitStack() as stack:
        stack.enter_context(running(*scheduler))
        stack.enter_context(running(*worker, "--host", HERE, "--name", "here"))
        stack.enter_context(running("ip", "netns", "exec", namespace, *worker, "--host", THERE, "--name", "there"))
        with distributed.Client(address, timeout=120, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)

        def cut() -> None:
            while len(list(log.iterdir())) < 2:  # both have begun a run
                time.sleep(0.05)
            ip("link", "set", CABLE, "down")

        threading.Thread(target=cut, daemon=True).start()
        rows = carry_out(plan("square", 6, 2.0, str(log)), tmp_path / "s.sqlite", backend="dask", address=address)
    assert [(row.error, row.metrics) for row in rows] == [(None, {"square": i * i, "seed": i}) for i in range(6)]
    assert len(Store(tmp_path / "s.sqlite").rows()) == 6
    assert sum(len(file.read_text().splitlines()) for file in log.iterdir()) > 6  # some run was carried out twice

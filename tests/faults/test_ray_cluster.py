"""A cluster that runs already: runs use it and keep their bits, evaluations too, and it runs on afterwards."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

pytest.importorskip("ray", reason="the extra 'ray' is not installed")

from tests.evaluated_run import settings, train

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
RUN = ["tictactoe", "total_env_steps=8192", "slots=2", "--display", "off"]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A head of Ray that asks for a token."""

    process: subprocess.Popen[bytes]
    address: str
    client_address: str
    environment: Mapping[str, str]


@pytest.fixture(scope="module")
def cluster() -> Generator[Cluster]:
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # the path of a socket has a hundred characters at most
    port, client_port = free_port(), free_port()
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    words = ["--head", "--block", "--port", str(port), "--ray-client-server-port", str(client_port), "--num-cpus", "2"]
    words += ["--include-dashboard", "false", "--disable-usage-stats", "--temp-dir", folder]
    words += ["--object-store-memory", str(200 << 20)]
    log = Path(folder) / "head.log"
    with log.open("wb") as output:
        head = subprocess.Popen([ray_command(), "start", *words], stdout=output, stderr=output, env=environment)
    wait_until(lambda: "Ray runtime started" in log.read_text(), 120)
    family = psutil.Process(head.pid).children(recursive=True)
    yield Cluster(head, f"127.0.0.1:{port}", f"ray://127.0.0.1:{client_port}", environment)
    head.terminate()
    head.wait(60)
    for process in psutil.wait_procs(family, 10)[1]:
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def ray_command() -> str:
    return str(Path(sys.executable).with_name("ray"))


def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def hookloop(*words: str, runs: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "hookloop", *words],
        cwd=runs,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(raylet)" not in done.stdout
    return done.stdout


def weights_of(run: Path) -> bytes:
    (file,) = run.glob("checkpoints/*-final/model.safetensors")
    return file.read_bytes()


def test_a_run_on_a_cluster_has_the_bits_of_one_without_workers_and_the_cluster_runs_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    hookloop("train", *RUN, "workers=0", "--run", "none", runs=tmp_path, environment=os.environ)

    client = (f"cluster={cluster.client_address}", "--run", "client")
    hookloop("train", *RUN, *client, runs=tmp_path, environment=cluster.environment)
    by_address = {**cluster.environment, "RAY_ADDRESS": cluster.address}
    hookloop("train", *RUN, "cluster=ray", "worker_cpus=0.5", "--run", "job", runs=tmp_path, environment=by_address)

    runs = tmp_path / "runs"
    assert weights_of(runs / "client") == weights_of(runs / "job") == weights_of(runs / "none")
    assert cluster.process.poll() is None


def test_evaluations_are_carried_out_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    train(tmp_path, epochs=2, config=settings(schedule="every 1 epoch", record=0))

    words = ["eval-worker", str(tmp_path), "--once", "--cluster", cluster.client_address]
    said = hookloop(*words, runs=tmp_path, environment=cluster.environment)

    assert said.count("done ") == 2
    assert cluster.process.poll() is None


def test_a_cluster_without_room_for_a_worker_is_named_with_what_it_has(cluster: Cluster, tmp_path: Path) -> None:
    script = (
        "from hookloop.pools import *\n"
        "from tests.unit.pools.performers import Roller, weights\n"
        f"pool = make_pool({cluster.client_address!r}, 1, Roller,"
        " settings=PoolSettings(start_seconds_limit=1, resources={'robot': 1}))\n"
        "pool.publish(1, weights())\n"
        "gather(pool, [Task(TaskKey(0, 0), {'seed': 0})])\n"
    )
    environment = {**cluster.environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )

    assert "NoWorkersError: No worker could be kept alive" in done.stderr
    assert "the cluster has 2 CPU left of 2 CPU" in done.stderr


@pytest.fixture
def short_folder() -> Generator[str]:
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    yield folder
    shutil.rmtree(folder)


def test_a_program_that_is_killed_takes_its_own_ray_along(tmp_path: Path, short_folder: str) -> None:
    words = ["train", "tictactoe", "cluster=ray", "slots=2", "--run", "killed", "--display", "off"]
    environment = {**os.environ, "TMPDIR": short_folder}
    program = subprocess.Popen([sys.executable, "-m", "hookloop", *words], cwd=tmp_path, env=environment)
    wait_until(lambda: any((tmp_path / "runs" / "killed" / "checkpoints").glob("step-*")), 120)  # it has trained
    family = psutil.Process(program.pid).children(recursive=True)
    assert any("RayWorker" in " ".join(process.cmdline()) for process in family)

    program.send_signal(signal.SIGKILL)
    program.wait()

    assert psutil.wait_procs(family, 120)[1] == []  # workers end at once, Ray's agents take most of a minute

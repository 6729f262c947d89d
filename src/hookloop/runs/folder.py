"""A run on disk: its folder, what it is, and how to find it."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hookloop.boards.snapshot import SNAPSHOT_NAME
from hookloop.checkpoints.retention import Retention
from hookloop.config.settings import RunSettings
from hookloop.errors import ConfigError, HeartbeatError, did_you_mean
from hookloop.storage.atomic import leftovers, remove_leftovers, write_json
from hookloop.storage.lock import LOCK_NAME, require_free

Plain = Any

RUN_VERSION = 1
CONFIG_FILE = "config.json"
LATEST = "latest"
_MOST_NAMES = 10
_RUN_NAME = re.compile(r"[A-Za-z0-9][\w.\-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What a run is: enough to begin it again with the same bits."""

    recipe: str
    seed: int
    threads: int
    settings: dict[str, Plain]
    workload: str = "rl"
    """What kind of run it is: which settings it has."""
    learners: int = 1
    """How many processes train it."""
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    changes: list[dict[str, Plain]] = field(default_factory=list[dict[str, Plain]])
    """What was changed when the run was resumed: the setting, its values before and after, and from which step on."""
    version: int = RUN_VERSION

    @property
    def goal(self) -> tuple[int | None, str]:
        """What it is going for, and the clock that counts it."""
        if self.workload == "supervised":
            training = self.settings.get("training", {})
            steps = _whole(training.get("max_steps"))
            return (_whole(training.get("epochs")), "epochs") if steps is None else (steps, "optimizer_steps")
        return _whole(self.settings.get("total_env_steps")), "env_steps"

    @property
    def step_clock(self) -> str:
        """What is called a step of it, as a column of its statistics."""
        return "optimizer_steps" if self.workload == "supervised" else "env_steps"

    @property
    def sha256(self) -> str:
        """The hash of everything that decides the bits."""
        settings = {name: value for name, value in self.settings.items() if name not in RunSettings.model_fields}
        decisive: dict[str, Plain] = {"seed": self.seed, "settings": settings}
        if self.learners > 1:
            decisive["learners"] = self.learners
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run keeps its files."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        """The folder of its checkpoints."""
        return self.path / "checkpoints"

    @property
    def result_file(self) -> Path:
        """How it ended."""
        return self.path / "result.json"

    @property
    def heartbeat_file(self) -> Path:
        """What it is doing now."""
        return self.path / "heartbeat.json"

    @property
    def game_file(self) -> Path:
        """The game that it plays now, if it plays."""
        return self.path / SNAPSHOT_NAME

    @property
    def replays(self) -> Path:
        """The folder of its recorded episodes."""
        return self.path / "replays"

    @property
    def stats_file(self) -> Path:
        """Its statistics, unless they go to a database of many runs."""
        return self.path / "stats.sqlite"

    @property
    def stats_url(self) -> str | Path:
        """Where its statistics are."""
        return self.read_config().settings.get("stats_url") or self.stats_file

    @property
    def name(self) -> str:
        """Its name."""
        return self.path.name

    def sweep(self) -> None:
        """Clear away what a killed process left half written; only the holder of the lock may."""
        remove_leftovers(self.path / CONFIG_FILE)
        remove_leftovers(self.result_file)
        remove_leftovers(self.heartbeat_file)
        remove_leftovers(self.game_file)

    def require_new(self) -> None:
        """Refuse a folder that holds more than a process leaves that is killed at its start."""
        if (self.path / CONFIG_FILE).exists():
            raise ConfigError(
                f"There is a run {self.name!r} in {self.path.parent} already; "
                f"go on with it (--resume {self.name}), or choose another name with --run."
            )
        ours = {self.path / LOCK_NAME, *leftovers(self.path / CONFIG_FILE)}
        if self.path.exists() and any(file not in ours for file in self.path.iterdir()):
            raise ConfigError(f"{self.path} is not empty and no run of ours; choose another name with --run.")

    def write_config(self, config: RunConfig) -> None:
        """Write down what the run is."""
        write_json(self.path / CONFIG_FILE, asdict(config))

    def read_config(self) -> RunConfig:
        """Read what the run is."""
        file = self.path / CONFIG_FILE
        try:
            read = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file} is no JSON: {error}.") from error
        expected = {each.name for each in fields(RunConfig)}
        if isinstance(read, dict):
            read.setdefault("workload", "rl")  # runs of before there were others
            read.setdefault("learners", 1)
        is_ours = isinstance(read, dict) and set(read) == expected and read["version"] == RUN_VERSION
        if not is_ours or not isinstance(read["settings"], dict):
            raise ConfigError(f"{file} was not written by this hookloop: it should hold {', '.join(sorted(expected))}.")
        return RunConfig(**read)

    def read_retention(self) -> Retention:
        """Read what the run calls its best checkpoint."""
        wanted = self.read_config().settings.get("checkpoints", {})
        if not isinstance(wanted, dict):
            raise ConfigError(f"{self.path / CONFIG_FILE} has checkpoints={wanted!r:.100}, which should be settings.")
        return Retention(**{name: wanted[name] for name in ("metric", "mode") if name in wanted})


def new_run(runs_dir: Path, name: str) -> RunFolder:
    """Return the folder of a run that does not exist yet."""
    if not _RUN_NAME.fullmatch(name):
        raise ConfigError(f"A run's name must be letters, digits, '.', '-' or '_', got {name!r}; it names a folder.")
    folder = RunFolder(runs_dir / name)
    require_free(folder.path)  # first: that it is in use says more than that its name is taken
    folder.require_new()
    return folder


def all_runs(runs_dir: Path) -> list[RunFolder]:
    """Return every run of a folder, by name; what is being removed is none any more, and a name is a text."""
    found = sorted(file.parent for file in runs_dir.glob(f"*/{CONFIG_FILE}"))
    return [RunFolder(path) for path in found if not path.name.startswith(".") and _is_text(path.name)]


def find_run(runs_dir: Path, run: str) -> RunFolder:
    """Return the folder of a run, given its name, its path, the beginning of its name, or ``latest``."""
    for path in (runs_dir / run, Path(run)):
        if (path / CONFIG_FILE).is_file():
            return RunFolder(path)
    folders = all_runs(runs_dir)
    if run == LATEST and folders:
        return max(folders, key=_began)
    begun = [folder for folder in folders if run and folder.name.startswith(run)]
    if len(begun) == 1:
        return begun[0]
    names = [folder.name for folder in folders]
    if begun:
        raise ConfigError(f"{run!r} begins the names of {len(begun)} runs: {_some(begun)}. Write more of the name.")
    hint = did_you_mean(run, names) if names else f" There is none in {runs_dir}; --runs-dir names another folder."
    raise ConfigError(f"There is no run {run!r}.{hint}")


def _began(folder: RunFolder) -> tuple[float, float]:
    """Return when the latest process of a run began, as far as it said so; otherwise when the run was made."""
    from hookloop.monitoring import read_beat

    made = (folder.path / CONFIG_FILE).stat().st_mtime
    try:
        return read_beat(folder.heartbeat_file).process_started, made
    except (FileNotFoundError, HeartbeatError):
        return made, made


def _some(folders: Sequence[RunFolder]) -> str:
    names = [folder.name for folder in folders]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _is_text(name: str) -> bool:
    """Tell whether a name can be written; Linux allows folders whose names cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(value: Plain) -> int | None:
    return value if isinstance(value, int) else None

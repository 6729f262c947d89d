"""``hookloop checkpoints``: what a run has saved, whether it is sound, and what to keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hookloop.checkpoints.retention import Retention
from hookloop.checkpoints.selectors import find
from hookloop.checkpoints.store import Checkpoint, CheckpointStore, Unreadable
from hookloop.cli.exit_codes import EXIT_FAILED
from hookloop.cli.tables import say, size
from hookloop.errors import ConfigError, DamagedCheckpointError
from hookloop.runs.folder import RunFolder, find_run
from hookloop.storage.lock import RunLock


def checkpoints(
    run: str,
    *,
    runs_dir: Path = Path("runs"),
    verify: bool = False,
    pin: str | None = None,
    unpin: str | None = None,
    delete: str | None = None,
) -> int:
    """List, verify, pin or delete the checkpoints of a run.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        runs_dir: The folder of all runs.
        verify: Read every byte and compare it with its hash; exit with 4 if one is damaged.
        pin: Keep this one whatever the rules say: latest, best, final, a step, or an epoch such as epoch5.
        unpin: Let the rules decide about this one again.
        delete: Delete this one.
    """
    folder = find_run(runs_dir, run)
    store = CheckpointStore(folder.checkpoints)
    if sum(each is not None for each in (pin, unpin, delete)) + verify > 1:
        raise ConfigError("One thing at a time: --verify, --pin, --unpin or --delete.")
    if pin is not None:
        return _change(folder, lambda name: store.pin(name), _name(store, folder, pin), "pinned")
    if unpin is not None:
        return _change(folder, lambda name: store.pin(name, pinned=False), _name(store, folder, unpin), "unpinned")
    if delete is not None:
        return _change(folder, store.delete, _name(store, folder, delete), "deleted")
    return _verify(store) if verify else _list(store, folder.read_retention())


def _list(store: CheckpointStore, retention: Retention) -> int:
    found = store.look_at_all()
    if not found:
        say(f"no checkpoint in {store.folder} yet")
        return 0
    best = retention.best([each.manifest for each in found if isinstance(each, Checkpoint)])
    best_name = best[0].name if best else None
    pins = store.pins()
    say(f"{'name':<24} {'epoch':>7} {retention.metric:>12} {'size':>9}  {'exactness':<14} notes")
    for each in found:
        if isinstance(each, Unreadable):
            say(f"{each.name:<24} damaged: {each.fault}")
            continue
        notes = [word for word, holds in (("best", each.name == best_name), ("pinned", each.name in pins)) if holds]
        if each.manifest.kind != "periodic":
            notes.insert(0, each.manifest.kind)
        value = each.manifest.metrics.get(retention.metric)
        score = "-" if value is None else f"{value:.4g}"
        say(
            f"{each.name:<24} {each.manifest.epochs:>7} {score:>12} {size(each.manifest.total_bytes):>9}  "
            f"{each.manifest.exactness:<14} {', '.join(notes)}".rstrip()
        )
    return 0


def _verify(store: CheckpointStore) -> int:
    code = 0
    for name in store.names():
        try:
            store.verify(name)
        except DamagedCheckpointError as error:
            say(f"{name:<24} damaged: {error}")
            code = EXIT_FAILED
        else:
            say(f"{name:<24} sound")
    return code


def _change(folder: RunFolder, act: Callable[[str], None], name: str, done: str) -> int:
    with RunLock(folder.path):  # a run that is training tidies up its checkpoints, too
        act(name)
    say(f"{done} {name}")
    return 0


def _name(store: CheckpointStore, folder: RunFolder, selector: str) -> str:
    if selector in store.names():
        return selector  # also a damaged one, which has no manifest to be found by
    checkpoint = find(store, selector, folder.read_retention())
    if checkpoint.path.parent != store.folder:
        raise ConfigError(f"{checkpoint.path} is not a checkpoint of the run {folder.name!r}.")
    return checkpoint.name

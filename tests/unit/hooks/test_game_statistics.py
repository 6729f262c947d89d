"""Statistics of the games of a run: logged, bounded, resumed exactly, and without a trace in training."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop import HookManager, TrainingLoop
from hookloop.errors import RegistrationError
from hookloop.hooks import GameStatisticsHook
from hookloop.rl.config import TrainerConfig
from hookloop.selfplay import GameConfig, NetworkConfig, SelfPlayConfig, SelfPlayTrainer, build_trainer
from hookloop.testing import ToyWorkload
from tests.saving import is_same

EPOCH = 4 * 16
SETTINGS = SelfPlayConfig(
    game=GameConfig(name="tic_tac_toe", num_envs=4),
    network=NetworkConfig(kind="layers", hidden=(8,)),
    trainer=TrainerConfig(horizon=16, num_minibatches=2, update_epochs=1, gamma=1.0),
)
IN_SLOTS = SETTINGS.model_copy(update={"workers": 0, "slots": 2})


class Keeps:
    """Keeps what was logged in each epoch, and the state of the run."""

    name = "keeps"
    stage = "checkpoint"

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.states: list[Any] = []

    def state_dict(self) -> dict[str, Any]:
        return {}  # what it keeps is the test's, and no part of the run

    def load_state_dict(self, saved: Any) -> None: ...

    def on_epoch_end(self, ctx: Any) -> None:
        self.rows.append({key: value for row in ctx.drain_metrics() for key, value in row["values"].items()})
        self.states.append(copy.deepcopy(ctx.trainer.state_dict()))


def trained(*hooks: object, epochs: int = 6, config: SelfPlayConfig = SETTINGS) -> SelfPlayTrainer:
    trainer = build_trainer(config, hooks=list(hooks), seed=1)
    trainer.train(epochs * EPOCH)
    return trainer


def test_what_is_found_is_logged_and_shown_beside_the_board() -> None:
    keeps = Keeps()

    trainer = trained(GameStatisticsHook(window=20), keeps)

    last, looked = keeps.rows[-1], [row for row in keeps.rows if "game/looked_at" in row]
    assert 1 <= len(looked) <= 4, "games of 5 to 9 moves, and no more than a part of the 64 of each epoch"
    assert looked[-1]["game/looked_at"] == len(looked)
    assert 0 < looked[-1]["game/opening_share"] <= 1
    assert "game/first_captures" not in looked[-1], "nothing is captured in tic-tac-toe"
    assert last["game/recent/count"] >= 20
    assert sum(last[f"game/recent/{name}"] for name in ("first_wins", "second_wins", "draws", "cut_off")) == 1.0
    seen = trainer.watch_game().look()
    assert seen.statistics["looked_at"] == len(looked)
    assert len(seen.opening) == 3
    assert seen.hot_squares[0][1] >= seen.hot_squares[-1][1] > 0
    assert sum(seen.recent.values()) == last["game/recent/count"]
    assert (seen.material, seen.is_check, seen.king_moves, seen.quiet_moves) == (None, None, None, None)


def test_the_recent_outcomes_are_those_of_the_tally() -> None:
    hook, tallies = GameStatisticsHook(window=20), list[Any]()
    trainer = build_trainer(SETTINGS, hooks=[hook], seed=1)
    trainer.add_hook(lambda ctx: tallies.append(ctx.trainer.tally.state_dict()), on="epoch_end", name="tallies")
    trainer.train(6 * EPOCH)

    ends = [tally for tally in tallies if sum(tallies[-1].values()) - sum(tally.values()) >= 20]
    assert hook.recent.counts().state_dict() == {name: tallies[-1][name] - ends[-1][name] for name in ends[-1]}


def test_training_goes_the_same_way_with_without_and_with_failing_statistics() -> None:
    class Failing(GameStatisticsHook):
        def _look(self, games: Any, played_moves: int) -> bool:
            raise ValueError("broken")

    plain, watched, failing = trained(), trained(GameStatisticsHook()), trained(Failing())

    assert is_same(watched.workload.state_dict(), plain.workload.state_dict())
    assert is_same(failing.workload.state_dict(), plain.workload.state_dict())
    assert failing.state.failures["game_statistics"].is_disabled


@pytest.mark.parametrize("schedule", ["every 1 epochs", "every 2 epochs"])
@pytest.mark.parametrize("config", [SETTINGS, IN_SLOTS], ids=["here", "in slots"])
def test_statistics_resume_exactly(schedule: str, config: SelfPlayConfig) -> None:
    whole, keeps = GameStatisticsHook(schedule, window=3), Keeps()
    trained(whole, keeps, config=config)

    for epoch in (1, 3):
        resumed, rest = GameStatisticsHook(schedule, window=3), Keeps()
        trainer = build_trainer(config, hooks=[resumed, rest], seed=1)
        trainer.load_state_dict(keeps.states[epoch - 1])
        trainer.train(6 * EPOCH)

        assert rest.rows == keeps.rows[epoch:]
        assert resumed.state_dict() == whole.state_dict()


def test_games_that_workers_play_are_looked_at_as_well() -> None:
    keeps = Keeps()

    trainer = trained(GameStatisticsHook(window=10), keeps, config=IN_SLOTS)

    assert keeps.rows[-1]["game/recent/count"] >= 10
    assert any("game/looked_at" in row for row in keeps.rows)
    assert len(trainer.watch_game().look().opening) == 3


def test_a_run_without_games_has_no_statistics() -> None:
    hooks, keeps = HookManager(), GameStatisticsHook()
    hooks.add(keeps)

    TrainingLoop(ToyWorkload(), hooks).run()

    assert keeps.statistics.games == 0


def test_a_window_has_at_least_one_game() -> None:
    with pytest.raises(RegistrationError, match="at least 1 game, got window=0"):
        GameStatisticsHook(window=0)

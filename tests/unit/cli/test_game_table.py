"""A person's game against a model that always takes the first legal move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.boards import board_text
from hookloop.cli.game_table import Ending, GameTable
from hookloop.selfplay import GameConfig, NetworkConfig, SelfPlayConfig, build_trainer
from hookloop.selfplay.library import load_game
from hookloop.selfplay.thinking import Thinker
from hookloop.selfplay.watching import GameRecord


@pytest.fixture(scope="module")
def thinker() -> Thinker:
    config = SelfPlayConfig(
        game=GameConfig(name="tic_tac_toe", num_envs=1), network=NetworkConfig(kind="layers", hidden=(4,))
    )
    trainer = build_trainer(
        config.model_copy(update={"trainer": config.trainer.model_copy(update={"num_minibatches": 1})})
    )
    return Thinker(trainer.games.game, trainer.policy)


@pytest.fixture
def play(thinker: Thinker) -> Callable[..., tuple[Ending, str, GameRecord]]:
    def run(*lines: str, person: int = 0) -> tuple[Ending, str, GameRecord]:
        record, said, rest = GameRecord(load_game("tic_tac_toe")), list[str](), iter(lines)

        def ask(prompt: str) -> str:
            said.append(prompt)
            try:
                return next(rest)
            except StopIteration:
                raise EOFError from None

        table = GameTable(
            record,
            thinker,
            answer=lambda: record.state.legal_actions()[0],
            person=person,
            ask=ask,
            say=said.append,
            paint=lambda board, names: board_text(board, names=names),
        )
        return table.play(), "\n".join(said), record

    return run


def test_a_game_is_played_to_its_end_and_the_winner_named(play: Callable[..., tuple[Ending, str, GameRecord]]) -> None:
    ending, said, record = play("x(2,0)", "7", "2,2")

    assert ending == "over"
    assert [move.text for move in record.moves] == ["x(2,0)", "o(0,0)", "x(2,1)", "o(0,1)", "x(2,2)"]
    assert said.endswith("You (X) won after 5 moves.")
    assert "2. The model (O): o(0,0)\n  0 1 2\n0[O]· ·" in said


def test_the_second_seat_waits_for_the_models_first_move(play: Callable[..., tuple[Ending, str, GameRecord]]) -> None:
    ending, said, record = play("8", "7", "5", person=1)

    assert ending == "over"
    assert record.moves[0].text == "x(0,0)"
    assert said.endswith("The model (X) won after 5 moves.")


def test_undo_takes_back_a_move_and_its_answer(play: Callable[..., tuple[Ending, str, GameRecord]]) -> None:
    ending, said, record = play("undo", "4", "8", "undo", "quit")

    assert ending == "left"
    assert "You have not moved yet; there is nothing to take back." in said
    assert "Taken back: x(2,2), o(0,1)." in said
    assert [move.text for move in record.moves] == ["x(1,1)", "o(0,0)"]


def test_help_moves_and_hints_are_given(play: Callable[..., tuple[Ending, str, GameRecord]]) -> None:
    _, said, _ = play("help", "moves", "moves x(2", "moves z", "hint", "board", "")

    assert "such as x(0,0), or by its number" in said
    assert "0: x(0,0)" in said
    assert "6: x(2,0)  7: x(2,1)  8: x(2,2)" in said
    assert "No legal move begins with 'z'; 'moves' lists all 9." in said
    assert "The model would play x(" in said


def test_a_wrong_move_is_explained_and_asked_for_again(play: Callable[..., tuple[Ending, str, GameRecord]]) -> None:
    _, said, record = play("x(3,3)", "4")

    assert "'x(3,3)' is no legal move here. Near it: " in said
    assert record.moves[0].text == "x(1,1)"


def test_resigning_gives_the_game_to_the_model(play: Callable[..., tuple[Ending, str, GameRecord]]) -> None:
    ending, said, _ = play("4", "resign")

    assert ending == "resigned"
    assert said.endswith("You gave up after 2 moves: O, the model, has won.")


def test_an_input_that_ends_leaves_the_game(play: Callable[..., tuple[Ending, str, GameRecord]]) -> None:
    assert play("4")[0] == "left"


def test_a_draw_is_called_one(play: Callable[..., tuple[Ending, str, GameRecord]]) -> None:
    ending, said, _ = play("4", "2", "3", "7", "8")

    assert ending == "over"
    assert said.endswith("A draw after 9 moves.")


def test_draws_of_the_model_follow_from_the_seed(thinker: Thinker) -> None:
    state = load_game("tic_tac_toe").new_initial_state()

    def draws(seed: int) -> list[int]:
        random = np.random.default_rng(seed)
        return [thinker.choose(state, temperature=1.0, random=random) for _ in range(20)]

    assert draws(1) == draws(1) != draws(2)

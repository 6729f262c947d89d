"""Moves as people write them."""

from __future__ import annotations

import pytest

from hookloop.cli.move_words import MoveBook

FOUR = MoveBook({column: f"x{column}" for column in range(7)})
CHESS = MoveBook({10: "bxc3", 11: "Bxc3", 12: "Nf3", 13: "O-O"})
GO = MoveBook({0: "B a1", 40: "B e5", 81: "B PASS"})
SQUARES = MoveBook({0: "x(0,0)", 5: "x(1,2)"})


@pytest.mark.parametrize(
    ("book", "words", "move"),
    [
        (FOUR, "x3", 3), (FOUR, "X3", 3), (FOUR, "3", 3), (FOUR, " 3 ".strip(), 3), (FOUR, "7", None), (FOUR, "", None),
        (CHESS, "Bxc3", 11), (CHESS, "bxc3", 10), (CHESS, "nf3", 12), (CHESS, "o-o", 13), (CHESS, "12", 12),
        (CHESS, "BXC3", None), (GO, "e5", 40), (GO, "b e5", 40), (GO, "pass", 81), (GO, "81", 81),
        (SQUARES, "1,2", 5), (SQUARES, "x(1, 2)", 5), (SQUARES, "(1,2)", None), (SQUARES, "99999999999999", None),
    ],
)  # fmt: skip
def test_a_move_is_found_by_its_notation_or_its_number(book: MoveBook, words: str, move: int | None) -> None:
    assert book.find(words) == move


def test_words_that_are_no_move_are_explained_with_the_nearest() -> None:
    assert CHESS.explain("nf4") == "'nf4' is no legal move here. Near it: Nf3. 'moves' lists all 4."
    assert GO.explain("zzzzz") == "'zzzzz' is no legal move here. 'moves' lists all 3."


def test_words_that_could_be_two_moves_name_both() -> None:
    assert CHESS.explain("BXC3") == "'BXC3' could be bxc3, Bxc3: write it as one of them."

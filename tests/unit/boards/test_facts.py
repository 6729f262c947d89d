"""What a move has done and how a position stands: told from boards and notation, and absent where it makes no sense."""

from __future__ import annotations

import pytest

from hookloop.boards import Board, Material, MoveFacts, king_moves, material, move_facts, read_board, worth

SHOGI = "lnsgkgsnl/1r5b1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL b - 3"
SHOGI_TAKEN = "lnsgkgsnl/1r5+B1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/7R1/LNSGKGSNL w B 4"
OTHELLO = """\
Black (x) to play:
  a b c d e f g h\x20\x20
1 - - - - - - - - 1
2 - - - - - - - - 2
3 - - - - - - - - 3
4 - - - o x - - - 4
5 - - - x o - - - 5
6 - - - - - - - - 6
7 - - - - - - - - 7
8 - - - - - - - - 8
  a b c d e f g h\x20\x20
"""
OTHELLO_AFTER = OTHELLO.replace("4 - - - o x", "4 - - x x x").replace("Black (x)", "White (o)")


def facts(game: str, move: str, seat: int, before: str, after: str, *, is_check: bool | None = None) -> MoveFacts:
    return move_facts(game, move, seat, read_board(game, before), read_board(game, after), is_check=is_check)


def test_a_bishop_that_takes_a_bishop_and_promotes() -> None:
    found = facts("shogi", "8h2b+", 0, SHOGI, SHOGI_TAKEN, is_check=False)

    assert found == MoveFacts(
        arrival="2b", captured=("B",), turned=None, is_drop=False, is_promotion=True, is_check=False
    )


def test_a_drop_takes_nothing_and_gives_check_if_the_library_says_so() -> None:
    before = "4k4/9/9/9/9/9/9/9/4K4 b G 5"

    found = facts("shogi", "G*5b", 0, before, "4k4/4G4/9/9/9/9/9/9/4K4 w - 6", is_check=True)

    assert found == MoveFacts(arrival="5b", captured=(), is_drop=True, is_promotion=False, is_check=True)


def test_a_promoted_piece_that_is_taken_is_called_what_it_was_on_the_board() -> None:
    found = facts("shogi", "5a5b", 1, "4k4/4+P4/9/9/9/9/9/9/4K4 w - 6", "9/4k4/9/9/9/9/9/9/4K4 b p 7")

    assert found.captured == ("+P",)
    assert worth("shogi", "+P") == 7.0


def test_a_capture_in_chess_is_told_from_the_boards() -> None:
    found = facts(
        "chess", "exd5", 1,
        "rnbqkbnr/ppp1pppp/8/3p4/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2",
        "rnbqkbnr/ppp1pppp/8/3P4/8/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2",
    )  # fmt: skip

    assert found == MoveFacts(arrival="d5", captured=("P",), is_promotion=False, is_check=False)


def test_a_pawn_that_is_taken_in_passing_stood_beside_the_square_of_arrival() -> None:
    found = facts(
        "chess", "exd6", 1,
        "rnbqkbnr/ppp1pppp/8/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3",
        "rnbqkbnr/ppp1pppp/3P4/8/8/8/PPPP1PPP/RNBQKBNR b KQkq - 0 3",
    )  # fmt: skip

    assert found.captured == ("P",)
    assert found.arrival == "d6"


@pytest.mark.parametrize(
    ("move", "seat", "arrival"), [("O-O", 1, "g1"), ("O-O-O", 1, "c1"), ("O-O+", 0, "g8"), ("O-O-O#", 0, "c8")]
)
def test_castling_leads_where_the_king_goes(move: str, seat: int, arrival: str) -> None:
    board = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"

    found = facts("chess", move, seat, board, board)

    assert (found.arrival, found.captured, found.is_promotion) == (arrival, (), False)
    assert found.is_check is move.endswith(("+", "#"))


def test_a_pawn_that_takes_promotes_and_gives_check() -> None:
    found = facts("chess", "bxa8=Q+", 1, "r3k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "Q3k3/8/8/8/8/8/8/4K3 b - - 0 1")

    assert found == MoveFacts(arrival="a8", captured=("R",), is_promotion=True, is_check=True)


def test_stones_that_are_turned_are_no_captures() -> None:
    found = facts("othello", "c4", 0, OTHELLO, OTHELLO_AFTER)

    assert found == MoveFacts(arrival="c4", captured=None, turned=1)
    assert facts("othello", "pass", 0, OTHELLO, OTHELLO) == MoveFacts(arrival=None, turned=0)


def test_several_stones_are_taken_at_once_in_go() -> None:
    def position(*rows: str) -> str:
        written = "".join(f" {5 - number} {row}\n" for number, row in enumerate(rows))
        return f"GoState(komi=7.5, to_play=B, history.size()=1)\n\n{written}   ABCDE\n"

    before = position("OO+++", "XX+++", "+++++", "+++++", "+++++")
    after = position("++X++", "XX+++", "+++++", "+++++", "+++++")

    assert facts("go", "B c5", 0, before, after) == MoveFacts(arrival="c5", captured=("O", "O"))


@pytest.mark.parametrize(
    ("game", "move", "arrival"),
    [("tic_tac_toe", "x(1,2)", "1,2"), ("connect_four", "o3", "3"), ("hex", "c2", "c2"), ("go", "W PASS", None)],
)
def test_arrivals_are_named_as_moves_name_them(game: str, move: str, arrival: str | None) -> None:
    assert move_facts(game, move, 0, Board(), Board()).arrival == arrival


def test_of_a_game_that_is_not_known_nothing_is_said() -> None:
    board = read_board("mancala", "-0-2-")

    assert move_facts("mancala", "3", 0, board, board) == MoveFacts()
    assert material("mancala", board) is None
    assert king_moves("mancala", board, 0, ["3"]) is None


def test_a_position_that_cannot_be_read_has_no_captures_rather_than_none() -> None:
    assert move_facts("chess", "exd5", 1, Board(text="?"), Board(text="?")).captured is None
    assert material("chess", Board(text="?")) is None


def test_material_counts_the_board_and_the_hands_apart() -> None:
    begin = material("shogi", read_board("shogi", SHOGI))
    taken = material("shogi", read_board("shogi", SHOGI_TAKEN))

    assert begin == Material((63.0, 63.0), (0.0, 0.0))  # 9 pawns, 6 of lances, 8, 10, 12, 8 and 10
    assert taken == Material((65.0, 55.0), (8.0, 0.0))
    assert taken.total == (73.0, 55.0)


def test_material_of_chess_has_no_hands_and_that_of_stones_is_their_number() -> None:
    chess = material("chess", read_board("chess", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBN1 w Qkq - 0 1"))

    assert chess == Material((39.0, 34.0), None)
    assert material("othello", read_board("othello", OTHELLO_AFTER)) == Material((4.0, 1.0), None)
    assert material("hex", read_board("hex", ". x . \n . . o \n  x . . \n")) == Material((2.0, 1.0), None)


def test_the_moves_of_a_king_are_counted_among_the_legal_ones() -> None:
    shogi = read_board("shogi", "4k4/9/9/9/9/9/9/9/4K4 b G 5")
    chess = read_board("chess", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")

    assert king_moves("shogi", shogi, 0, ["5i5h", "5i4h", "G*5b", "G*5i"]) == 2
    assert king_moves("chess", chess, 1, ["Kd1", "O-O", "O-O-O", "Rb1", "Kxf2"]) == 4
    assert king_moves("othello", read_board("othello", OTHELLO), 0, ["c4"]) is None

"""Positions of board games as plain values: read from a library's text, drawn in letters. Plays nothing itself."""

from hookloop.boards.board import EMPTY, Board, GameView, Hand, Move, Square
from hookloop.boards.drawing import Ink, board_text, draw_board
from hookloop.boards.facts import Material, MoveFacts, king_moves, material, move_facts, worth
from hookloop.boards.kinds import Kind, kind_of
from hookloop.boards.marking import marked
from hookloop.boards.names import seat_names
from hookloop.boards.reading import read_board
from hookloop.boards.snapshot import GameSnapshot, board_as_plain, read_snapshot, snapshot_bytes, view_as_plain

__all__ = [
    "EMPTY",
    "Board",
    "GameSnapshot",
    "GameView",
    "Hand",
    "Ink",
    "Kind",
    "Material",
    "Move",
    "MoveFacts",
    "Square",
    "board_as_plain",
    "board_text",
    "draw_board",
    "kind_of",
    "king_moves",
    "marked",
    "material",
    "move_facts",
    "read_board",
    "read_snapshot",
    "seat_names",
    "snapshot_bytes",
    "view_as_plain",
    "worth",
]

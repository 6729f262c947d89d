"use strict";
// Draws a board as game.json has it: rows of squares, names of files and ranks, the last move, and hands.
const boards = (() => {
  // Whether this machine can show a letter: what no font has is drawn like a letter that nobody has.
  const ink = (letter) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 32;
    const pen = canvas.getContext("2d");
    pen.font = "20px ui-monospace, monospace";
    pen.fillText(letter, 2, 24);
    return canvas.toDataURL();
  };
  const NOBODYS = "\u{10fffd}";
  const known = new Map();
  const canShow = (letter) => {
    if (!known.has(letter)) known.set(letter, ink(letter) !== ink(NOBODYS));
    return known.get(letter);
  };
  const canShowAll = (board) => board.rows.every((row) => row.every((square) => [...square.symbol.trim()].every(canShow)));

  const element = (parent, kind, text) => {
    const made = document.createElement(kind);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };

  const cell = (row, kind, text) => {
    const made = element(row, kind);
    element(made, "span", text);
    return made;
  };

  const filesRow = (table, board) => {
    if (!board.files.length) return;
    const row = table.insertRow();
    if (board.ranks.length) cell(row, "th", "");
    board.files.forEach((file) => cell(row, "th", file));
  };

  // A piece of the second player is turned on the page, and has no mark of its own then.
  const shown = (square, isLettered) => (isLettered ? square.letters : square.symbol.replace(/^v/, "")).trim();

  const squares = (table, board, isLettered) => {
    const last = new Set(board.last.map(([row, column]) => `${row} ${column}`));
    board.rows.forEach((found, number) => {
      const row = table.insertRow();
      if (board.is_slanted) row.style.cssText = `position: relative; left: ${number * 0.95}rem`;
      if (board.ranks.length) cell(row, "th", board.ranks[number]);
      found.forEach((square, column) => {
        const made = cell(row, "td", shown(square, isLettered));
        made.className = square.seat === null ? "empty" : `seat${square.seat}`;
        if (last.has(`${number} ${column}`)) made.classList.add("last");
      });
    });
  };

  const hand = (place, board, seat, seats, isLettered) => {
    const found = board.hands.find((each) => each.seat === seat);
    if (!found) return;
    const held = found.pieces.map(([square, count]) => shown(square, isLettered) + (count > 1 ? count : ""));
    element(place, "div", `${seats[seat]} holds ${held.join(" ") || "nothing"}`).className = `hand seat${seat}`;
  };

  const draw = (place, board, seats, isLettered = false) => {
    place.replaceChildren();
    place.classList.add("board");
    place.classList.toggle("turned", board.hands.length > 0 && !isLettered);
    if (!board.rows.length) {
      element(place, "pre", board.text);
      return;
    }
    hand(place, board, 1, seats, isLettered);
    const table = element(place, "table");
    if (!board.has_files_below) filesRow(table, board);
    squares(table, board, isLettered);
    if (board.has_files_below) filesRow(table, board);
    hand(place, board, 0, seats, isLettered);
  };
  return { draw, canShowAll };
})();

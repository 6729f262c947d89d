// A game under way: its board, how it stands, how games end, and its moves.
import { byId, count, element, isNew, row, share } from "/assets/dash.js";

const OUTCOMES = ["first_wins", "second_wins", "draws", "cut_off"];
const BY_SEAT = { captures: "captures", turned: "turned", drops: "drops", checks: "checks", promotions: "promotions", king_moves: "king moves" };
const SINGLE = { best_capture: "best taken", longest_quiet: "most quiet moves", lead: "final lead" };
const sum = (found) => Object.values(found).reduce((total, each) => total + each, 0);
const one = (value) => (value === undefined ? "-" : value.toFixed(1));
let shown = null;

export function showGame(view) {
  const game = view.game;
  byId("game").hidden = !game && !view.game_fault;
  byId("play").hidden = !game;
  const note = byId("game-note");
  note.hidden = !view.game_fault && !view.is_game_old;
  note.textContent = view.game_fault ? `No board: ${view.game_fault}.` : `The board is of ${Math.round(view.game_age_seconds)} s ago.`;
  byId("play").classList.toggle("old", view.is_game_old);
  if (!game) return;
  if (shown === null && !boards.canShowAll(game.board)) byId("letters").checked = true;
  shown = game;
  byId("game-title").textContent = `${game.game} · ${count(sum(game.tally))} games` +
    (view.elapsed_seconds >= 1 ? `, ${count((3600 * sum(game.tally)) / view.elapsed_seconds)} an hour` : "");
  if (isNew(byId("board"), game.board)) showBoard();
  showPosition(game);
  if (isNew(byId("results"), [game.tally, game.recent, view.latest])) showResults(game, view.latest);
  if (isNew(byId("figures"), [game.statistics, game.opening, game.hot_squares])) showFigures(game);
  if (isNew(byId("moves"), game.moves)) showMoves(game);
}

function showBoard() {
  byId("lettered").hidden = !shown.board.rows.length;
  boards.draw(byId("board"), shown.board, shown.seats, byId("letters").checked);
}

function showPosition(game) {
  const found = [];
  if (game.is_check) found.push("check");
  if (game.material) found.push(`material ${game.material[0]} : ${game.material[1]}`);
  if (game.quiet_moves !== null) found.push(`${game.quiet_moves} quiet moves`);
  if (game.king_moves !== null) found.push(`${game.king_moves} moves of the king`);
  if (game.buffered) found.push(`buffer ${count(game.buffered[0])} of ${count(game.buffered[1])}`);
  byId("position").textContent = found.join(" · ");
}

function showResults(game, latest) {
  const names = [`${game.seats[0]} wins`, `${game.seats[1]} wins`, "draws", "cut off"];
  const all = sum(game.tally), recent = sum(game.recent);
  const head = element("tr");
  for (const text of ["", "games", "of all", recent ? `of the last ${count(recent)}` : ""]) element("th", text, { name: "number", parent: head });
  const rows = OUTCOMES.map((outcome, k) => row(
    [names[k], count(game.tally[outcome] || 0), all ? share((game.tally[outcome] || 0) / all) : "-", recent ? share((game.recent[outcome] || 0) / recent) : ""],
    [1, 2, 3],
  ));
  for (const [name, key] of [["moves a game", "episode/length"], ["rating", "eval/rating"]]) {
    if (typeof latest[key] === "number") rows.push(row([name, latest[key].toFixed(key === "eval/rating" ? 0 : 1), "", ""], [1, 2, 3]));
  }
  byId("results").replaceChildren(head, ...rows);
}

function showFigures(game) {
  const found = game.statistics;
  const rows = Object.entries(BY_SEAT).filter(([name]) => `first_${name}` in found)
    .map(([name, label]) => row([label, `${one(found[`first_${name}`])} : ${one(found[`second_${name}`])}`], [1]));
  for (const [name, label] of Object.entries(SINGLE)) if (name in found) rows.push(row([label, one(found[name])], [1]));
  byId("figures").replaceChildren(...rows);
  const habits = [];
  if (game.opening.length) habits.push(`opening ${game.opening.join(" ")} (${share(found.opening_share || 0)})`);
  if (game.hot_squares.length) habits.push(`hot squares ${game.hot_squares.map(([name]) => name).join(" ")}`);
  if (habits.length && found.looked_at) habits.push(`of ${count(found.looked_at)} games`);
  byId("habits").textContent = habits.join(" · ");
}

function showMoves(game) {
  const rows = game.moves.map((move) => {
    const made = element("li");
    element("span", move.number, { name: "number", parent: made });
    element("span", move.text, { name: `seat${move.seat}`, parent: made });
    return made;
  });
  const place = byId("moves");
  const isAtEnd = place.scrollTop + place.clientHeight >= place.scrollHeight - 4;
  place.replaceChildren(...rows);
  if (isAtEnd || game.moves.length < 2) place.scrollTop = place.scrollHeight;  // else somebody reads earlier ones
}

byId("letters").addEventListener("change", () => { if (shown) showBoard(); });

"""``hookloop ratings``: how strong the network of a game has become, and who was champion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hookloop.cli.tables import say, short, show_table, write_json
from hookloop.display import sparkline
from hookloop.runs.folder import find_run
from hookloop.runs.standing import open_stats

CONFIDENT = 1.96  # standard deviations on either side within which 95 of 100 normal results lie
MATCH = "match/"

Row = dict[str, Any]


def ratings(run: str, *, runs_dir: Path = Path("runs"), json: bool = False) -> int:
    """Show how strong the network of a run has become at its game.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        runs_dir: The folder of all runs.
        json: Write everything as JSON.
    """
    folder = find_run(runs_dir, run)
    run_id = folder.read_config().run_id
    with open_stats(folder) as reader:
        rated, matches = reader.ratings(run_id), reader.evaluations(run_id)
        promoted = [each for each in reader.lineage(run_id) if each["relation"] == "promoted"]
    curve, opponents = _curve(rated, matches, promoted), _opponents(rated, matches)
    if json:
        promotions = [_promotion(each) for each in promoted]
        write_json({"run": folder.name, "curve": curve, "opponents": opponents, "promotions": promotions})
    elif not curve:
        say(f"no ratings in {folder.name} yet: a run of self-play writes them where evaluation.schedule is set")
    else:
        _show(curve, opponents, promoted)
    return 0


def _curve(rated: list[Row], matches: list[Row], promoted: list[Row]) -> list[Row]:
    """Return the rating of each version when it was evaluated, with its scores by opponent."""
    scores: dict[str, dict[str, float]] = {}
    for each in _matches(matches):
        scores.setdefault(each["about"]["player"], {})[each["about"]["opponent"]] = each["score"]
    champions = {each["child"] for each in promoted}
    found: dict[str, Row] = {}
    for each in rated:
        player = each["player"]
        if player in scores and player not in found:  # later ratings of a version are those it has as champion
            place = {name: each[name] for name in ("epoch", "env_steps", "seconds")}
            of_player = {"scores": scores[player], "is_promoted": player in champions, "games": each["games"]}
            found[player] = {"version": player, **place, **_interval(each), **of_player}
    return list(found.values())


def _opponents(rated: list[Row], matches: list[Row]) -> list[Row]:
    """Return the latest ratings of opponents that never change, and the latest score against each."""
    met = {each["about"]["opponent"]: each["score"] for each in _matches(matches)}
    versions = {each["about"]["player"] for each in _matches(matches)}
    latest = {each["player"]: each for each in rated}
    found = [
        {"opponent": name, **_interval(latest[name]), "games": latest[name]["games"], "latest_score": score}
        for name, score in met.items()
        if name not in versions and name in latest
    ]
    return sorted(found, key=lambda each: (each["rating"], each["opponent"]))


def _matches(evaluations: list[Row]) -> list[Row]:
    return [each for each in evaluations if each["name"].startswith(MATCH) and each["about"]]


def _interval(rated: Row) -> Row:
    elo, spread = rated["rating"], CONFIDENT * (rated["deviation"] or 0.0)
    return {"rating": elo, "low": elo - spread, "high": elo + spread}


def _promotion(row: Row) -> Row:
    place = {name: row[name] for name in ("epoch", "env_steps")}
    return {"version": row["child"], "parent": row["parent"], **place, **(row["about"] or {})}


def _show(curve: list[Row], opponents: list[Row], promoted: list[Row]) -> None:
    names = [each["opponent"] for each in opponents]
    rows = [
        [
            each["version"], str(each["env_steps"]), str(round(each['rating'])), _span(each),
            *(_percent(each["scores"].get(name)) for name in names), "champion" if each["is_promoted"] else "",
        ]
        for each in curve
    ]  # fmt: skip
    show_table(("version", "steps", "rating", "interval", *names, ""), rows)
    say(f"rating  {sparkline([each['rating'] for each in curve])}")
    for each in opponents:
        is_measure = each["low"] == each["high"]
        how_sure = "by which all are measured" if is_measure else f"{_span(each)}, after {each['games']} games"
        say(f"{each['opponent']} has rating {round(each['rating'])}, {how_sure}")
    for each in promoted:
        score = _percent((each["about"] or {}).get("score"))
        say(f"{each['child']} became champion with {score} against {each['parent']}")


def _span(row: Row) -> str:
    return f"{round(row['low'])} to {round(row['high'])}"


def _percent(score: float | None) -> str:
    return short(score) if score is None else f"{score:.1%}"

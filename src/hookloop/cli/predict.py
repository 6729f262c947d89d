"""``hookloop predict``: ask a trained model what it sees in a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from hookloop.cli.tables import note, show_table, write_json
from hookloop.cli.trained_model import find_trained, load_trained
from hookloop.errors import ConfigError

Live = Any

ENDINGS = (".npy", ".csv")
AT_ONCE = 1024
"""Images that go through the model together."""
RUNNERS_UP = 2


def predict(
    run: str, file: Path, *, checkpoint: str = "latest", json: bool = False, runs_dir: Path = Path("runs")
) -> int:
    """Ask the model of a run what the images in a file show.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        file: A .npy of the shape [n, 64] or [n, 8, 8], or a .csv of 64 numbers in each line: pixels from 0 to 16.
        checkpoint: Which weights: latest, best, final, a step, an epoch such as epoch5, a path or a URI.
        json: Write every answer with all its probabilities as JSON.
        runs_dir: The folder of all runs.
    """
    folder = find_trained(runs_dir, run, "predict")
    images = _read(file)
    trained = load_trained(folder, checkpoint)
    probabilities = _ask(trained.model, images)
    if json:
        answers = [_as_json(row, each) for row, each in enumerate(probabilities)]
        write_json({"run": trained.run, "checkpoint": trained.checkpoint, "answers": answers})
        return 0
    rows = [[str(row), *_in_words(each)] for row, each in enumerate(probabilities)]
    show_table(("image", "answer", "probability", "next"), rows)
    return 0


def _read(file: Path) -> Live:
    """Return the images in a file as the model takes them."""
    from hookloop.supervised.datasets.digits import digit_images

    if file.suffix.lower() not in ENDINGS:
        raise ConfigError(f"A file of images ends in {' or '.join(ENDINGS)}, got {str(file)!r}.")
    if not file.is_file():
        raise ConfigError(f"There is no file {str(file)!r}.")
    values = _read_numpy(file) if file.suffix.lower() == ".npy" else _read_csv(file)
    if not len(values):
        raise ConfigError(f"{file} holds no images.")
    try:
        images = digit_images(values)
    except ConfigError as error:
        raise ConfigError(f"{file} cannot be asked about. {error}") from error
    if float(images.max()) * 16 <= 1:
        note(f"note: no pixel in {file} is brighter than 1; here they go from 0 to 16, and images this dark look empty")
    return images


def _read_numpy(file: Path) -> Live:
    import numpy

    try:
        # Mapped and not read: a header that claims more numbers than there are costs nothing.
        values = numpy.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ConfigError(f"{file} is no array that numpy.save wrote: {str(error).rstrip('.')}.") from error
    if not isinstance(values, numpy.ndarray) or values.dtype.kind not in "biuf" or not values.ndim:
        raise ConfigError(f"{file} is no array of numbers.")
    return numpy.array(values, dtype=numpy.float32)


def _read_csv(file: Path) -> list[list[float]]:
    try:
        with file.open(newline="", encoding="utf-8") as opened:
            rows = [(number, row) for number, row in enumerate(csv.reader(opened), start=1) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{file} is no CSV: {error}.") from error
    found: list[list[float]] = []
    for number, row in rows:
        if len(row) != 64:
            raise ConfigError(f"{file}, line {number}: an image is a line of 64 numbers, got {len(row)}.")
        try:
            found.append([float(cell) for cell in row])
        except ValueError as error:
            raise ConfigError(f"{file}, line {number}: {error}; a line is 64 numbers, without names above.") from error
    return found


def _ask(model: Live, images: Live) -> list[list[float]]:
    """Return the probabilities of the classes for each image."""
    import torch

    with torch.no_grad():
        scores = torch.cat([model(part) for part in images.split(AT_ONCE)])
        return torch.softmax(scores.double(), dim=-1).tolist()


def _ranked(probabilities: list[float]) -> list[int]:
    return sorted(range(len(probabilities)), key=lambda answer: -probabilities[answer])


def _in_words(probabilities: list[float]) -> list[str]:
    best, *others = _ranked(probabilities)
    following = ", ".join(f"{each} ({probabilities[each]:.2%})" for each in others[:RUNNERS_UP])
    return [str(best), f"{probabilities[best]:.2%}", following]


def _as_json(row: int, probabilities: list[float]) -> dict[str, Any]:
    best = _ranked(probabilities)[0]
    return {"image": row, "answer": best, "probability": probabilities[best], "probabilities": probabilities}

"""The command ``hookloop``. Each command lives in a module of its own, imported when it is called."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import App, CycloptsError
from rich.console import Console

from hookloop import __version__
from hookloop.cli.exit_codes import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_LOCKED, EXIT_MISSING_EXTRA, EXIT_USAGE
from hookloop.cli.learners import await_the_end, end, who
from hookloop.errors import (
    CheckpointWriteError,
    DamagedCheckpointError,
    HookloopError,
    MissingExtraError,
    NonFiniteError,
    RankLostError,
    RunLockedError,
)

app = App(
    name="hookloop",
    help="A training loop that only trains, and hooks for everything else.",
    version=__version__,
    help_format="plaintext",
)
# The texts stand here so that --help imports no command.
app.command("hookloop.cli.train:train", help="Train a recipe.")
app.command("hookloop.cli.runs:app", name="runs", help="List the runs and how they stand; show, compare, tag, remove.")
app.command("hookloop.cli.metrics:metrics", help="Show what a run has measured.")
app.command("hookloop.cli.ratings:ratings", help="Show how strong the network of a game has become.")
app.command("hookloop.cli.metrics:query", help="Ask the statistics of a run in SQL.")
app.command("hookloop.cli.sync:sync", help="Send trackers what they have missed of a run.")
app.command("hookloop.cli.plot:plot", help="Draw the curves of runs into a file.")
app.command("hookloop.cli.report:report", help="Write one page about a run.")
app.command("hookloop.cli.checkpoints:checkpoints", help="List, verify, pin or delete the checkpoints of a run.")
app.command("hookloop.cli.evaluate:evaluate_run", name="eval", help="Score a checkpoint of a run.")
app.command("hookloop.cli.eval_worker:eval_worker", help="Carry out the evaluations that runs ask for.")
app.command("hookloop.cli.replay:replay", help="Step through a recorded episode.")
app.command("hookloop.cli.play:play", help="Play a game against the model of a run, or watch it play itself.")
app.command("hookloop.cli.sample:sample", help="Continue a text with the model of a run.")
app.command("hookloop.cli.predict:predict", help="Ask the model of a run what the images in a file show.")
app.command("hookloop.cli.export:export", help="Write the weights of a run to a file.")
app.command("hookloop.cli.export:import_", name="import", help="Turn a foreign weights file into safetensors.")
app.command("hookloop.cli.recipes:recipes", help="List the recipes that can be trained.")
app.command("hookloop.cli.recipes:config", help="Show a recipe's settings and where each comes from.")
app.command("hookloop.cli.bench:bench", help="Measure how many workers a recipe's rollouts are worth.")
app.command("hookloop.cli.check_env:check_env", help="Check that an environment behaves.")
app.command("hookloop.cli.watch:watch", help="Show a run live, from another shell.")
app.command("hookloop.cli.dash:dash", help="Show all runs live in a browser.")
app.command("hookloop.cli.watchdog:watchdog", help="Watch a run from outside, and end it if it hangs.")
app.command("hookloop.cli.hooks:hooks", help="List every hook a configuration can name, or what those of a run cost.")
app.command("hookloop.cli.doctor:doctor", help="Check what is installed and say what is missing.")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code."""
    end(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; errors become one sentence on the error output."""
    notes = Console(stderr=True)
    try:
        code = app(
            list(arguments), exit_on_error=False, print_error=True, error_console=notes, result_action="return_value"
        )
    except CycloptsError:
        return EXIT_USAGE  # cyclopts has said what was wrong
    except MissingExtraError as error:
        _complain(notes, error)
        return EXIT_MISSING_EXTRA
    except RunLockedError as error:
        _complain(notes, error)
        return EXIT_LOCKED
    except RankLostError as error:
        _complain(notes, error)
        await_the_end()
        return EXIT_FAILED
    except (DamagedCheckpointError, CheckpointWriteError, NonFiniteError) as error:
        _complain(notes, error)
        return EXIT_FAILED
    except HookloopError as error:
        _complain(notes, error)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return EXIT_FAILED  # whoever read the output has gone
    except Exception as error:  # noqa: BLE001  # the top of the command: a run that failed says so with its code
        traceback.print_exc()
        _complain(notes, error)
        return EXIT_FAILED
    return code if isinstance(code, int) else 0


def _complain(notes: Console, error: Exception) -> None:
    notes.print(f"error: {who()}{error}", style="red", markup=False, highlight=False, soft_wrap=True)
    for note in getattr(error, "__notes__", ()):
        notes.print(f"       {note}", markup=False, highlight=False, soft_wrap=True)

"""The tables of the pages name everything the code knows, and nothing else."""

import inspect
import re
import signal
from collections.abc import Callable
from dataclasses import fields

import pytest

from hookloop import CheckpointHook, HookManager, core, parse_schedule
from hookloop.checkpoints import Retention
from hookloop.checkpoints.selectors import WORDS
from hookloop.cli import exit_codes
from hookloop.config.settings import CheckpointConfig, EvaluationConfig
from hookloop.core import BUILT_IN_CLOCKS, HookContext, TrainerState
from hookloop.core.clocks import CLOCK_ALIASES
from hookloop.core.options import ON_ERROR, STAGES
from hookloop.errors import UnknownNameError
from hookloop.stats.schema import METADATA, SUPERSEDED
from tests.docs.doc_pages import ROOT, table_under

DOCS = ROOT / "docs"


def test_the_table_of_parameters_is_complete() -> None:
    rows = table_under(DOCS / "hooks.md", "## Parameters")
    services = next(cells[0] for cells in rows if cells[1].startswith("the service"))
    listed = {name for cells in rows for name in code_words(cells[0])}

    def asks_for_nonsense(zzzqqq: object) -> None: ...

    # `hook_context` and `_` are accepted but not advertised; services are accepted whether a run has them or not.
    known = names_known_to(lambda: HookManager().add(asks_for_nonsense))
    assert listed == known | {"hook_context", "_"} | code_words(services)


def test_every_listed_parameter_is_accepted() -> None:
    listed = {name for cells in table_under(DOCS / "hooks.md", "## Parameters") for name in code_words(cells[0])}

    for name in sorted(listed):
        hook = type("Asks", (), {"on_epoch_end": eval(f"lambda self, {name}: None")})()
        assert HookManager().add(hook) == "Asks"


def test_the_table_of_options_is_complete() -> None:
    listed = {name for cells in table_under(DOCS / "hooks.md", "## Options") for name in code_words(cells[0])}

    known = names_known_to(lambda: HookManager().add(print, zzzqqq=1))

    assert listed == known


def test_the_table_of_clocks_is_complete() -> None:
    rows = table_under(DOCS / "state.md", "## Clocks")
    words = {code_words(cells[0]).pop(): code_words(cells[3]) for cells in rows}

    assert list(words) == list(BUILT_IN_CLOCKS)
    assert {word: clock for clock, group in words.items() for word in group} == dict(CLOCK_ALIASES)


def test_the_table_of_the_state_is_complete() -> None:
    listed = {name for cells in table_under(DOCS / "state.md", "## The state") for name in code_words(cells[0])}

    assert listed == {field.name for field in fields(TrainerState)}


def test_the_table_of_the_context_is_complete() -> None:
    listed = {name for cells in table_under(DOCS / "state.md", "## The context") for name in code_words(cells[0])}
    public = {name for name in dir(HookContext()) if not name.startswith("_")}

    of_the_dispatcher = {"attach", "previous_step", "snapshot", "step_clock", "value"}
    calls = {
        "drain_metrics",
        "log",
        "note_failure",
        "request",
        "request_checkpoint",
        "request_evaluation",
        "request_skip",
        "request_stop",
    }
    assert listed == public - of_the_dispatcher - calls


def test_the_tables_of_stages_and_policies_are_complete() -> None:
    stages = [code_words(cells[0]).pop() for cells in table_under(DOCS / "order.md", "## Stages")]
    policies = [code_words(cells[0]).pop() for cells in table_under(DOCS / "failures.md", "## Policies")]

    assert stages == list(STAGES)
    assert policies == list(ON_ERROR)


def test_the_texts_of_schedules_mean_what_stands_beside_them() -> None:
    for texts, schedules in table_under(DOCS / "schedules.md", "## Text form"):
        for text, schedule in zip(code_spans(texts), code_spans(schedules), strict=True):
            assert parse_schedule(text) == eval(schedule, dict(vars(core)))


def test_the_table_of_checkpoint_settings_has_every_setting_with_its_default() -> None:
    rows = table_under(DOCS / "checkpoints.md", "## Settings")
    listed = {code_words(cells[0]).pop().removeprefix("checkpoints."): cells[1].strip("`") for cells in rows}

    assert listed == {name: str(field.default) for name, field in CheckpointConfig.model_fields.items()}


def test_the_table_of_evaluation_settings_has_every_setting_with_its_default() -> None:
    rows = table_under(DOCS / "evaluation.md", "## In a run")
    listed = {code_words(cells[0]).pop().removeprefix("evaluation."): cells[1].strip("`") for cells in rows}

    assert listed == {name: str(getattr(EvaluationConfig(), name)) for name in EvaluationConfig.model_fields}


def test_the_table_of_retention_has_every_rule_with_its_default() -> None:
    rows = table_under(DOCS / "checkpoints.md", "### Retention")
    listed = {name: cells[1] for cells in rows for name in code_words(cells[0])}

    assert listed == {name: str(getattr(Retention(), name)) for name in ("keep_last", "keep_best", "keep_every")}


def test_the_table_of_the_checkpoint_hook_has_every_argument() -> None:
    listed = [code_words(cells[0]).pop() for cells in table_under(DOCS / "checkpoints.md", "## In Python")]

    assert listed == list(inspect.signature(CheckpointHook).parameters)


def test_the_words_for_a_checkpoint_are_listed() -> None:
    listed = {word for cells in table_under(DOCS / "checkpoints.md", "### Selectors") for word in code_words(cells[0])}

    assert set(WORDS) <= listed


def test_the_table_of_exit_codes_is_complete() -> None:
    listed = {int(code) for cells in table_under(DOCS / "cli.md", "## Exit codes") for code in cells[0].split(", ")}

    known = {value for name, value in vars(exit_codes).items() if name.startswith("EXIT_")}
    assert listed == known | {128 + signal.SIGTERM}


def test_the_tables_of_the_statistics_are_complete() -> None:
    listed = {code_spans(cells[0])[0]: code_spans(cells[2]) for cells in table_under(DOCS / "stats.md", "## Tables")}

    tables = {name: [column.name for column in table.c] for name, table in METADATA.tables.items()}
    assert listed == {name: columns for name, columns in tables.items() if not name.startswith("superseded_")}
    page = (DOCS / "stats.md").read_text(encoding="utf-8")
    superseded = page.partition("- `epochs`, `points`")[2].partition("have a table")[0]
    assert {"epochs", "points", *code_spans(superseded)} == set(SUPERSEDED)


def code_words(cell: str) -> set[str]:
    return set(code_spans(cell))


def code_spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def names_known_to(act: Callable[[], object]) -> set[str]:
    """Return the names that a refusal lists."""
    with pytest.raises(UnknownNameError, match="Known: ") as refusal:
        act()
    return set(str(refusal.value).partition("Known: ")[2].rstrip(".").split(", "))

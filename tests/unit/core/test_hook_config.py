"""Hooks from configurations and back: by registered name alone, all or nothing, and without loss."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.core import CompositeHook, Cycle, Every, HookContext, HookManager, When, Window, parse_schedule
from hookloop.core.registry import find_hook_type, hook_sources, register_hook_type
from hookloop.errors import ConfigError, HookloopError, NameClashError
from hookloop.hooks import LoggingHook, load_hooks

Item = dict[str, Any]


@register_hook_type("config_probe")
class Probe:
    """Keeps its arguments as plain data."""

    def __init__(self, limit: int, *, words: list[str] | None = None, factor: float = 1.0) -> None:
        self.limit = limit
        self.words = words
        self.factor = factor
        self.calls = 0

    def on_epoch_end(self, ctx: HookContext) -> None:
        self.calls += 1


@register_hook_type("config_secretive")
class Secretive:
    """Does not keep what it was given."""

    def __init__(self, path: str) -> None:
        self._path = path

    def on_epoch_end(self) -> None: ...


@register_hook_type("config_picky")
class Picky:
    """Refuses what it is given."""

    def __init__(self, limit: int) -> None:
        raise ValueError(f"a limit of {limit} is odd")

    def on_epoch_end(self) -> None: ...


def built(*items: Item) -> HookManager:
    hooks = HookManager()
    hooks.add_config(list(items))
    return hooks


def refusal_of(items: object) -> str:
    """Return the words with which a configuration is refused, having seen that nothing of it was added."""
    hooks = HookManager()
    with pytest.raises(HookloopError) as caught:
        hooks.add_config(items)
    assert len(hooks) == 0
    return str(caught.value)


# From a configuration


def test_an_item_names_a_hook_its_arguments_and_its_options() -> None:
    hooks = built({"use": "config_probe", "args": {"limit": 3}, "schedule": "every 10 epochs", "priority": 2})

    (probe,) = hooks.get_hooks()
    (entry,) = hooks.entries()
    assert (probe.limit, probe.factor) == (3, 1.0)
    assert (entry.options.schedule, entry.options.priority) == (Every(10, "epochs"), 2)


def test_names_come_back_in_the_order_of_the_list() -> None:
    names = HookManager().add_config([{"use": "logging"}, {"use": "logging", "name": "chatter"}, {"use": "logging"}])

    assert names == ["LoggingHook", "chatter", "LoggingHook_2"]


def test_a_schedule_may_be_given_per_event() -> None:
    hooks = built({"use": "time_limit", "args": {"limit_seconds": 60}, "schedule": {"epoch_end": "every 5 epochs"}})

    assert hooks.entries()[0].options.schedules == {"epoch_end": Every(5, "epochs")}


def test_a_hook_gets_arguments_of_its_own() -> None:
    words = ["a"]
    item = {"use": "config_probe", "args": {"limit": 1, "words": words}}
    hooks = built(item)

    (probe,) = hooks.get_hooks()
    probe.words.append("b")

    assert words == ["a"]
    assert hooks.to_config()[0]["args"]["words"] == ["a"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("hooks.yaml", "hooks:\n- use: config_probe\n  args: {limit: 3}\n  schedule: every 2 epochs\n"),
        ("hooks.toml", '[[hooks]]\nuse = "config_probe"\nargs = { limit = 3 }\nschedule = "every 2 epochs"\n'),
        ("hooks.json", '{"hooks": [{"use": "config_probe", "args": {"limit": 3}, "schedule": "every 2 epochs"}]}'),
    ],
)
def test_a_file_lists_hooks_in_any_of_three_formats(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)

    hooks = load_hooks(path)

    assert [hook.limit for hook in hooks.get_hooks()] == [3]
    assert [entry.options.schedule for entry in hooks.entries()] == [Every(2, "epochs")]


def test_a_yaml_file_may_say_on_which_event_a_hook_runs(tmp_path: Path) -> None:
    path = tmp_path / "hooks.yaml"
    path.write_text("hooks:\n  - use: logging\n    on: epoch_end\n")

    hooks = load_hooks(path)

    assert list(hooks.entries()[0].slots) == ["epoch_end"]


def test_a_file_may_list_no_hooks(tmp_path: Path) -> None:
    path = tmp_path / "hooks.yaml"
    path.write_text("hooks: []")

    assert len(load_hooks(path)) == 0


def test_an_unknown_key_of_a_file_is_told_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "hooks.yaml"
    path.write_text("hoks: []")

    with pytest.raises(ConfigError, match=r"hooks\.yaml has the key 'hoks'.*Did you mean 'hooks'\?"):
        load_hooks(path)


# What is refused


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ({"use": "logging"}, ["'hooks' must be a list", "{use: logging}", "dict"]),
        ("logging", ["'hooks' must be a list", "str"]),
        (None, ["'hooks' must be a list", "NoneType"]),
        (["logging"], ["hooks[0]", "a mapping such as {use: logging}", "'logging'"]),
        ([{"use": "logging"}, {}], ["hooks[1]", "'use: NAME'", "'hookloop hooks'"]),
        ([{"use": 3}], ["hooks[0]", "'use: NAME'"]),
        ([{"use": "logging", "shedule": 3}], ["hooks[0]", "'shedule'", "Did you mean 'schedule'?"]),
        ([{"use": "logging", "arg": {}}], ["hooks[0]", "'arg'", "Did you mean 'args'?"]),
        ([{"use": "logging", 3: 4}], ["hooks[0]", "the key 3"]),
        ([{"use": "logging", "args": [3]}], ["hooks[0].args", "a mapping", "[3]"]),
        (
            [{"use": "logging", "args": {"frequncy": 3}}],
            ["hooks[0].args", "'frequncy'", "'logging' does not take", "Did you mean 'frequency'?"],
        ),
        ([{"use": "config_probe"}], ["hooks[0].args", "'config_probe'", "missing", "'limit'", "it takes (limit"]),
        ([{"use": "config_picky", "args": {"limit": 3}}], ["hooks[0]", "'config_picky'", "a limit of 3 is odd"]),
        ([{"use": "logging", "args": {"frequency": "ten"}}], ["hooks[0]", "'logging'", "ten"]),
        ([{"use": "logging", "schedule": "evry 5 epochs"}], ["hooks[0]", "'evry'", "Did you mean 'every'?"]),
        ([{"use": "logging", "stage": "reprot"}], ["hooks[0]", "'reprot'", "Did you mean 'report'?"]),
    ],
    ids=str,
)
def test_a_wrong_item_is_told_its_place_the_value_and_the_rule(items: object, words: list[str]) -> None:
    message = refusal_of(items)

    assert [word for word in words if word not in message] == [], message


def test_a_misspelt_hook_is_told_with_its_place_and_the_nearest_name() -> None:
    message = refusal_of([{"use": "logging"}, {"use": "loging"}])

    assert "'loging'" in message
    assert "Did you mean 'logging'?" in message
    assert "hooks[1]" in message


def test_nothing_is_added_when_a_later_item_is_refused_by_the_hooks() -> None:
    items = [{"use": "logging", "name": "same"}, {"use": "config_probe", "args": {"limit": 1}, "name": "same"}]

    message = refusal_of(items)

    assert "hooks[1]" in message
    assert "'same'" in message


@pytest.mark.parametrize("schedule", [{3: "every 5 epochs"}, {"epoch_end": ["every 5 epochs"]}], ids=str)
def test_nothing_is_added_whatever_is_wrong_with_a_later_item(schedule: object) -> None:
    items = [{"use": "logging"}, {"use": "config_probe", "args": {"limit": 1}, "schedule": schedule}]

    assert "hooks[1]" in refusal_of(items)


@pytest.mark.parametrize(
    "path",
    ["hookloop.hooks.logging:LoggingHook", "os.system", "innocent_looking:Hook", "../hooks", "C:\\hooks"],
)
def test_an_import_path_is_refused_and_nothing_is_imported(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "innocent_looking.py").write_text("raise SystemExit('this module was imported')")
    monkeypatch.syspath_prepend(tmp_path)

    message = refusal_of([{"use": path}])

    assert repr(path) in message
    assert "import path" in message
    assert "logging" in message
    assert "@register_hook_type" in message
    assert "'hookloop.hooks'" in message
    assert "innocent_looking" not in sys.modules


# Plugins


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install a distribution with one entry point, for the length of a test."""

    def install(distribution: str, entry: str, source: str) -> None:
        module = entry.partition("=")[2].partition(":")[0].strip()
        folder = tmp_path / distribution
        metadata = folder / f"{distribution}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[hookloop.hooks]\n{entry}\n")
        (folder / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install


PLUGIN = "class PluginHook:\n    def on_epoch_end(self): ...\n"


def test_an_installed_plugin_is_listed_but_neither_imported_nor_active(install: Callable[..., None]) -> None:
    install("shiny", "shiny = shiny_plugin:PluginHook", PLUGIN)

    source = hook_sources()["shiny"]
    hooks = HookManager()

    assert (source.origin, source.target) == ("shiny", "shiny_plugin:PluginHook")
    assert "shiny_plugin" not in sys.modules
    assert len(hooks) == 0


def test_a_plugin_is_imported_when_a_configuration_names_it(install: Callable[..., None]) -> None:
    install("shiny", "shiny = shiny_plugin:PluginHook", PLUGIN)

    hooks = built({"use": "shiny"})

    assert [type(hook).__name__ for hook in hooks.get_hooks()] == ["PluginHook"]
    assert hooks.to_config() == [{"use": "shiny", "name": "PluginHook"}]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [("broken = broken_plugin:PluginHook", "no_such_package"), ("broken = broken_plugin:Missing", "broken_plugin")],
)
def test_a_plugin_that_cannot_be_imported_is_named_with_the_reason(
    install: Callable[..., None], entry: str, reason: str
) -> None:
    install("shiny", entry, "import no_such_package" if "no_such" in reason else PLUGIN)

    message = refusal_of([{"use": "broken"}])

    assert "'broken' of shiny cannot be imported" in message
    assert reason in message


def test_an_installed_plugin_cannot_change_what_a_name_means(install: Callable[..., None]) -> None:
    install("shiny", "logging = shiny_plugin:PluginHook", PLUGIN)

    message = refusal_of([{"use": "logging"}])

    assert "'logging'" in message
    assert "shiny (shiny_plugin:PluginHook)" in message
    assert "hookloop (hookloop.hooks.logging:LoggingHook)" in message
    assert "shiny_plugin" not in sys.modules


def test_a_name_is_registered_once() -> None:
    assert register_hook_type("config_probe")(Probe) is Probe
    with pytest.raises(NameClashError, match=r"'config_probe' is taken by .*Probe; choose another"):
        register_hook_type("config_probe")(Secretive)

    assert find_hook_type("config_probe") is Probe


# Back to a configuration


def test_hooks_added_in_a_program_can_be_written_down() -> None:
    hooks = HookManager()
    hooks.add(LoggingHook(50, start_step=7), schedule=Every(5, "epochs") & ~Window(3, 9), name="chatter")
    hooks.add(Probe(3, words=["a"]), after=("chatter",), budget="2%", on_error="warn")

    assert hooks.to_config() == [
        {
            "use": "logging",
            "name": "chatter",
            "args": {"frequency": 50, "start_step": 7},
            "schedule": "every 5 epochs and (until 3 or from 9)",
        },
        {
            "use": "config_probe",
            "name": "Probe",
            "args": {"limit": 3, "words": ["a"]},
            "after": ["chatter"],
            "budget": "2%",
            "on_error": "warn",
        },
    ]


def test_what_a_hook_has_learned_since_is_state_and_not_configuration() -> None:
    hooks, probe = HookManager(), Probe(3)
    hooks.add(probe)

    probe.limit, probe.calls = 5, 8

    assert hooks.to_config() == [{"use": "config_probe", "name": "Probe", "args": {"limit": 3}}]


def test_the_hooks_of_a_group_are_written_down_one_by_one_under_the_names_of_their_state() -> None:
    hooks, again = HookManager(), HookManager()
    hooks.add(CompositeHook([Probe(1), Probe(2)], name="pair"))

    again.add_config(hooks.to_config())

    assert again.load_state_dict(hooks.state_dict()) == []


@pytest.mark.parametrize(
    ("hook", "options", "words"),
    [
        (lambda: None, {"name": "probe"}, ["'probe'", "registered name"]),
        (CompositeHook([lambda: None]), {}, ["registered name"]),
        (Secretive("x"), {}, ["'Secretive'", "'path'", "plain data"]),
        (Probe(1), {"schedule": When(lambda ctx: True)}, ["'Probe'", "function", "cannot be written"]),
        (Probe(1), {"schedule": lambda ctx: True}, ["'Probe'", "'schedule'", "cannot be written"]),
    ],
    ids=["function", "function in a group", "lost argument", "predicate", "function as schedule"],
)
def test_what_cannot_be_written_down_is_named(hook: object, options: Item, words: list[str]) -> None:
    hooks = HookManager()
    hooks.add(hook, **options)

    with pytest.raises(ConfigError) as caught:
        hooks.to_config()
    hooks.clear_hooks()

    assert [word for word in words if word not in str(caught.value)] == []


# Round trip

schedules = st.one_of(
    st.builds(Every, st.integers(1, 50), st.sampled_from(["epochs", "env_steps", None])),
    st.builds(
        lambda length, active: Cycle(length, active, "epochs"), st.just(6), st.sets(st.integers(1, 6), min_size=1)
    ),
    st.builds(lambda begin, end: Window(begin, begin + end, "epochs"), st.integers(0, 9), st.integers(1, 9)),
)
all_schedules = schedules | st.tuples(schedules, schedules).map(lambda pair: pair[0] | ~pair[1])


@st.composite
def items(draw: st.DrawFn) -> list[Item]:
    found: list[Item] = []
    for number in range(draw(st.integers(0, 4))):
        use, args = draw(
            st.sampled_from(
                [("logging", {"frequency": 7}), ("config_probe", {"limit": 2, "words": ["x"]}), ("logging", {})]
            )
        )
        options = {
            "schedule": all_schedules.map(str),
            "priority": st.integers(-3, 3),
            "stage": st.sampled_from(["evaluate", "observe", "report"]),
            "on_error": st.sampled_from(["raise", "warn", "disable"]),
            "ranks": st.sampled_from(["main", "all"]),
            "budget": st.sampled_from(["2%", "5ms"]),
            "enabled": st.booleans(),
            "provides": st.just([f"value_{number}"]),
        }
        chosen = draw(st.sets(st.sampled_from(sorted(options))))
        item: Item = {"use": use, **{option: draw(options[option]) for option in sorted(chosen)}}
        if args:
            item["args"] = args
        if draw(st.booleans()):
            item["name"] = f"hook number {number}"
        found.append(item)
    return found


def facts(hooks: HookManager) -> list[tuple[object, ...]]:
    return [
        (entry.name, type(entry.hook), vars(entry.hook), replace(entry.options, name=entry.name))
        for entry in hooks.entries()
    ]


@settings(max_examples=30, deadline=None)
@given(items())
def test_a_configuration_recreates_the_same_hooks(items: list[Item]) -> None:
    hooks = built(*items)
    written = json.loads(json.dumps(hooks.to_config()))

    again = built(*written)

    assert facts(again) == facts(hooks)
    assert again.order() == hooks.order()
    assert again.to_config() == written


@settings(max_examples=40, deadline=None)
@given(all_schedules, st.integers(-3, 3), st.integers(1, 9))
def test_hooks_added_in_a_program_are_recreated_by_their_configuration(
    schedule: Every, priority: int, limit: int
) -> None:
    hooks = HookManager()
    hooks.add(Probe(limit), schedule=schedule, priority=priority)
    hooks.add(LoggingHook(limit), name="chatter", schedule={"step_end": schedule})

    again = built(*yaml.safe_load(yaml.safe_dump(hooks.to_config())))

    assert facts(again) == facts(hooks)
    assert again.entries()[1].options.schedules == hooks.entries()[1].options.schedules
    assert parse_schedule(again.to_config()[0]["schedule"]) == schedule

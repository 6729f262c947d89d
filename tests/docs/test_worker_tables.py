"""The page of rollout workers says what the code has."""

import importlib.util
from types import ModuleType

import pytest

from tests.docs.doc_pages import ROOT


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("worker_tables", ROOT / "tools" / "worker_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_parts_are_up_to_date(tool: ModuleType) -> None:
    page = tool.PAGE.read_text(encoding="utf-8")

    assert tool.refreshed(page) == page, f"{tool.PAGE.name} is out of date; refresh it with: {tool.REFRESH}"


def test_every_public_method_stands_in_its_table(tool: ModuleType) -> None:
    from hookloop.worker import RolloutWorker

    table = tool.methods_table(RolloutWorker)

    for name in ("register_hook(hook)", "unregister_hook(hook)", "clear_hooks()", "get_hooks()", "run(steps)", "state"):
        assert f"| `{name}` |" in table

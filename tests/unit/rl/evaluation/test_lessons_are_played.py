"""Lessons are played in environments of the form that training has given them."""

from __future__ import annotations

import pytest

from hookloop.evaluation.tasks import Wanted
from hookloop.recipes import find_recipe
from hookloop.rl.build import build_trainer
from hookloop.rl.config import RLConfig
from hookloop.rl.evaluation.loading import load_player

pytest.importorskip("envpool", reason="the lessons of minigrid need EnvPool: pip install 'hookloop[envpool]'")


def test_every_lesson_of_minigrid_can_be_played_by_the_trainer_and_from_its_state() -> None:
    settings = find_recipe("minigrid")
    assert isinstance(settings, RLConfig)
    assert settings.curriculum is not None
    trainer = build_trainer(settings)
    wanted = Wanted(episodes=1, seed=1, max_seconds=60)

    for lesson in settings.curriculum.lessons.values():
        assert len(trainer.player().play(lesson.env, wanted).episodes) == 1
    saved = load_player(settings, trainer.state_dict()["workload"])
    assert len(saved.play(None, wanted).episodes) == 1

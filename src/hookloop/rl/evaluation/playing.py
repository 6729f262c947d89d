"""Playing a number of episodes, fixed beforehand, whatever their lengths.

Environments step together and reset by themselves. Whoever takes the first n episodes that end takes the short ones:
they end first. Here, each episode has a slot and a seed before anything is played::

    round 0   slot 0 plays episode 0, slot 1 plays episode 1, ... each begins with its own seed
    round 1   all slots begin anew: slot 0 plays episode N, slot 1 plays episode N + 1, ...

A round lasts until its longest episode has ended; what a slot does after its own has ended is not looked at. So every
episode begins in a state that the policy has no influence on, and two policies meet the same ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hookloop.core import derive_seed
from hookloop.evaluation.results import Played, PlayedEpisode
from hookloop.evaluation.tasks import Wanted
from hookloop.rl.envs import Envs, WrappedEnvs
from hookloop.rl.evaluation.recording import Recorder
from hookloop.rl.policies import Policy

STOP_SECONDS = 1.0  # how long to wait for a step that is under way


class Session:
    """Plays the episodes of one simulation; another thread may stop it and take those that have ended."""

    def __init__(
        self, policy: Policy, make: Callable[[], Envs], wanted: Wanted, recorder_type: type[Recorder] = Recorder
    ) -> None:
        self._policy, self._make, self._wanted = policy, make, wanted
        self._recorder_type = recorder_type
        self._ended: list[PlayedEpisode] = []
        self._should_stop = threading.Event()

    def play(self) -> Played:
        """Play, within the time there is."""
        seconds = self._wanted.max_seconds
        if seconds is None:
            self._run()
            return self._played("")
        outcome = _Outcome()
        # Daemon: an environment that never returns must not keep the process from ending.
        thread = threading.Thread(target=outcome.run, args=(self._run,), name="evaluation", daemon=True)
        thread.start()
        try:
            is_done = outcome.is_done.wait(seconds)
        finally:
            self._should_stop.set()
        if not is_done:
            # One that is merely slow notices within a step, and closes its environments.
            outcome.is_done.wait(STOP_SECONDS)
        if outcome.error is not None:
            raise outcome.error
        return self._played("" if is_done else f"not ended within {seconds:g} seconds")

    def _played(self, why: str) -> Played:
        ended = tuple(sorted(self._ended, key=lambda episode: episode.number))
        failed = self._wanted.episodes - len(ended)
        return Played(ended, failed, why if failed else "")

    def _run(self) -> None:
        envs = self._make()
        try:
            for first in range(0, self._wanted.episodes, envs.num_envs):
                slots = min(envs.num_envs, self._wanted.episodes - first)
                self._play_round(envs, first, slots)
        finally:
            envs.close()

    def _play_round(self, envs: Envs, first: int, slots: int) -> None:
        policy, seed = self._policy, self._wanted.seed + first
        envs.reset(seed)
        generator = torch.Generator().manual_seed(derive_seed(seed, "act"))
        state = policy.initial_state(envs.num_envs) if policy.is_recurrent else None
        noise = policy.held_noise(envs.num_envs)
        recorded = range(max(0, min(slots, self._wanted.record - first)))
        recorder = self._recorder_type(policy, _innermost(envs), recorded)
        playing = set(range(slots))
        while playing and not self._should_stop.is_set():
            obs, mask = _as_tensors(envs.obs), None
            if envs.action_masks is not None:
                mask = torch.from_numpy(envs.action_masks)
            recorder.look(obs, mask, state, playing)
            acted = policy.act(
                obs, generator=generator, mask=mask, state=state, noise=noise, greedy=self._wanted.greedy
            )
            state = acted.state
            recorder.act(acted, playing)
            envs.step(acted.actions.numpy())
            recorder.reward(playing)
            for episode in envs.finished:
                if episode.env_index in playing:
                    playing.remove(episode.env_index)
                    slot, number = episode.env_index, first + episode.env_index
                    end = "terminated" if envs.terminated[slot] else "truncated"
                    about = {"number": number, "seed": self._wanted.seed + number, "end": end}
                    about |= {"return": episode.return_, "length": episode.length}
                    record = recorder.finish(slot, about)
                    self._ended.append(PlayedEpisode(number, episode.return_, episode.length, end, record))


class _Outcome:
    """Carries what a call in another thread ended with over to this one."""

    def __init__(self) -> None:
        self.is_done = threading.Event()
        self.error: BaseException | None = None

    def run(self, call: Callable[[], None]) -> None:
        """Make the call."""
        with self:
            call()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self.error = error
        self.is_done.set()
        return True


def _as_tensors(obs: Any) -> Tensor | dict[str, Tensor]:
    if isinstance(obs, dict):
        return {name: torch.from_numpy(np.asarray(values)) for name, values in obs.items()}
    return torch.from_numpy(obs)


def _innermost(envs: Envs) -> Envs:
    while isinstance(envs, WrappedEnvs):
        envs = envs.envs
    return envs

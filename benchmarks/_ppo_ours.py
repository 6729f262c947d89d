"""hookloop as a contender of benchmarks/ppo.py: the only file here that knows our interface."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _measure import is_importable
from _ppo_race import Attempt, worker_environment
from _ppo_work import Outcome, Pace, Work

OUT_OF_REACH = 1e9  # a goal that is looked at after every epoch and never ends a race


def run_hookloop(work: Work, pace: Pace, *, is_watched: bool = True) -> Outcome:
    """Train with ``hookloop.rl.Trainer``, the hooks of ``hookloop train``, if wanted, and one that takes turns."""
    import hookloop.rl as rl
    from hookloop.rl.config import GAUSSIAN, OptimizerConfig
    from hookloop.rl.values import Linear

    annealed = {"optimizer.learning_rate": work.learning_rate} if work.anneals_lr else {}
    annealed |= {"losses.ppo.clip": work.clip} if work.anneals_clip else {}
    envs = rl.make_envs(work.env_id, work.num_envs, mode=work.env_kind)
    exploration = rl.StateDependentExploration(resample_steps=4) if work.uses_gsde else GAUSSIAN
    policy = rl.make_policy(envs.observation, envs.action, exploration=exploration, seed=work.seed)
    loss = rl.PPO(clip=work.clip, entropy_coefficient=work.entropy_coef, value_coefficient=work.value_coef)
    config = rl.TrainerConfig(
        horizon=work.horizon,
        update_epochs=work.epochs,
        num_minibatches=work.minibatches,
        gamma=work.gamma,
        gae_lambda=work.gae_lambda,
        optimizer=OptimizerConfig(learning_rate=work.learning_rate, max_grad_norm=work.max_grad_norm),
        values={path: Linear(start) for path, start in annealed.items()},
    )
    with tempfile.TemporaryDirectory() as folder:
        hooks = [*(command_hooks(Path(folder), work) if is_watched else []), PacingHook(work, pace)]
        trainer = rl.Trainer(policy=policy, envs=envs, losses=[loss], config=config, hooks=hooks, seed=work.seed)
        pace(0)
        result = trainer.train(total_env_steps=work.total_env_steps)
    greedy_return = play_greedily(policy, envs, work) if work.greedy_episodes else None
    digest = weights_digest(policy)
    return Outcome(result.env_steps, result.mean_return or 0.0, result.episodes, greedy_return, loss_digest=digest)


def command_hooks(folder: Path, work: Work) -> list[object]:
    """Return what ``hookloop train`` adds to a run, and a goal that is looked at after every epoch."""
    from hookloop.checkpoints import CheckpointManager
    from hookloop.hooks import CheckpointHook, GoalHook, MetricsHook, NanGuardHook, TrackerHook
    from hookloop.stats import StatsClient
    from hookloop.trackers import JsonlTracker

    stats = folder / "stats.sqlite"
    watching = MetricsHook(
        stats_client=StatsClient(stats, run_id="race"),
        log_every="at 1 epochs or every 10 epochs",
        times_every="every 1 seconds",
        heartbeat_file=folder / "heartbeat.json",
        total_steps=work.total_env_steps,
        trackers=TrackerHook({"jsonl": JsonlTracker(folder)}, stats_url=stats, run_id="race"),
        keeps_episodes=False,
    )
    saving = CheckpointHook(CheckpointManager(folder / "checkpoints"), schedule="every 30 seconds")
    return [NanGuardHook(), GoalHook(OUT_OF_REACH), watching, saving]


def run_bare_loop(work: Work, pace: Pace) -> Outcome:
    """Do by hand what ``run_hookloop`` does, with our policy, heads, loss and optimizer and without loop or hooks."""
    import torch

    import hookloop.rl as rl
    from hookloop.core import TrainerState, derive_seed
    from hookloop.rl.advantages import estimate_advantages
    from hookloop.rl.experience import merge_specs
    from hookloop.rl.optimizer import FlatAdam
    from hookloop.rl.sampling import Sampler
    from hookloop.rl.specs import ArraySpec

    envs = rl.make_envs(work.env_id, work.num_envs, mode=work.env_kind)
    policy = rl.make_policy(envs.observation, envs.action, seed=work.seed)
    loss = rl.PPO(clip=work.clip, entropy_coefficient=work.entropy_coef, value_coefficient=work.value_coef)
    columns = {"obs": envs.observation.array, "actions": ArraySpec(envs.action.shape, envs.action.dtype)}
    rows = rl.Experience(merge_specs({"the loop": columns}), num_envs=work.num_envs, horizon=work.horizon)
    rows["valid"].fill_(True)
    adam = FlatAdam(policy, learning_rate=work.learning_rate, max_grad_norm=work.max_grad_norm)
    sampler = Sampler(rows, num_minibatches=work.minibatches)
    acting = torch.Generator().manual_seed(derive_seed(work.seed, "act"))
    sampling = torch.Generator().manual_seed(derive_seed(work.seed, "sample"))
    envs.reset(derive_seed(work.seed, "envs") % 2**31)
    arrays, state = rows.arrays, TrainerState()
    env_steps, updates, returns = 0, 0, []
    pace(0)
    while updates < work.updates:
        rows.begin()
        for t in range(work.horizon):
            arrays["obs"][t] = envs.obs
            acted = policy.act(rows.rows["obs"][t], generator=acting)
            arrays["actions"][t] = actions = acted.actions.numpy()
            arrays["log_probs"][t] = acted.log_probs.numpy()
            arrays["values"][t] = acted.values.numpy()
            envs.step(actions)
            arrays["rewards"][t], arrays["terminated"][t] = envs.rewards, envs.terminated
            arrays["truncated"][t] = envs.truncated
            if envs.has_fillers:
                arrays["valid"][t] = envs.valid
            if envs.truncated.any():
                cut_off = torch.from_numpy(np.flatnonzero(envs.truncated))
                final = torch.from_numpy(envs.final_obs).index_select(0, cut_off)
                rows.rows["bootstraps"][t][cut_off] = policy.value(final)
            returns += [episode.return_ for episode in envs.finished]
            env_steps += int(np.count_nonzero(envs.valid)) if envs.has_fillers else work.num_envs
        rows.steps = work.horizon
        last = policy.value(torch.from_numpy(envs.obs)).numpy()
        estimate_advantages(
            arrays["rewards"], arrays["values"], last, rows.ends(), arrays["bootstraps"],
            gamma=work.gamma, gae_lambda=work.gae_lambda, out_TN=arrays["advantages"],
        )  # fmt: skip
        np.add(arrays["advantages"], arrays["values"], out=arrays["returns"])
        for _ in range(work.epochs):
            for minibatch in sampler.passes(sampling, has_fillers=envs.has_fillers):
                loss.train_by_hand(policy, minibatch, state)
                adam.clip()
                adam.step()
                adam.zero_grad()
        loss.statistics.means()
        updates += 1
        pace(env_steps)
    mean = float(np.mean(returns[-100:])) if returns else 0.0
    return Outcome(env_steps, mean, len(returns), loss_digest=weights_digest(policy))


def weights_digest(policy: Any) -> str:
    """Return a digest of all weights: equal losses in equal order leave equal bits."""
    weights = [parameter.detach().numpy().tobytes() for parameter in policy.parameters()]
    return hashlib.sha256(b"".join(weights)).hexdigest()


def run_recipe(seed: int, *, threads: int) -> Attempt:
    """Time ``hookloop train cartpole``, which stops at the target return, from process start to process end."""
    if not is_importable("hookloop.recipes"):
        return Attempt("hookloop", seed, 0.0, None, problem="hookloop.recipes is not installed")
    environment = worker_environment(threads)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hookloop", "train", "cartpole", "--seed", str(seed), "--display", "off"]
        command += ["--runs-dir", folder, "--run", "bench"]
        started = perf_counter()
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds = perf_counter() - started
        if ended.returncode:
            last_line = (ended.stderr.strip() or "no message").splitlines()[-1]
            return Attempt("hookloop", seed, seconds, None, problem=f"failed: {last_line}")
        result = json.loads((Path(folder) / "bench" / "result.json").read_text(encoding="utf-8"))
    outcome = Outcome(result["env_steps"], result["mean_return"], result["episodes"])
    return Attempt("hookloop", seed, seconds, outcome)


class PacingHook:
    """Takes turns between updates; ends a race by updates, because filler rows are no env steps."""

    def __init__(self, work: Work, pace: Pace) -> None:
        self._work = work
        self._pace = pace

    def on_epoch_end(self, ctx: Any) -> None:
        clocks = ctx.state.clocks
        self._pace(clocks.env_steps)
        if self._work.turn_updates and clocks.epochs >= self._work.updates:
            ctx.request_stop("the race is over")


def play_greedily(policy: Any, envs: Any, work: Work) -> float:
    """Return the mean over equally many greedy episodes of each environment: the first to end are the shortest."""
    import torch

    quota = -(-work.greedy_episodes // work.num_envs)
    returns: list[list[float]] = [[] for _ in range(work.num_envs)]
    generator = torch.Generator().manual_seed(work.seed)
    envs.reset(work.seed)
    while min(map(len, returns)) < quota:
        acted = policy.act(torch.from_numpy(envs.obs), generator=generator, greedy=True)
        envs.step(acted.actions.numpy())
        for episode in envs.finished:
            returns[episode.env_index].append(episode.return_)
    return float(np.mean([row[:quota] for row in returns]))

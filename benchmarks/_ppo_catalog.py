"""The works of benchmarks/ppo.py, and the published figures that its quality bench compares with.

Sources: rl-baselines3-zoo's ``hyperparams/ppo.yml`` and ``benchmark.md``, CleanRL's benchmark pages for ``ppo.py``,
and rlox's convergence report for Stable-Baselines3 with rl-zoo's CartPole settings over several seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from _ppo_work import Work

_SMALL = Work(
    name="small",
    env_id="CartPole-v1",
    env_kind="sync",
    num_envs=8,
    horizon=128,
    minibatches=4,
    epochs=4,
    total_env_steps=204_800,
    turn_updates=8,
    gate_return=195,
)
_WIDE = replace(_SMALL, env_kind="native", gate_return=100)
SAME_WORK = {
    "small": _SMALL,
    "wide-64": replace(_WIDE, name="wide-64", num_envs=64, total_env_steps=524_288, turn_updates=2),
    "wide-256": replace(_WIDE, name="wide-256", num_envs=256, horizon=64, total_env_steps=786_432, turn_updates=2),
}
QUICK_GATE_RETURN = 33.0


def shortened(work: Work) -> Work:
    """Cut a work to fewer and shorter turns; random play returns 22, so the lower gate tells learning from luck."""
    turn_updates, turns = work.turn_updates // 2, 10 if work.num_envs >= 64 else 8
    return replace(
        work,
        total_env_steps=turns * turn_updates * work.batch_rows,
        turn_updates=turn_updates,
        gate_return=QUICK_GATE_RETURN,
    )


# A few percent are to be told apart, so turns are short and many.
OVERHEAD = (
    (replace(_SMALL, name="overhead, 8 envs", total_env_steps=409_600, turn_updates=4), 1.08),
    (
        replace(SAME_WORK["wide-256"], name="overhead, 256 envs", total_env_steps=1_638_400, turn_updates=1),
        1.03,
    ),
)

_ZOO_CARTPOLE = Work(
    name="CartPole, rl-zoo",
    env_id="CartPole-v1",
    env_kind="sync",
    num_envs=8,
    horizon=32,
    minibatches=1,
    epochs=20,
    total_env_steps=100_000,
    learning_rate=1e-3,
    anneals_lr=True,
    anneals_clip=True,
    gamma=0.98,
    gae_lambda=0.8,
    entropy_coef=0.0,
    greedy_episodes=100,
)
ZOO_TO_SCORE = replace(
    _ZOO_CARTPOLE,
    name="CartPole to 475, rl-zoo",
    total_env_steps=300_000,
    annealing_env_steps=100_000,
    target_return=475.0,
    greedy_episodes=0,
)


@dataclass(frozen=True, slots=True)
class Published:
    """A work, the return that was published for it, and the spread that came with it."""

    work: Work
    mean: float
    spread: float
    source: str

    @property
    def lowest_level_return(self) -> float:
        """Return the lowest mean that counts as level with the published figure."""
        return self.mean - self.spread


QUALITY = (
    Published(_ZOO_CARTPOLE, 438, 48, "Stable-Baselines3 over seeds, rlox; rl-zoo's one selected agent: 500"),
    Published(
        replace(
            _SMALL,
            name="Acrobot, CleanRL",
            env_id="Acrobot-v1",
            num_envs=4,
            total_env_steps=500_000,
            gate_return=-math.inf,
            turn_updates=0,
            anneals_lr=True,
        ),
        -86.4,
        1.3,
        "CleanRL, last training episodes over seeds",
    ),
    Published(
        Work(
            name="Pendulum, rl-zoo",
            env_id="Pendulum-v1",
            env_kind="sync",
            num_envs=4,
            horizon=1024,
            minibatches=64,
            epochs=10,
            total_env_steps=100_000,
            learning_rate=1e-3,
            gamma=0.9,
            entropy_coef=0.0,
            uses_gsde=True,
            greedy_episodes=100,
        ),
        -172,
        104,
        "rl-zoo, one selected agent, greedy",
    ),
    Published(
        Work(
            name="LunarLander, rl-zoo",
            env_id="LunarLander-v3",
            env_kind="envpool",
            num_envs=16,
            horizon=1024,
            minibatches=256,
            epochs=4,
            total_env_steps=1_000_000,
            learning_rate=3e-4,
            gamma=0.999,
            gae_lambda=0.98,
            greedy_episodes=100,
        ),
        242,
        32,
        "rl-zoo, one selected agent, greedy, LunarLander-v2",
    ),
)

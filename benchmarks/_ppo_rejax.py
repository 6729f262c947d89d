"""The rejax contender of benchmarks/ppo.py, a worker process of its own: JAX may live in another environment.

Each turn is one compiled call that scans over rejax's own ``PPO.train_iteration``. What differs from the other
contenders and cannot be set: the value loss is clipped, gradients are clipped per element and not by norm, Adam's
epsilon is 1e-8, and the value after a cut-off episode is not bootstrapped. The environment is gymnax's CartPole-v1,
compiled into the same call. Its returns are those of 128 sampled episodes after training.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter

from _ppo_work import Outcome, Pace, Work, pin_to_one_core, work_in_turns


def run_rejax(work: Work, pace: Pace) -> Outcome:
    if work.threads == 1:
        pin_to_one_core()  # before the import, which sizes the thread pools
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    import jax
    import rejax

    algorithm = rejax.PPO.create(
        env=work.env_id,
        agent_kwargs={"activation": "tanh", "hidden_layer_sizes": (64, 64)},
        num_envs=work.num_envs,
        num_steps=work.horizon,
        num_minibatches=work.minibatches,
        num_epochs=work.epochs,
        learning_rate=work.learning_rate,
        gamma=work.gamma,
        gae_lambda=work.gae_lambda,
        clip_eps=work.clip,
        vf_coef=work.value_coef,
        ent_coef=work.entropy_coef,
        max_grad_norm=work.max_grad_norm,
        total_timesteps=work.total_env_steps,
    )

    def train_for_a_turn(state):
        return jax.lax.fori_loop(0, work.turn_updates, lambda _, state: algorithm.train_iteration(state), state)

    started = perf_counter()
    # A Python integer is a weakly typed value that would force a second compilation after the first call.
    state = jax.tree.map(jax.numpy.asarray, algorithm.init_state(jax.random.PRNGKey(work.seed)))
    compiled = jax.jit(train_for_a_turn).lower(state).compile()
    compile_seconds = perf_counter() - started
    pace(0)
    env_steps = 0
    for _ in range(work.turns):
        state = jax.block_until_ready(compiled(state))
        env_steps += work.turn_updates * work.batch_rows
        pace(env_steps, updates=work.turn_updates)
    _, returns = algorithm.eval_callback(algorithm, state, jax.random.PRNGKey(work.seed + 1))
    return Outcome(
        env_steps=env_steps,
        mean_return=float(returns.mean()),
        episodes=len(returns),
        note=f"compiled in {compile_seconds:.1f} s; return of 128 sampled episodes after training",
    )


if __name__ == "__main__":
    work_in_turns({"rejax": run_rejax}, sys.argv[1:])

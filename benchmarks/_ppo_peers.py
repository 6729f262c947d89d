"""The contenders of benchmarks/ppo.py that run on torch, each a function from work to outcome.

All use Adam with epsilon 1e-5, orthogonal initialisation, two separate 64-64 tanh networks, advantages normalised
per minibatch, no value clipping, and bootstrap the value where an episode is cut off. Run as a script, this file is
the worker process of one contender.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from _ppo_envs import EpisodeReturns, Step, VectorEnvs, make_envs
from _ppo_work import Contender, Outcome, Pace, Work, work_in_turns
from torch import Tensor, nn
from torch.distributions.categorical import Categorical


def run_hookloop(work: Work, pace: Pace) -> Outcome:
    """Train with our trainer."""
    from _ppo_ours import run_hookloop

    return run_hookloop(work, pace)


def run_unwatched(work: Work, pace: Pace) -> Outcome:
    """Train with our trainer and none of the hooks of the command."""
    from _ppo_ours import run_hookloop

    return run_hookloop(work, pace, is_watched=False)


def run_bare_loop(work: Work, pace: Pace) -> Outcome:
    """Train with our parts and without our trainer."""
    from _ppo_ours import run_bare_loop

    return run_bare_loop(work, pace)


def run_sb3(work: Work, pace: Pace) -> Outcome:
    """Train with Stable-Baselines3, on its own ``DummyVecEnv`` where the work asks for single environments."""
    from _ppo_sb3 import train

    return train(work, pace, on_dummy_vec_env=work.env_kind == "sync")


def run_sb3_dummy(work: Work, pace: Pace) -> Outcome:
    """Train with Stable-Baselines3 on its ``DummyVecEnv``, whatever environments the work asks for."""
    from _ppo_sb3 import train

    return train(work, pace, on_dummy_vec_env=True)


class Agent(nn.Module):
    """Actor and critic as single-file scripts define them."""

    def __init__(self, obs_size: int, num_actions: int) -> None:
        super().__init__()
        self.critic = build_network(obs_size, 1, output_gain=1.0)
        self.actor = build_network(obs_size, num_actions, output_gain=0.01)

    def get_value(self, obs: Tensor) -> Tensor:
        return self.critic(obs)

    def get_action_and_value(self, obs: Tensor, action: Tensor | None = None) -> tuple[Tensor, ...]:
        distribution = Categorical(logits=self.actor(obs))
        if action is None:
            action = distribution.sample()
        return action, distribution.log_prob(action), distribution.entropy(), self.critic(obs)


def build_network(inputs: int, outputs: int, *, output_gain: float) -> nn.Sequential:
    def linear(rows: int, columns: int, gain: float = 2**0.5) -> nn.Linear:
        layer = nn.Linear(rows, columns)
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
        return layer

    return nn.Sequential(
        linear(inputs, 64), nn.Tanh(), linear(64, 64), nn.Tanh(), linear(64, outputs, gain=output_gain)
    )


def run_cleanrl_style(work: Work, pace: Pace) -> Outcome:
    """Train with the plain loop of the single-file scripts: eager torch, a distribution object per call.

    Statistics that such scripts compute for their log are computed here too; nothing is logged.
    """
    device = torch.device("cpu")
    envs = gym.vector.SyncVectorEnv(
        [lambda: gym.wrappers.RecordEpisodeStatistics(gym.make(work.env_id)) for _ in range(work.num_envs)],
        autoreset_mode=gym.vector.AutoresetMode.SAME_STEP,
    )
    obs_shape = envs.single_observation_space.shape
    agent = Agent(int(np.prod(obs_shape)), int(envs.single_action_space.n)).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=work.learning_rate, eps=1e-5)

    obs = torch.zeros((work.horizon, work.num_envs, *obs_shape)).to(device)
    actions = torch.zeros((work.horizon, work.num_envs)).to(device)
    logprobs = torch.zeros((work.horizon, work.num_envs)).to(device)
    rewards = torch.zeros((work.horizon, work.num_envs)).to(device)
    dones = torch.zeros((work.horizon, work.num_envs)).to(device)
    values = torch.zeros((work.horizon, work.num_envs)).to(device)

    env_steps, returns_seen = 0, []
    first_obs, _ = envs.reset(seed=work.seed)
    next_obs = torch.Tensor(first_obs).to(device)
    next_done = torch.zeros(work.num_envs).to(device)
    pace(0)
    for _ in range(work.updates):
        for step in range(work.horizon):
            env_steps += work.num_envs
            obs[step] = next_obs
            dones[step] = next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
                values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob
            stepped_obs, reward, terminations, truncations, infos = envs.step(action.cpu().numpy())
            cut_off = truncations & ~terminations
            if cut_off.any():
                final_obs = torch.Tensor(np.stack(infos["final_obs"][cut_off])).to(device)
                with torch.no_grad():
                    reward[cut_off] += work.gamma * agent.get_value(final_obs).flatten().cpu().numpy()
            rewards[step] = torch.tensor(reward).to(device).view(-1)
            next_obs = torch.Tensor(stepped_obs).to(device)
            next_done = torch.Tensor(np.logical_or(terminations, truncations)).to(device)
            if "final_info" in infos:
                episode = infos["final_info"]["episode"]
                returns_seen.extend(episode["r"][infos["final_info"]["_episode"]].tolist())

        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(1, -1)
            advantages = torch.zeros_like(rewards).to(device)
            last_advantage = torch.zeros(work.num_envs).to(device)
            for t in reversed(range(work.horizon)):
                is_last = t == work.horizon - 1
                goes_on = 1.0 - (next_done if is_last else dones[t + 1])
                following_value = next_value if is_last else values[t + 1]
                delta = rewards[t] + work.gamma * following_value * goes_on - values[t]
                last_advantage = delta + work.gamma * work.gae_lambda * goes_on * last_advantage
                advantages[t] = last_advantage
            returns = advantages + values
        batch = (
            obs.reshape(-1, *obs_shape),
            actions.reshape(-1),
            logprobs.reshape(-1),
            advantages.reshape(-1),
            returns.reshape(-1),
            values.reshape(-1),
        )
        update_cleanrl_style(work, agent, optimizer, *batch)
        pace(env_steps)
    recent = returns_seen[-100:]
    return Outcome(env_steps, float(np.mean(recent)), len(returns_seen))


def update_cleanrl_style(
    work: Work,
    agent: Agent,
    optimizer: torch.optim.Optimizer,
    obs: Tensor,
    actions: Tensor,
    logprobs: Tensor,
    advantages: Tensor,
    returns: Tensor,
    values: Tensor,
) -> tuple[float, ...]:
    indices, clip_fractions = np.arange(work.batch_rows), []
    for _ in range(work.epochs):
        np.random.shuffle(indices)
        for start in range(0, work.batch_rows, work.minibatch_rows):
            rows = indices[start : start + work.minibatch_rows]
            _, new_logprob, entropy, new_value = agent.get_action_and_value(obs[rows], actions.long()[rows])
            log_ratio = new_logprob - logprobs[rows]
            ratio = log_ratio.exp()
            with torch.no_grad():
                old_kl = (-log_ratio).mean()
                kl = ((ratio - 1) - log_ratio).mean()
                clip_fractions += [((ratio - 1.0).abs() > work.clip).float().mean().item()]
            advantage = advantages[rows]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            plain_loss = -advantage * ratio
            clipped_loss = -advantage * torch.clamp(ratio, 1 - work.clip, 1 + work.clip)
            policy_loss = torch.max(plain_loss, clipped_loss).mean()
            value_loss = 0.5 * ((new_value.view(-1) - returns[rows]) ** 2).mean()
            entropy_loss = entropy.mean()
            loss = policy_loss - work.entropy_coef * entropy_loss + value_loss * work.value_coef
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), work.max_grad_norm)
            optimizer.step()
    predicted, actual = values.cpu().numpy(), returns.cpu().numpy()
    explained_variance = 1 - np.var(actual - predicted) / np.var(actual)
    statistics = (policy_loss, value_loss, entropy_loss, old_kl, kl)
    return (*(value.item() for value in statistics), float(np.mean(clip_fractions)), float(explained_variance))


def run_lean(work: Work, pace: Pace) -> Outcome:
    """Train with plain torch used with care, on the environments that the work asks for.

    Buffers are allocated once, the noise of a rollout is drawn at once, only the actor runs while stepping, and
    values and log-probabilities of all rows come from one pass after the rollout. Adam is fused.
    """
    return LeanLoop(work, make_envs(work)).train(pace)


def run_lean_native(work: Work, pace: Pace) -> Outcome:
    """Train with the lean loop on Gymnasium's native CartPole, whatever environments the work asks for."""
    from _ppo_envs import NativeCartPole

    return LeanLoop(work, NativeCartPole(work)).train(pace)


class LeanLoop:
    """Plain torch, as fast as it gets without custom kernels; axes are T time, B env, A action, O observation."""

    def __init__(self, work: Work, envs: VectorEnvs) -> None:
        space: Any = envs.action_space
        obs_size, num_actions = int(np.prod(envs.observation_space.shape or ())), int(space.n)
        time_env = (work.horizon, work.num_envs)
        self.work, self.envs = work, envs
        self.actor = build_network(obs_size, num_actions, output_gain=0.01)
        self.critic = build_network(obs_size, 1, output_gain=1.0)
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=work.learning_rate, eps=1e-5, fused=True)
        self.returns = EpisodeReturns(work.num_envs)
        self.obs_TBO = torch.empty(work.horizon + 1, work.num_envs, obs_size)
        self.logits_TBA = torch.empty(*time_env, num_actions)
        self.noise_TBA = torch.empty(*time_env, num_actions)
        self.actions_TB = torch.empty(time_env, dtype=torch.int64)
        self.rewards_TB = np.empty(time_env, dtype=np.float32)
        self.goes_on_TB = np.empty(time_env, dtype=np.float32)

    def train(self, pace: Pace) -> Outcome:
        env_steps = 0
        self.obs_TBO[-1] = torch.from_numpy(self.envs.reset())
        pace(0)
        for _ in range(self.work.updates):
            self.collect()
            self.update()
            env_steps += self.work.batch_rows
            pace(env_steps)
        return Outcome(env_steps, self.returns.mean, self.returns.episodes)

    @torch.inference_mode()
    def collect(self) -> None:
        obs_TBO, actions_TB = self.obs_TBO.numpy(), self.actions_TB.numpy()
        obs_TBO[0] = obs_TBO[-1]
        # The action with the largest logit plus Gumbel noise is a sample; minus log of an exponential is Gumbel.
        self.noise_TBA.exponential_().log_()
        for t in range(self.work.horizon):
            logits_BA = self.actor(self.obs_TBO[t])
            self.logits_TBA[t] = logits_BA
            torch.argmax(logits_BA - self.noise_TBA[t], dim=1, out=self.actions_TB[t])
            step = self.envs.step(actions_TB[t])
            obs_TBO[t + 1] = step.obs
            self.rewards_TB[t] = step.rewards
            self.goes_on_TB[t] = 1.0
            self.goes_on_TB[t, step.ended] = 0.0
            self.returns.add(step)
            if step.ended.size:
                self.bootstrap_cut_off(t, step)

    def bootstrap_cut_off(self, t: int, step: Step) -> None:
        cut_off = step.truncated[step.ended] & ~step.terminated[step.ended]
        if cut_off.any():
            final_values = self.critic(torch.from_numpy(step.final_obs[cut_off])).squeeze(1).numpy()
            self.rewards_TB[t, step.ended[cut_off]] += self.work.gamma * final_values

    def update(self) -> None:
        rows = self.rows_of_rollout()
        for _ in range(self.work.epochs):
            order = torch.randperm(self.work.batch_rows)
            shuffled = [column.index_select(0, order).split(self.work.minibatch_rows) for column in rows]
            for minibatch in zip(*shuffled, strict=True):
                self.optimizer.zero_grad()
                self.loss(*minibatch).backward()
                nn.utils.clip_grad_norm_(self.parameters, self.work.max_grad_norm, foreach=True)
                self.optimizer.step()

    def rows_of_rollout(self) -> Iterator[Tensor]:
        work = self.work
        with torch.no_grad():
            values_TB = self.critic(self.obs_TBO).squeeze(2).numpy()
            log_prob_TB = self.logits_TBA.log_softmax(2).gather(2, self.actions_TB.unsqueeze(2)).squeeze(2)
        discount_TB = work.gamma * self.goes_on_TB
        advantage_TB = self.rewards_TB + discount_TB * values_TB[1:] - values_TB[:-1]
        discount_TB *= work.gae_lambda
        for t in reversed(range(work.horizon - 1)):
            advantage_TB[t] += discount_TB[t] * advantage_TB[t + 1]
        advantage = torch.from_numpy(advantage_TB)
        returns = torch.from_numpy(advantage_TB + values_TB[:-1])
        columns = (self.obs_TBO[:-1], self.actions_TB, log_prob_TB, advantage, returns)
        return [column.flatten(0, 1) for column in columns]

    def loss(self, obs: Tensor, actions: Tensor, old_log_prob: Tensor, advantage: Tensor, returns: Tensor) -> Tensor:
        work = self.work
        log_probs = self.actor(obs).log_softmax(1)
        log_prob = log_probs.gather(1, actions.unsqueeze(1)).squeeze(1)
        entropy = -(log_probs.exp() * log_probs).sum(1).mean()
        ratio = (log_prob - old_log_prob).exp()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = ratio.clamp(1 - work.clip, 1 + work.clip)
        policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
        value_loss = 0.5 * nn.functional.mse_loss(self.critic(obs).squeeze(1), returns)
        return policy_loss + work.value_coef * value_loss - work.entropy_coef * entropy


def limited(contender: Contender) -> Contender:
    """Apply the work's seed and thread count before the contender runs."""

    def run(work: Work, pace: Pace) -> Outcome:
        torch.set_num_threads(work.threads)
        torch.manual_seed(work.seed)
        np.random.seed(work.seed)
        return contender(work, pace)

    return run


TORCH_CONTENDERS: dict[str, Contender] = {
    "hookloop": run_hookloop,
    "hookloop-unwatched": run_unwatched,
    "bare": run_bare_loop,
    "sb3": run_sb3,
    "sb3-dummy": run_sb3_dummy,
    "cleanrl-style": run_cleanrl_style,
    "lean": run_lean,
    "lean-native": run_lean_native,
}

if __name__ == "__main__":
    work_in_turns({name: limited(contender) for name, contender in TORCH_CONTENDERS.items()}, sys.argv[1:])

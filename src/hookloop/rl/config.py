"""What a reinforcement learning run is made of, as typed, closed and frozen settings. No torch in here."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from hookloop.config.settings import ClusterSettings, EvaluationConfig, Settings
from hookloop.curriculum.config import CurriculumConfig
from hookloop.rl.values import Cosine, Exponential, Linear, Piecewise

Value = Annotated[Linear | Cosine | Exponential | Piecewise, Field(discriminator="kind")]


class EnvConfig(Settings):
    """Which environments to train in, and how many at once."""

    id: str = Field(description="The environment's id, such as CartPole-v1")
    num_envs: int = Field(default=8, ge=1, description="Environments stepped together")
    mode: Literal["auto", "native", "sync", "async", "envpool"] = Field(
        default="auto", description="How they are stepped"
    )
    kwargs: dict[str, Any] = Field(default_factory=dict, description="Arguments of the environment")
    one_hot: dict[str, tuple[int, ...]] | None = Field(
        default=None, description="Parts of the observation to use, with the number of values of each channel"
    )
    normalise_observations: bool = Field(default=False, description="Scale observations to mean 0, deviation 1")
    normalise_rewards: bool = Field(
        default=False, description="Scale rewards by the deviation of the discounted return"
    )


class GaussianExploration(Settings):
    """Continuous actions are drawn anew at every step; choices follow their probabilities."""

    kind: Literal["gaussian"] = "gaussian"


class StateDependentExploration(Settings):
    """Continuous actions get noise that is a function of the state, the same one for several steps (gSDE)."""

    kind: Literal["state-dependent"] = "state-dependent"
    resample_steps: int | None = Field(
        default=None, ge=1, description="Steps a noise matrix is kept; null keeps it for a whole rollout"
    )
    initial_log_std: float = Field(default=0.0, description="First log-deviation of the entries of a noise matrix")


Exploration = GaussianExploration | StateDependentExploration
GAUSSIAN = GaussianExploration()


class PolicyConfig(Settings):
    """The policy's network, and how it explores."""

    hidden: tuple[int, ...] = Field(default=(64, 64), description="Widths of the hidden layers")
    activation: Literal["tanh", "relu"] = Field(default="tanh", description="Between the layers")
    memory: Literal["none", "gru", "lstm"] = Field(default="none", description="A recurrent cell, for what is not seen")
    exploration: Exploration = Field(default=GAUSSIAN, discriminator="kind", description="Noise of continuous actions")


class OptimizerConfig(Settings):
    """Adam's settings."""

    learning_rate: float = Field(default=2.5e-4, ge=0, description="Step size")
    betas: tuple[float, float] = Field(default=(0.9, 0.999), description="Decay of the two moments")
    eps: float = Field(default=1e-5, gt=0, description="Added to the root of the second moment")
    weight_decay: float = Field(default=0.0, ge=0, description="Pull of the weights towards 0")
    max_grad_norm: float | None = Field(default=0.5, gt=0, description="Gradients are scaled down to this norm")


class TrainerConfig(Settings):
    """How experience is collected and learned from."""

    horizon: int = Field(default=128, ge=1, description="Steps collected per environment and epoch")
    update_epochs: int = Field(default=4, ge=1, description="Passes over the experience")
    num_minibatches: int = Field(default=4, ge=1, description="Minibatches per pass")
    gamma: float = Field(default=0.99, ge=0, le=1, description="Discount")
    gae_lambda: float = Field(default=0.95, ge=0, le=1, description="Decay of the advantage's sum")
    sampling: Literal["shuffled", "sequential", "prioritised"] = Field(default="shuffled", description="Order of rows")
    priority_alpha: float = Field(default=0.6, ge=0, description="How strongly large advantages are preferred")
    priority_beta: float = Field(default=1.0, ge=0, le=1, description="How far that preference is corrected for")
    segment_length: int = Field(default=16, ge=1, description="Steps a recurrent policy is unrolled in training")
    accumulate_minibatches: int = Field(default=1, ge=1, description="Minibatches per optimizer step")
    optimizer: OptimizerConfig = OptimizerConfig()
    values: dict[str, Value] = Field(default_factory=dict, description="Scheduled values, by path")


class PPOConfig(Settings):
    """Proximal policy optimisation."""

    kind: Literal["ppo"] = "ppo"
    clip: float = Field(default=0.2, gt=0, description="How far the probability ratio may move from 1")
    value_clip: float | None = Field(default=None, gt=0, description="How far a value may move")
    entropy_coefficient: float = Field(default=0.0, ge=0, description="Weight of the entropy bonus")
    value_coefficient: float = Field(default=0.5, ge=0, description="Weight of the value loss")
    normalise_advantages: bool = Field(default=True, description="Per minibatch")
    target_kl: float | None = Field(default=None, gt=0, description="Ends an epoch's passes early")
    rollout_schedule: str | None = Field(default=None, description="When it takes part in collection")
    train_schedule: str | None = Field(default=None, description="When it takes part in training")


class KickstartConfig(Settings):
    """A trained policy that teaches, usually in the first epochs."""

    kind: Literal["kickstart"] = "kickstart"
    teacher: str = Field(description="The run that teaches: its name, or its path")
    checkpoint: str = Field(default="latest", description="Which of its checkpoints")
    coefficient: float = Field(default=1.0, ge=0, description="Weight of the distance between action distributions")
    value_coefficient: float = Field(default=0.0, ge=0, description="Weight of the distance between values")
    rollout_schedule: str | None = Field(default=None, description="When it takes part in collection")
    train_schedule: str | None = Field(default=None, description="When it takes part in training")


LossConfig = Annotated[PPOConfig | KickstartConfig, Field(discriminator="kind")]


class RolloutSettings(ClusterSettings):
    """A run whose rollouts can be played by workers."""

    workers: Annotated[int, Field(ge=0)] | Literal["auto"] | None = Field(
        default=None,
        description="Who plays rollouts; 0: this process, auto: as many as pay, null: this process, without slots",
    )
    slots: int = Field(default=4, ge=1, description="Tasks per rollout, with any number of workers")
    rollout_mode: Literal["exact", "async"] = Field(
        default="exact", description="Wait for all slots, or play on while learning; async resumes approximately"
    )
    max_lag: int = Field(default=1, ge=1, description="Async: rollouts with weights older than this are dropped")

    @model_validator(mode="before")
    @classmethod
    def _has_workers_where_they_are_needed(cls, given: Any) -> Any:
        """Whoever names a cluster wants workers there, and nobody but workers plays on while this process learns."""
        needs_workers = given.get("cluster", "local") != "local" or given.get("rollout_mode") == "async"
        return {**given, "workers": "auto"} if needs_workers and given.get("workers") is None else given


class RLConfig(RolloutSettings):
    """A whole run: what a recipe returns and ``hookloop train`` carries out."""

    workload: ClassVar[str] = "rl"

    total_env_steps: int = Field(default=100_000, ge=1, description="Environment steps in all")
    env: EnvConfig
    curriculum: CurriculumConfig | None = Field(default=None, description="Lessons; null for one environment")
    policy: PolicyConfig = PolicyConfig()
    losses: dict[str, LossConfig] = Field(default_factory=lambda: {"ppo": PPOConfig()}, description="By name, in order")
    trainer: TrainerConfig = TrainerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    stop_at_return: float | None = Field(default=None, description="Stop once the mean of 100 episodes reaches this")

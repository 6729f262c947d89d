"""Deviations of continuous actions that depend on the state (gSDE; Raffin, Kober and Stulp, 2020).

The noise of an action is ``features @ matrix`` with a matrix of independent normal numbers, whose log-deviations are
parameters. Over all matrices it is normally distributed with variance ``features ** 2 @ deviations ** 2``. The features
are taken as they are: no gradient flows into them. Axes: B rows, H features, O entries of an action.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LEAST_VARIANCE = 1e-6  # added: where all features are 0 there is no noise, and no logarithm of its deviation


def state_dependent_parameters(means: Tensor, features: Tensor, log_deviations_HO: Tensor) -> Tensor:
    """Return means, log-deviations of the actions, and features, as one tensor [..., 2 O + H] of the autograd graph."""
    features = features.detach()
    variances = features.square() @ (2 * log_deviations_HO).exp() + LEAST_VARIANCE
    return torch.cat((means, 0.5 * variances.log(), features), -1)


class StateDeviations:
    """The same for the memory of one pass, forward and back.

    Args:
        top_HB: Where the features are.
        out_OB: Where the log-deviations of the actions go.
        out_HB: Where a copy of the features goes.
    """

    def __init__(self, top_HB: Tensor, *, out_OB: Tensor, out_HB: Tensor) -> None:
        self._top_HB, self._logs_OB, self._features_HB = top_HB, out_OB, out_HB
        self._squares_HB = torch.empty_like(out_HB)
        self._variances_OB = torch.empty_like(out_OB)
        self._entry_variances_HO = out_HB.new_empty(out_HB.shape[0], out_OB.shape[0])
        self._numpy: list[NDArray[Any]] = []

    def forward(self, log_deviations_HO: Tensor) -> None:
        """Compute the log-deviations of the actions; call it where autograd is off."""
        torch.mul(log_deviations_HO, 2, out=self._entry_variances_HO).exp_()
        self._features_HB.copy_(self._top_HB)
        torch.mul(self._features_HB, self._features_HB, out=self._squares_HB)
        torch.mm(self._entry_variances_HO.t(), self._squares_HB, out=self._variances_OB).add_(LEAST_VARIANCE)
        torch.log(self._variances_OB, out=self._logs_OB).mul_(0.5)

    def forward_small(self, log_deviations_HO: NDArray[Any]) -> None:
        """Do the same in numpy."""
        if not self._numpy:
            of_features = (self._top_HB, self._features_HB, self._squares_HB)
            of_actions = (self._logs_OB, self._variances_OB, self._entry_variances_HO)
            self._numpy = [tensor.numpy() for tensor in (*of_features, *of_actions)]
        top_HB, features_HB, squares_HB, logs_OB, variances_OB, entry_variances_HO = self._numpy
        np.multiply(log_deviations_HO, 2, entry_variances_HO)
        np.exp(entry_variances_HO, entry_variances_HO)
        np.copyto(features_HB, top_HB)
        np.multiply(features_HB, features_HB, squares_HB)
        np.dot(entry_variances_HO.T, squares_HB, variances_OB)
        np.add(variances_OB, LEAST_VARIANCE, variances_OB)
        np.log(variances_OB, logs_OB)
        np.multiply(logs_OB, 0.5, logs_OB)

    def gradient(self, logs_grad_BO: Tensor, out: Tensor | None) -> Tensor:
        """Return the gradient of the log-deviations [H, O], given that of the actions' log-deviations."""
        shares_OB = torch.div(logs_grad_BO.t(), self._variances_OB)
        return torch.mm(self._squares_HB, shares_OB.t(), out=out).mul_(self._entry_variances_HO)

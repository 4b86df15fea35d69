"""A slow, obvious fitter for small tables: additive by least squares, then proportional fitting.

The scheme of Langsrud & Lupp (2021): project the published cells on tables that add up; set
negative cells to zero and project the others again; then iterate proportional fitting.
"""

from dataclasses import dataclass

import numpy as np

from discreet.solve import Certificate, Status
from discreet.solve.fit import Fit


@dataclass(frozen=True)
class SlowChain:
    """Additive repair and proportional fitting, by dense matrices."""

    name = "slow-chain"
    sweeps: int = 200

    def __call__(self, design, z, *, weights=None):
        return self.prepare(design)(z, weights=weights)

    def prepare(self, design):
        X = design.matrix().toarray().astype(float)

        def fit(z, *, weights=None):
            y = proportional(X, additive(X, np.asarray(z, float), weights), self.sweeps)
            return Fit(y, X.T @ y, Status.converged, Certificate())

        return fit


def additive(X, z, weights):
    weights = np.ones(len(z)) if weights is None else weights
    kept, zero = np.ones(len(X), bool), np.zeros(len(z), bool)
    while True:
        A = X[kept].T * np.sqrt(weights)[:, None]
        y = np.linalg.lstsq(A[~zero], (np.sqrt(weights) * z)[~zero], rcond=None)[0]
        fitted = X[kept].T @ y
        fitted[zero] = 0
        more = (fitted < 1e-10) & ~zero
        if not more.any():
            return fitted
        zero |= more | (z == 0)
        kept = ~(X[:, zero] > 0).any(axis=1)


def proportional(X, z, sweeps):
    y = np.ones(len(X))
    for _ in range(sweeps):
        for k in range(X.shape[1]):
            members = X[:, k] > 0
            total = y[members].sum()
            y[members] *= z[k] / total if total > 0 else 0
        if np.abs(X.T @ y - z).max() < 1e-9:
            break
    return y

"""Anderson's method on linear iterations, where it is a Krylov method."""

import numpy as np

from discreet.solve.likelihood.acceleration import Anderson


def iterate(memory, steps):
    rng = np.random.default_rng(1)
    basis, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    A = basis @ np.diag([0.99, 0.9, 0.7, 0.5, 0.2, 0.1]) @ basis.T
    solution = rng.normal(size=6)
    anderson, x = Anderson(memory, np.ones(6)), np.zeros(6)
    for _ in range(steps):
        image = solution + A @ (x - solution)
        proposal = anderson.propose(x, image)
        x = image if proposal is None else proposal
    return np.abs(x - solution).max()


def test_a_linear_iteration_ends_after_as_many_steps_as_unknowns():
    assert iterate(memory=6, steps=10) < 1e-4
    assert iterate(memory=0, steps=10) > 0.1


def test_nothing_is_proposed_without_a_history_or_after_forgetting():
    anderson = Anderson(3, np.ones(2))
    assert anderson.propose(np.zeros(2), np.ones(2)) is None
    assert anderson.propose(np.ones(2), np.full(2, 1.5)) is not None
    anderson.forget()
    assert anderson.propose(np.zeros(2), np.ones(2)) is None


def test_a_fixed_point_proposes_nothing_new():
    anderson = Anderson(3, np.ones(2))
    anderson.propose(np.ones(2), np.ones(2))
    assert anderson.propose(np.ones(2), np.ones(2)) is None

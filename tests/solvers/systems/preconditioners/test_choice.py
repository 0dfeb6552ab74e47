"""The rank of a preconditioner follows what it is worth."""

import numpy as np

from mercer import RBF, Gram, Laplacian, Linear
from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.solvers.control import Control
from mercer.solvers.systems.preconditioners.choice import Costs, grow, steps
from mercer.solvers.systems.system import Systems

X = np.random.default_rng(0).standard_normal((2000, 6))


def rank(kernel, shift, tol=1e-6, most=1000):
    matrix = KernelMatrix(Gram(kernel, X))
    factor = PivotedCholesky(matrix, most, True)
    grow(factor, shift, tol, None, Costs.of(matrix, True))
    return factor.rank


def test_a_smaller_shift_is_worth_more_columns():
    ranks = [rank(RBF(scale=2.0), shift) for shift in (1e3, 1.0, 1e-2)]
    assert ranks[0] <= 64 < ranks[1] < ranks[2]


def test_no_more_than_there_are():
    assert rank(Linear(), 1e-3) == 6
    assert 100 < rank(Laplacian(scale=1.0), 1e-6, most=200) <= 200


def test_the_same_each_time():
    assert rank(RBF(scale=2.0), 0.1) == rank(RBF(scale=2.0), 0.1)


def test_the_caller_may_name_it():
    matrix = KernelMatrix(Gram(RBF(scale=2.0), X))
    factor = PivotedCholesky(matrix, 150, True)
    grow(factor, 1e9, 1e-6, 150, Costs.of(matrix, True))
    assert factor.rank == 150


def test_steps_follow_the_condition():
    assert steps(1.0, 1.0, 1e-6) < steps(100.0, 1.0, 1e-6) < steps(100.0, 1.0, 1e-12)


def test_holds_the_triangle_for_many_products_only():
    costs = Costs.of(KernelMatrix(Gram(RBF(scale=2.0), X, budget="1 GB")), True)
    assert costs.worth_holding(1000)
    assert not costs.worth_holding(3)
    assert not Costs.of(KernelMatrix(Gram(RBF(scale=2.0), X, budget="1 MB")), True).worth_holding(1000)
    assert not Costs.of(KernelMatrix(Gram(RBF(scale=2.0), X)), False).worth_holding(1000)


def test_a_small_budget_is_spent_on_the_factor():
    X = np.random.default_rng(0).standard_normal((2000, 20))
    gram = Gram(RBF(scale=1.0), X, budget=3 * (100 * 2000 * 4 + 48 * 100**2))  # a third holds 100 rows and R R'
    systems = Systems(gram, Control(), method="cg")
    chosen = systems.preconditioners.choose(1e-3, 1e-10, single=True)
    assert 80 < chosen.factor.most < 100
    chosen.learn(np.eye(2000)[:, :40], gram.dense(np.empty((2000, 2000)))[:, :40])
    assert chosen.factor.rank <= 100

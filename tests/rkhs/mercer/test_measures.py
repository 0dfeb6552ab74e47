"""Nodes and weights against integrals that scipy or a formula knows."""

import numpy as np
import pytest
from scipy import stats

from mercer.rkhs.mercer.measures import Law

LAWS = [
    stats.norm(1, 2),
    stats.uniform(-1, 3),
    stats.expon(1, 2),
    stats.gamma(2.5, scale=0.5),
    stats.chi2(3),
    stats.beta(0.5, 2),
    stats.beta(2, 3, loc=1, scale=4),
    stats.arcsine(),
    stats.t(3),
    stats.cauchy(),
    stats.lognorm(0.5),
    stats.logistic(),
    stats.poisson(3.0),
    stats.hypergeom(20, 7, 12),
]
IDS = [f"{law.dist.name}{i}" for i, law in enumerate(LAWS)]


def smooth(x):
    return np.exp(-0.5 * (x - 1) ** 2) * np.cos(x)


@pytest.mark.parametrize("law", LAWS, ids=IDS)
def test_smooth_functions_are_integrated(law):
    options = {} if hasattr(law, "pmf") else {"epsabs": 1e-13, "epsrel": 1e-13, "limit": 500}
    true = law.expect(smooth, **options)
    for n, tol in ((64, 1e-4), (256, 1e-11), (300, 1e-11)):
        x, w = Law(law).nodes(n)
        assert np.isclose(w.sum(), 1)
        assert (w > 0).all()
        assert abs(w @ smooth(x) - true) < tol


@pytest.mark.parametrize("law", LAWS[:8], ids=IDS[:8])
def test_gauss_rules_know_the_moments(law):
    x, w = Law(law).nodes(12)
    assert len(x) == 12
    for power in range(1, 6):
        assert np.isclose(w @ x**power, law.moment(power), rtol=1e-7)  # scipy integrates some of them numerically


@pytest.mark.parametrize("law", LAWS[:12], ids=IDS[:12])
def test_kinks_are_split(law):
    at = float(law.ppf(0.3))

    def kinked(x):
        return np.exp(-np.abs(x - at))

    options = {"epsabs": 1e-12, "epsrel": 1e-12, "limit": 500}
    true = law.expect(kinked, ub=at, **options) + law.expect(kinked, lb=at, **options)
    z, w = Law(law).split(160)(at)
    assert np.isclose(w.sum(), 1)
    assert abs(w @ kinked(z) - true) < 1e-10


def test_kinks_are_not_split_where_quantiles_are_searched_for():
    class Bump(stats.rv_continuous):
        def _pdf(self, x):
            return 0.75 * (1 - x * x)

    assert Law(Bump(a=-1, b=1)()).split(10) is None
    assert Law(stats.poisson(2)).split(10) is None
    x, w = Law(Bump(a=-1, b=1)()).nodes(40)
    assert np.isclose(w @ x**2, 0.2, atol=1e-6)


def test_laws_of_the_new_kind():
    if not hasattr(stats, "Normal"):
        pytest.skip("this scipy has no stats.Normal")
    x, w = Law(stats.Normal(mu=1.0, sigma=2.0)).nodes(200)
    assert np.isclose(w @ x**2, 5.0, rtol=1e-9)
    assert np.isclose(w @ smooth(x), stats.norm(1, 2).expect(smooth), atol=1e-9)


def test_the_ends_of_a_law():
    assert Law(stats.uniform(1, 2)).ends(1e-3) == (1.0, 3.0)
    low, high = Law(stats.norm()).ends(1e-3)
    assert np.isclose(stats.norm.cdf(low), 1e-3)
    assert np.isclose(high, -low)

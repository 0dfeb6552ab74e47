"""Estimators: the models of the lectures with scikit-learn's interface."""

from mercer.estimators.gaussian_process import GaussianProcessRegressor
from mercer.estimators.kernel_cca import KernelCCA
from mercer.estimators.kernel_density import KernelDensity
from mercer.estimators.kernel_kmeans import KernelKMeans
from mercer.estimators.kernel_logistic import KernelLogisticRegression
from mercer.estimators.kernel_machine import KernelMachine
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.kernel_quantile import KernelQuantileRegressor
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.estimators.kernel_ridge_cv import KernelRidgeCV
from mercer.estimators.kernel_robust import KernelRobustRegressor
from mercer.estimators.linear_svc import LinearSVC
from mercer.estimators.linear_svr import LinearSVR
from mercer.estimators.nusvc import NuSVC
from mercer.estimators.nusvr import NuSVR
from mercer.estimators.oneclass import OneClassSVM
from mercer.estimators.pegasos import Pegasos
from mercer.estimators.perceptron import Perceptron
from mercer.estimators.ridge import Ridge
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR

__all__ = [
    "GaussianProcessRegressor",
    "KernelCCA",
    "KernelDensity",
    "KernelKMeans",
    "KernelLogisticRegression",
    "KernelMachine",
    "KernelPCA",
    "KernelQuantileRegressor",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRobustRegressor",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "Pegasos",
    "Perceptron",
    "Ridge",
    "SVC",
    "SVR",
]

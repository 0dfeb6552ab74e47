"""Estimators: the models of the lectures with scikit-learn's interface."""

from mercer.estimators.features.feature_learning import FeatureLearningClassifier, FeatureLearningRegressor
from mercer.estimators.linear.linear_svc import LinearSVC, LinearSVR
from mercer.estimators.linear.ridge import Ridge
from mercer.estimators.online.pegasos import Pegasos
from mercer.estimators.online.perceptron import Perceptron
from mercer.estimators.regression.gaussian_process import GaussianProcessRegressor
from mercer.estimators.regression.kernel_logistic import KernelLogisticRegression
from mercer.estimators.regression.kernel_machine import KernelMachine
from mercer.estimators.regression.kernel_quantile import KernelQuantileRegressor
from mercer.estimators.regression.kernel_ridge import KernelRidge, KernelRidgeClassifier
from mercer.estimators.regression.kernel_ridge_cv import KernelRidgeCV
from mercer.estimators.regression.kernel_robust import KernelRobustRegressor
from mercer.estimators.svm.oneclass import OneClassSVM
from mercer.estimators.svm.svc import SVC, NuSVC
from mercer.estimators.svm.svr import SVR, NuSVR
from mercer.estimators.unsupervised.kernel_cca import KernelCCA
from mercer.estimators.unsupervised.kernel_density import KernelDensity
from mercer.estimators.unsupervised.kernel_kmeans import KernelKMeans
from mercer.estimators.unsupervised.kernel_pca import KernelPCA

__all__ = [
    "FeatureLearningClassifier",
    "FeatureLearningRegressor",
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
    "KernelRidgeClassifier",
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

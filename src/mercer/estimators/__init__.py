"""Estimators: the models of the lectures with scikit-learn's interface."""

from mercer.estimators.linear_svc import LinearSVC
from mercer.estimators.linear_svr import LinearSVR
from mercer.estimators.nusvc import NuSVC
from mercer.estimators.nusvr import NuSVR
from mercer.estimators.oneclass import OneClassSVM
from mercer.estimators.pegasos import Pegasos
from mercer.estimators.perceptron import Perceptron
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR

__all__ = ["LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "Pegasos", "Perceptron", "SVC", "SVR"]

"""The classes that a model file may name: mercer's, some of scikit-learn's, and those that a user registers."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from mercer.estimators.shared.parameters import FromMatrices
from mercer.kernels import Kernel, register_kernel
from mercer.kernels.state import NotRegistered

__all__ = ["Entry", "NotRegistered", "entry_named", "entry_of", "function_named", "function_name", "register"]

T = TypeVar("T")

# Where the classes are that a file may name; `None`: all public classes of that folder. Those of mercer are written as
# mercer.SVC, whatever their module, and those of others by the path that their documentation gives.
_LIBRARY: dict[str, tuple[str, ...] | None] = {
    "mercer.estimators": None,
    "mercer.rkhs": ("Box", "MercerExpansion", "MercerFeatures", "RKHSFunction", "RKHSVector"),
    "mercer.losses": None,  # but for its Box, which is no part of a model
    "mercer.certify": ("Certificate",),
    "mercer.features": ("Monomials", "NamedFeatures", "RandomFourier", "TaylorFeatures", "TensorFeatures"),
    "mercer.features.combine": ("ConstantColumn", "Times"),
    "mercer.kernels.rules.pullback": ("Applied", "Columns", "Mapped"),
    "mercer.kernels.strings.ngrams": ("Frequencies", "KMers", "NGrams", "Weighted"),
    "mercer.kernels.graphs.graphlets": ("Induced",),
    "mercer.kernels.graphs.propagation": ("Binned",),
    "mercer.kernels.graphs.shortest_path": ("Paths",),
    "mercer.kernels.graphs.weisfeiler_lehman": ("Copies", "Refined"),
    "mercer.points": ("Graph",),
    "mercer.estimators.svm.machine": ("Recheck",),
    "mercer.rkhs.functions.sums": ("Expansion",),
    "mercer.estimators.unsupervised.kernel_cca": ("SecondView",),
    "mercer.rkhs.statistics.density": (
        "GaussianWindow",
        "LaplacianWindow",
        "MaternWindow",
        "Profile",
        "ProfileWindow",
        "StudentWindow",
        "WendlandWindow",
    ),
    "mercer.tables": ("SparseEncoder", "TableEncoder"),
    "mercer.selection": ("Account", "AutoClassifier", "AutoRegressor", "KernelMixture", "KernelSearchCV", "Learned"),
    "mercer.solvers.gp.space": ("Space",),
    "mercer.solvers.online.pegasos": ("Watched",),
}
_SKLEARN = {
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor make_column_selector",
    "sklearn.impute": "MissingIndicator SimpleImputer",
    "sklearn.preprocessing": (
        "FunctionTransformer KBinsDiscretizer LabelBinarizer LabelEncoder MaxAbsScaler MinMaxScaler "
        "Normalizer OneHotEncoder OrdinalEncoder PolynomialFeatures PowerTransformer QuantileTransformer "
        "RobustScaler StandardScaler"
    ),
    "sklearn.gaussian_process.kernels": (
        "ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel Product RBF "
        "RationalQuadratic Sum WhiteKernel"
    ),
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.feature_selection": "VarianceThreshold",
    "sklearn.calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.model_selection": (
        "GroupKFold GroupShuffleSplit KFold LeaveOneGroupOut LeaveOneOut LeavePOut PredefinedSplit "
        "RepeatedKFold RepeatedStratifiedKFold ShuffleSplit StratifiedGroupKFold StratifiedKFold "
        "StratifiedShuffleSplit TimeSeriesSplit"
    ),
}
_LIBRARY |= {module: tuple(names.split()) for module, names in _SKLEARN.items()}
_METRICS = "sklearn.metrics"  # whose functions a scorer may call

register_kernel(FromMatrices)  # the one kernel outside mercer.kernels

_CLASSES: dict[str, type] = {}
_FUNCTIONS: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class Entry:
    """A class that may be written, and what it is written as.

    Attributes
    ----------
    name
        What files call it.
    cls
        The class.
    arguments
        What it is made with, each of which is an attribute of the same name; None for an estimator, which has
        parameters and, once it is fitted, attributes beside them. A class whose constructor computes what it holds has
        two methods instead: `_parts` returns these things by name, and `_of_parts` makes an object of them.
    """

    name: str
    cls: type
    arguments: tuple[str, ...] | None

    def parts(self, thing: Any, path: str) -> dict[str, Any]:
        """Return what an object was made with."""
        if hasattr(self.cls, "_of_parts"):
            return dict(thing._parts())
        more = getattr(thing, "cvargs", {})  # where the splitters of scikit-learn that repeat others keep theirs
        missing = [a for a in self.arguments or () if not hasattr(thing, a) and a not in more]
        if missing:
            raise TypeError(
                f"{path} is a {self.name} whose argument {missing[0]!r} is not kept as an attribute; a class that is "
                "registered must keep what it was made with."
            )
        return {a: more[a] if a in more else getattr(thing, a) for a in self.arguments or ()}

    def make(self, given: dict[str, Any]) -> Any:
        """Return an object that is made of given things."""
        return getattr(self.cls, "_of_parts", self.cls)(**given)


def register(thing: T, name: str | None = None) -> T:
    """Let models with a class or a function of one's own be saved by name, and loaded again; also a decorator.

    A model file names classes and never brings code along: it can only be loaded where they are registered, too. All
    classes of mercer are, and the preprocessing of scikit-learn.

    Parameters
    ----------
    thing
        A class of kernels, losses, penalties or estimators, or a function that a kernel is made of. A class that is
        neither a kernel nor an estimator is written as the arguments of its constructor, which must be its attributes.
    name
        What files call it; the name of the class or function unless given.

    Examples
    --------
    >>> import mercer
    >>> @mercer.io.register
    ... class Quartic:
    ...     def value(self, t):
    ...         return t**4
    ...     def derivative(self, t):
    ...         return 4 * t**3
    """
    if not callable(thing):
        raise TypeError(f"register takes a class or a function; it got {thing!r:.80}.")
    if inspect.isclass(thing) and issubclass(thing, Kernel):
        if name not in (None, thing.__name__):
            raise ValueError(f"kernels are written by the name of their class, {thing.__name__!r}, not as {name!r}.")
        register_kernel(thing)
        return thing
    own: str = name or getattr(thing, "__name__", "") or ""
    if not own.isidentifier():
        raise ValueError(f"{thing!r:.80} has no name to be written by; pass one, as in register(thing, 'my_name').")
    known: dict[str, Any] = _CLASSES if inspect.isclass(thing) else _FUNCTIONS
    other = known.get(own)
    if other is not None and _place(other) != _place(thing):
        raise ValueError(f"{_place(other)} is registered as {own!r} already; pass another name for {_place(thing)}.")
    if inspect.isclass(thing):
        arguments_of(thing)  # says what cannot be written
    known[own] = thing
    return thing


def entry_of(cls: type) -> Entry | None:
    """Return how objects of a class are written; None where it is not registered."""
    for name, registered in _CLASSES.items():
        if registered is cls:
            return Entry(name, cls, arguments_of(cls))
    for module in _LIBRARY:
        if module in sys.modules:
            for name in _names(module):
                if getattr(sys.modules[module], name, None) is cls:
                    entry = entry_named(f"{_written(module)}.{name}")
                    return entry if entry.cls is cls else None
    return None


def entry_named(name: str) -> Entry:
    """Return the class that a file names."""
    if name in _CLASSES:
        return Entry(name, _CLASSES[name], arguments_of(_CLASSES[name]))
    path, _, own = name.rpartition(".")
    for module in _LIBRARY:  # files of version 1 name the modules that mercer's classes were in
        if _written(module) == _written(path) and own in _names(module):
            cls = getattr(import_module(module), own, None)
            if inspect.isclass(cls):
                return Entry(f"{_written(module)}.{own}", cls, arguments_of(cls))
    raise NotRegistered(
        f"it names the class {name!r:.80}, which is not registered here; import the module that defines it and call "
        f"mercer.io.register({own or name:.80}) first."
    )


def function_name(function: Any) -> str | None:
    """Return the name of a registered function, or of a metric of scikit-learn."""
    for name, known in _FUNCTIONS.items():
        if known is function:
            return name
    own = getattr(function, "__name__", "")
    return f"{_METRICS}.{own}" if isinstance(own, str) and _metric(own) is function is not None else None


def function_named(name: str) -> Any:
    """Return the function that a file names."""
    module, _, own = name.rpartition(".")
    metric = _metric(own) if module == _METRICS else None
    if metric is not None:
        return metric
    if name not in _FUNCTIONS:
        raise NotRegistered(
            f"it names the function {name!r:.80}, which is not registered here; import the module that defines it and "
            f"call mercer.io.register({name:.80}) first."
        )
    return _FUNCTIONS[name]


def _metric(name: str) -> Any:
    """Return a public function of sklearn.metrics; None for any other name."""
    metrics = import_module(_METRICS)
    metric = getattr(metrics, name) if name in metrics.__all__ else None
    return metric if inspect.isfunction(metric) else None


def _written(module: str) -> str:
    """Return what files write before the name of a class of a module."""
    return "mercer" if module.split(".")[0] == "mercer" else module


def _names(module: str) -> tuple[str, ...]:
    names = _LIBRARY[module]
    return tuple(import_module(module).__all__) if names is None else names


def arguments_of(cls: type) -> tuple[str, ...] | None:
    """Return the arguments of a class's constructor; None for an estimator."""
    if issubclass(cls, BaseEstimator):
        return None
    if hasattr(cls, "_of_parts"):
        return tuple(inspect.signature(cls._of_parts).parameters)
    if is_dataclass(cls):
        return tuple(f.name for f in fields(cls) if f.init)
    if hasattr(cls, "_fields"):  # a named tuple
        return tuple(cls._fields)
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return ()
    parameters = inspect.signature(cls).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise TypeError(
            f"the constructor of {_place(cls)} takes any arguments, so that what an object was made with cannot be "
            "known; name them."
        )
    return tuple(p.name for p in parameters)


def _place(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '?')}.{getattr(thing, '__qualname__', thing)}"

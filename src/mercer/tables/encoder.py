"""From the columns of a table to numbers whose distances mean something."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mercer.estimators.shared.data import positive_weights
from mercer.estimators.shared.parameters import positive, whole
from mercer.kernels import Kernel
from mercer.kernels.rules.pullback import Composed, On
from mercer.machine.warn import warn
from mercer.machine.words import count
from mercer.tables.cells import ABSENT, StrangeCells
from mercer.tables.kinds import OBJECTS, encode_column, learn_column, strangeness

if TYPE_CHECKING:
    import pandas as pd


_KINDS = {"category": "categories", "ordered category": "ordered categories"}
_KINDS |= {k: f"{k}s" for k in ("number", "date", "identifier", "text", "sequence")}


class Column(NamedTuple):
    """What was done to a column of the table.

    Attributes
    ----------
    name
        Of the column.
    kind
        "number", "yes/no", "category", "ordered category", "date", "text", "sequence" (of DNA); or "constant",
        "identifier" for what was dropped, as texts are unless `texts` is "keep".
    made
        The names of the columns that it became; none if it was dropped.
    said
        A sentence that says so.
    """

    name: str
    kind: str
    made: list[str]
    said: str


class TableEncoder(TransformerMixin, BaseEstimator):
    """The columns of a table as numbers, so that the distance of two rows means something to a kernel.

    Two rows at random differ by sqrt(2), in the root of the mean square, in each column that a table of numbers has:

    - numbers have mean 0 and standard deviation 1; those farther than 3 deviations away are drawn nearer by a
      logarithm. A missing one is at the median, and a further column says so.
    - categories have a column each, 0 or 1, so that two different ones are sqrt(2) apart. Those with few rows share
      one; missing is a category of its own. Two values, be they texts or numbers, are one column of -0.71 and 0.71.
    - ordered categories (of pandas; Enum of polars) are numbers, the ranks of all levels that are declared. A level
      that was not declared in `fit` counts as missing, with a warning.
    - dates and times are a column of days, standardised, and a circle of radius 1 for the season, the weekday and the
      hour, where these vary.
    - what is constant, numbers the rows, or is a different text in every second row is dropped. With `texts="keep"`,
      prose (many different texts of several words) and DNA stay as they are, for kernels of strings.

    `treatment_` says what was done to each column. Cells of text that are numbers ("1,234", "$5") count as numbers, and
    "", "?", "NA", "null" and the like as missing.

    Parameters
    ----------
    max_categories
        Categories of one column that get a column of their own; the others share one.
    min_rows
        Rows that a category must have for it; in a table of n rows, n / 20 are enough.
    category_scale
        What the distances of categories are multiplied with.
    tails
        "auto", or "keep" for numbers as they are, whatever their tails.
    texts
        "drop", or "keep" for columns of prose and of DNA as they are: rows are then arrays of objects, where there are
        such columns, for kernels that look at columns by their numbers (`places` returns these).

    Attributes
    ----------
    treatment_
        A list of `Column`: name, kind, the names of the columns made of it, and a sentence.
    columns_
        What was learned about each column, as plain data.
    n_features_in_, feature_names_in_
        Number and names of the columns seen in fit (names only of tables).

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer.tables import TableEncoder
    >>> people = pd.DataFrame({"age": [31, 33, None, 60], "job": ["smith", "smith", "baker", "clerk"], "country": "NL"})
    >>> encoder = TableEncoder().fit(people)
    >>> encoder.transform(people).round(2)
    array([[-0.78, -0.71,  0.  ,  0.  ,  1.  ],
           [-0.63, -0.71,  0.  ,  0.  ,  1.  ],
           [-0.63,  0.71,  1.  ,  0.  ,  0.  ],
           [ 1.41, -0.71,  0.  ,  1.  ,  0.  ]])
    >>> for column in encoder.treatment_:
    ...     print(column.said)
    age: numbers from 31 to 60 (median 33), standardised; 1 missing is at the median and marked by a further column.
    job: 3 categories, one column each.
    country: dropped; it is NL in all 4 rows that have a value.
    """

    def __init__(
        self,
        *,
        max_categories: int = 50,
        min_rows: int = 5,
        category_scale: float = 1.0,
        tails: str = "auto",
        texts: str = "drop",
    ) -> None:
        self.max_categories = max_categories
        self.min_rows = min_rows
        self.category_scale = category_scale
        self.tails = tails
        self.texts = texts

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what each column is.

        Parameters
        ----------
        X
            A table (pandas, polars) or an array.
        y
            Ignored.
        sample_weight
            How many rows each counts for in means, deviations and medians; 0 leaves it out. What a column is and which
            categories are rare follows from the cells alone.

        Returns
        -------
        self
        """
        self._check_parameters()
        table = self._table(X, fitting=True)
        weights, rows = positive_weights(sample_weight, len(table))
        table = table if rows is None else table.iloc[rows]
        asked: dict[str, Any] = {
            "scale": float(self.category_scale),
            "most": int(self.max_categories),
            "fewest": int(self.min_rows),
            "tails": self.tails,
            "texts": self.texts,
            "weights": weights,
        }
        self.columns_ = [learn_column(str(name), column, **asked) for name, column in table.items()]
        if not any(c["made"] for c in self.columns_):
            said = " ".join(c["said"] for c in self.columns_)
            raise ValueError(f"there is nothing to learn from in {count(len(table), 'sample')}: {said}")
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the rows as numbers.

        Parameters
        ----------
        X
            A table with the columns that `fit` has seen, in any order and among others; or an array of that width.
            Cells of another kind than in `fit` count as missing, and categories that it has not seen as other ones;
            one warning counts both.

        Returns
        -------
        numpy.ndarray of float64, one row for each of X; of objects where columns of texts are kept
        """
        check_is_fitted(self, "columns_")
        table = self._table(X, fitting=False)
        used = [c for c in self.columns_ if c["made"]]
        objects = any(c["kind"] in OBJECTS for c in used)
        out = np.empty((len(table), sum(len(c["made"]) for c in used)), object if objects else np.float64)
        done = 0
        strange = {}
        for state in used:
            width = len(state["made"])
            out[:, done : done + width], wrong, values = encode_column(state, self._column(table, state["name"]))
            done += width
            if wrong:
                strange[(state["name"], *strangeness(state))] = wrong, values
        if strange:
            warn(StrangeCells(strange))
        return out

    @property
    def treatment_(self) -> list[Column]:
        """What was done to each column."""
        check_is_fitted(self, "columns_")
        return [Column(c["name"], c["kind"], list(c["made"]), c["said"]) for c in self.columns_]

    def sentence(self) -> str:
        """Say how many columns of each kind there are, and which were dropped."""
        columns = self.treatment_
        kinds = Counter(column.kind for column in columns)
        listed = ", ".join(f"{_KINDS.get(kind, kind)} {number:,}" for kind, number in kinds.most_common())
        gone = [column.name for column in columns if not column.made]
        dropped = f" Dropped: {', '.join(gone[:8])}{', ...' if len(gone) > 8 else ''}." if gone else ""
        return f"They were made of {count(len(columns), 'column')}: {listed}.{dropped}"

    def places(self, *kinds_wanted: str) -> list[int]:
        """Return which columns of the result were made of columns of the table of these kinds.

        Examples
        --------
        >>> import pandas as pd
        >>> from mercer.tables import TableEncoder
        >>> table = pd.DataFrame({"size": [1.0, 2.0, 4.0], "hue": ["red", "green", "blue"]})
        >>> TableEncoder().fit(table).places("category")
        [1, 2, 3]
        """
        owners = [c.kind for c in self.treatment_ for _ in c.made]
        return [i for i, kind in enumerate(owners) if kind in kinds_wanted]

    def groups(self) -> dict[str, np.ndarray]:
        """Return which columns of the result were made of each column of the table that was not dropped.

        Examples
        --------
        >>> import pandas as pd
        >>> from mercer.tables import TableEncoder
        >>> table = pd.DataFrame({"size": [1.0, 2.0, 4.0], "hue": ["red", "green", "blue"]})
        >>> TableEncoder().fit(table).groups()
        {'size': array([0]), 'hue': array([1, 2, 3])}
        """
        ends = np.cumsum([len(column.made) for column in self.treatment_])
        made = zip(self.treatment_, ends, strict=True)
        return {column.name: np.arange(end - len(column.made), end) for column, end in made if column.made}

    def named(self, kernel: Kernel) -> Kernel:
        """Return a kernel of encoded rows with names of columns in the place of their numbers, for people to read.

        Where a kernel looks at all that a column of the table became, it is the name of that column.

        Examples
        --------
        >>> import pandas as pd
        >>> from mercer import RBF, Linear
        >>> from mercer.tables import TableEncoder
        >>> table = pd.DataFrame({"size": [1.0, 2.0, 4.0], "hue": ["red", "green", "blue"]})
        >>> TableEncoder().fit(table).named(RBF(2.0).on([0, 1, 2, 3]) + Linear().on([3]))
        RBF(scale=2.0).on(['size', 'hue']) + Linear().on(['hue=red'])
        """
        if isinstance(kernel, On):
            width = sum(len(column.made) for column in self.treatment_)
            chosen = kernel.columns if isinstance(kernel.columns, slice | list | tuple) else [kernel.columns]
            places = list(range(width))[chosen] if isinstance(chosen, slice) else list(chosen)
            fine = all(isinstance(i, int) and -width <= i < width for i in places)
            return On(kernel.base, self._called([i % width for i in places])) if fine else kernel
        parts = kernel.children()
        if not parts or isinstance(kernel, Composed):  # after a map there are no columns of the table
            return kernel
        return kernel.replace(**{name: self.named(part) for name, part in parts.items()})

    def _called(self, places: list[int]) -> list[str]:
        """Return names of columns of the result; of columns of the table that are there as a whole, theirs."""
        names: list[str] = []
        start, of = 0, set(places)
        for column in self.treatment_:
            own = range(start, start + len(column.made))
            start += len(column.made)
            if own and of.issuperset(own):
                names.append(column.name)
            else:
                names += [column.made[i - own.start] for i in own if i in of]
        return names

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of the result.

        Parameters
        ----------
        input_features
            Not used: the names are those of the table, or x0, x1, ... for an array.
        """
        return np.array([made for column in self.treatment_ for made in column.made], dtype=object)

    # -- what comes in ----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        rules = {
            "max_categories": (whole(self.max_categories, 1), "a whole number >= 1"),
            "min_rows": (whole(self.min_rows, 1), "a whole number >= 1"),
            "category_scale": (positive(self.category_scale) and self.category_scale < np.inf, "a finite number > 0"),
            "tails": (self.tails in ("auto", "keep"), "'auto' or 'keep'"),
            "texts": (self.texts in ("drop", "keep"), "'drop' or 'keep'"),
        }
        for name, (fine, what) in rules.items():
            if not fine:
                raise ValueError(f"{name}={getattr(self, name)!r} of TableEncoder must be {what}.")

    def _table(self, X: Any, fitting: bool) -> pd.DataFrame:
        """Return X as a pandas table whose columns have names; remember or check what scikit-learn wants to know."""
        import pandas as pd

        if hasattr(X, "to_pandas"):
            X = X.to_pandas()
        if not isinstance(X, pd.DataFrame):
            X = _array(X)
            validate_data(self, X, reset=fitting, skip_check_array=True)
            return pd.DataFrame(X, columns=self._names(X.shape[1])).infer_objects()
        if len(X) < 1 or X.shape[1] < 1:
            raise ValueError(f"Found array with {len(X)} sample(s) and {X.shape[1]} feature(s) while 1 is required.")
        X = X.set_axis([str(c) for c in X.columns], axis=1)
        twice = X.columns[X.columns.duplicated()]
        if len(twice):
            raise ValueError(f"two columns are called {twice[0]!r}; give them different names.")
        if fitting:
            validate_data(self, X, reset=True, skip_check_array=True)
        return X

    def _names(self, width: int) -> list[str]:
        return list(getattr(self, "feature_names_in_", [f"x{i}" for i in range(width)]))

    def _column(self, table: pd.DataFrame, name: str) -> pd.Series:
        import pandas as pd

        if name in table.columns:
            return table[name]
        if ABSENT in table.attrs:
            return pd.Series(np.full(len(table), table.attrs[ABSENT]), index=table.index, name=name)
        near = ", ".join(map(repr, table.columns[:10])) + (", ..." if table.shape[1] > 10 else "")
        raise ValueError(f"the table has no column {name!r}, which the encoder was fitted to; it has {near}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _array(X: Any) -> np.ndarray:
    """Return an array of two dimensions, of numbers or of objects."""
    array = check_array(X, dtype=None, ensure_all_finite=False, estimator="TableEncoder")
    if array.dtype.kind in "US":
        array = array.astype(object)
    return np.asarray(array)

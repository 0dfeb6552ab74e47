"""score, show and verify: what a model file is good for."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.datasets import load_iris

import mercer as library
from mercer.cli.saved import holds


def test_score_is_that_of_scikit_learn(mercer, data, buys, spent):
    new = pd.read_csv(data / "new.csv")
    model = library.load(buys[0])
    chances = model.predict_proba(new)
    found = json.loads(mercer("score", buys[0], data / "new.csv", "--json").stdout)
    assert found["rows"] == 60
    expected = {
        "accuracy": metrics.accuracy_score(new["buys"], model.predict(new)),
        "balanced accuracy": metrics.balanced_accuracy_score(new["buys"], model.predict(new)),
        "ROC area": metrics.roc_auc_score(new["buys"] == "yes", chances[:, 1]),
        "log loss": metrics.log_loss(new["buys"], chances),
    }
    assert {name: score["value"] for name, score in found["scores"].items()} == pytest.approx(expected, abs=1e-6)
    found = json.loads(mercer("score", spent[0], data / "new.csv", "--json").stdout)["scores"]
    predicted = library.load(spent[0]).predict(new)
    assert found["R²"]["value"] == pytest.approx(metrics.r2_score(new["spent"], predicted))
    assert found["RMSE"]["value"] == pytest.approx(metrics.root_mean_squared_error(new["spent"], predicted))
    assert found["MAE"]["value"] == pytest.approx(metrics.mean_absolute_error(new["spent"], predicted))


def test_score_tells_people(mercer, data, buys):
    shown = mercer("score", buys[0], data / "new.csv").stdout
    assert re.search(r"^ +accuracy +[\d.]+ ± [\d.]+$", shown, re.MULTILINE)
    assert "always saying" in shown


def test_answers_of_another_name_and_gaps(mercer, refused, data, spent, tmp_path):
    new = pd.read_csv(data / "new.csv").rename(columns={"spent": "cost"})
    new.loc[:9, "cost"] = None
    new.to_csv(tmp_path / "cost.csv", index=False)
    found = json.loads(mercer("score", spent[0], "cost.csv", "--target", "cost", "--json").stdout)
    assert found["rows"] == 50
    assert "right answers" in refused("score", spent[0], "cost.csv")
    new.assign(cost=None).to_csv(tmp_path / "void.csv", index=False)
    assert "nothing to" in refused("score", spent[0], "void.csv", "--target", "cost")
    new.assign(cost="much").to_csv(tmp_path / "words.csv", index=False)
    assert "'much'" in refused("score", spent[0], "words.csv", "--target", "cost")


def test_one_class_and_new_ones_can_be_scored(mercer, data, buys, tmp_path):
    new = pd.read_csv(data / "new.csv")
    new.assign(buys="yes").to_csv(tmp_path / "yes.csv", index=False)
    found = json.loads(mercer("score", buys[0], "yes.csv", "--json").stdout)["scores"]
    assert found["accuracy"]["value"] == np.mean(library.load(buys[0]).predict(new) == "yes")
    assert "ROC area" not in found
    new.assign(buys="perhaps").to_csv(tmp_path / "new.csv", index=False)
    assert json.loads(mercer("score", buys[0], "new.csv", "--json").stdout)["scores"]["accuracy"]["value"] == 0


# -- show -------------------------------------------------------------------------------------------------


def test_show(mercer, buys):
    path, told = buys
    done = mercer("show", path, "--columns")
    assert done.returncode == 0, done.stderr
    shown = " ".join(re.sub(r"[│├└─]", " ", done.stdout).split())
    model = library.load(path)
    assert " ".join(repr(model.kernel_).split()) in shown
    assert model.kernel_.proof().rule in shown
    assert "buys, a class: no, yes" in shown
    assert "128 rows of" in shown
    assert "mercer fit" in shown
    assert f"dual {told['certificate']['dual']:.8g}" in shown
    assert "planet: dropped" in shown
    found = json.loads(mercer("show", path, "--json").stdout)
    assert found["facts"] == {name: told[name] for name in found["facts"]}
    assert found["certificate"] == told["certificate"]
    assert found["proof"] == "proven"


def test_show_says_by_which_columns_rows_are_compared(mercer, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    kernel = library.RBF(1.0).transformed([1.0, 0.0, 3.0, 0.0])
    library.save(library.SVC(kernel=kernel).fit(X, y), tmp_path / "svc.mercer")
    shown = " ".join(mercer("show", "svc.mercer").stdout.split())
    assert "Rows are compared by petal length (cm) 9" in shown
    shares = json.loads(mercer("show", "svc.mercer", "--json").stdout)["column_importances"]
    assert list(shares)[:2] == ["petal length (cm)", "sepal length (cm)"]
    assert sum(shares.values()) == pytest.approx(1.0)


def test_show_whatever_was_saved(mercer, refused, tmp_path):
    library.save(library.RBF(2.0) + library.Linear(), tmp_path / "k.mercer")
    assert "RBF(scale=2.0) + Linear()  proven" in mercer("show", "k.mercer").stdout
    X, y = load_iris(return_X_y=True)
    library.save(library.SVC(C=10.0).fit(X, y), tmp_path / "svc.mercer", facts={"of": "iris"})
    shown = mercer("show", "svc.mercer").stdout
    assert "SVC" in shown
    assert "iris" in shown
    assert "No function of this kernel's space" in " ".join(shown.split())
    assert "no certificate" in refused("verify", "k.mercer", "k.mercer")


# -- verify -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_certificates_hold_on_the_rows_of_the_fit(mercer, data, buys, spent, name):
    for path, told in (buys, spent):
        done = mercer("verify", path, data / name, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["holds"]
        assert found["same_rows"]
        assert found["rows"] == told["train_rows"]
        assert found["verified"]["solver"] != found["claimed"]["solver"]
        assert found["verified"]["dual"] == pytest.approx(told["certificate"]["dual"], rel=1e-3)
    shown = mercer("verify", buys[0], data / name).stdout
    assert "Holds" in shown


def test_other_rows_are_not_those_of_the_fit(refused, data, buys, tmp_path):
    table = pd.read_csv(data / "people.csv")
    table.loc[:60, "age"] = 33.5
    table.to_csv(tmp_path / "changed.csv", index=False)
    assert "does not hold the rows" in refused("verify", buys[0], "changed.csv", code=1)
    assert "does not hold the rows" in refused("verify", buys[0], data / "new.csv", code=1)


def test_a_false_certificate_is_found(mercer, data, buys, tmp_path):
    from mercer.io import facts

    model = library.load(buys[0])
    model.estimator_.intercept_ = model.estimator_.intercept_ + 1.0  # feasible still, and far from optimal
    library.save(model, tmp_path / "false.mercer", facts=facts(buys[0]))
    done = mercer("verify", "false.mercer", data / "people.csv")
    assert done.returncode == 1
    assert "Does not hold" in done.stdout


def test_what_holds():
    claim = library.Certificate(primal=10.001, dual=10.0, kkt=0.0, tol=1e-3)
    rough = library.Certificate(primal=12.0, dual=10.0, kkt=0.0, tol=1e-3)
    assert holds(claim, claim)
    assert holds(rough, rough)  # it claimed no more
    assert holds(rough, claim)
    assert not holds(claim, rough)
    bent = replace(claim, stationary="the kernel is not positive semidefinite")
    assert holds(bent, bent)
    assert not holds(claim, bent)  # it claimed a minimum


def test_a_model_saved_from_python_can_be_verified(mercer, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.assign(kind=y).to_csv(tmp_path / "iris.csv", index=False)
    library.save(library.SVC(C=10.0).fit(X.to_numpy(), y), tmp_path / "svc.mercer")
    done = mercer("verify", "svc.mercer", "iris.csv", "--target", "kind", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["same_rows"] is False

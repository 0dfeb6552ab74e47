"""What the sections say is so."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from mercer import AutoRegressor, Laplacian
from mercer.machine.clock import Clock
from mercer.report.blocks import percent
from mercer.report.columns import averaged, depend, dependence_figures, measure
from mercer.report.data import data_section, sketch
from mercer.report.errors import errors_section, interval
from mercer.report.influence import _margins, influence_section
from mercer.report.metric import metric_section, written
from mercer.report.plane import columns_plane, directions_plane, leading, plane_figure
from mercer.report.search import cells_of, search_section
from mercer.report.story import LEVELS, Machine, judge
from mercer.report.winner import grow, timings_section, winner_section
from report_stories import EVIL


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=["two", "several", "numbers"])
def story(request):
    return request.getfixturevalue(request.param)


def test_rows_encoded_before_and_by_the_model_are_predicted_alike(story):
    machine, frame = Machine(story.model), story.test[0]
    Z = machine.encode(frame)
    assert np.array_equal(machine.bare.predict(Z), story.model.predict(frame))
    assert story.model.encoder_.transform(frame).shape == Z.shape  # the model itself keeps its encoder
    whole = machine.score(Z, story.test[1])
    assert whole == pytest.approx(story.model.score(frame, story.test[1]))


def test_dealing_out_a_column_is_dealing_out_what_was_made_of_it(story, rng):
    machine, frame = Machine(story.model), story.test[0]
    Z, order = machine.encode(frame), rng.permutation(len(frame))
    made = story.model.encoder_.groups()
    assert "same" not in made
    assert sorted(np.concatenate(list(made.values()))) == list(range(Z.shape[1]))
    for name, columns in made.items():
        dealt = frame.copy()
        dealt[name] = frame[name].to_numpy()[order]
        expected = Z.copy()
        expected[:, columns] = Z[order][:, columns]
        assert np.allclose(machine.encode(dealt), expected)


def test_the_column_that_says_most_matters_most(story, rng):
    found = measure(story, Machine(story.model), Clock(2.0), rng)
    assert found.names[found.order[0]] == EVIL
    assert found.loss[found.names.index("noise")] < 0.3 * found.loss.max()
    assert found.tested


def test_importance_ends_in_time_with_one_look_at_each_column(two, rng):
    found = measure(two, Machine(two.model), Clock(0.0), rng)
    assert found.turns == 1
    assert np.isfinite(found.loss).all()


def test_every_judged_row_is_in_the_confusion_matrix(two, several, rng):
    for story in (two, several):
        machine = Machine(story.model)
        judged = judge(story, machine, Clock(5.0), rng)
        section = errors_section(judged, machine, rng)
        counts = [int(n) for n in re.findall(r'class="cell on-\w+"[^>]*>(\d+)<', section.blocks[0].figures[0].svg)]
        k = len(machine.classes)
        matrix = np.array(counts).reshape(k, k)
        truth, said = story.test[1], story.model.predict(story.test[0])
        expected = [[np.sum((truth == a) & (said == b)) for b in machine.classes] for a in machine.classes]
        assert np.array_equal(matrix, expected)
        assert f"{len(truth) - np.trace(matrix)} error" in section.lead


def test_a_class_of_the_test_rows_that_was_never_seen_is_said(several, rng):
    machine = Machine(several.model)
    judged = judge(several, machine, Clock(5.0), rng)
    judged.truth = np.where(np.arange(len(judged.truth)) < 2, 99, judged.truth)
    assert "2 rows have a class that the model has never seen" in errors_section(judged, machine, rng).lead


def test_held_out_rows_have_the_probabilities_of_their_margins(two, several, rng):
    for story in (two, several):
        machine = Machine(story.model)
        story = type(story)(**{**story.__dict__, "test": None})
        judged = judge(story, machine, Clock(1.0), rng)
        assert np.allclose(judged.probabilities.sum(axis=1), 1.0)
        assert not judged.tested
        assert np.mean(judged.predicted == judged.truth) == pytest.approx(story.model.best_score_, abs=0.06)


def test_quantiles_are_judged_at_all_levels(numbers, rng):
    judged = judge(numbers, Machine(numbers.model), Clock(5.0), rng)
    assert judged.quantiles.shape == (len(numbers.test[1]), len(LEVELS))
    assert np.allclose(judged.quantiles, numbers.model.predict_quantiles(numbers.test[0], LEVELS))


@pytest.mark.parametrize(("hits", "of"), [(0, 10), (3, 17), (17, 17), (250, 1000)])
def test_intervals_are_those_of_the_exact_test(hits, of):
    assert np.allclose(interval(hits, of), binomtest(hits, of).proportion_ci(method="exact"))


def test_the_learning_curve_ends_with_the_model_itself(story, rng):
    machine = Machine(story.model)
    train, judges = machine.encode(story.train[0]), (machine.encode(story.test[0]), story.test[1])
    curve = grow(machine, train, story.train[1], judges, Clock(5.0), rng, whole=machine)
    assert curve.sizes == sorted(curve.sizes)
    assert curve.sizes[-1] == len(train)
    assert curve.unseen[-1] == [pytest.approx(story.model.score(*story.test))]
    assert np.mean(curve.unseen[-1]) > np.mean(curve.unseen[0]) - 0.05


def test_without_time_the_curve_is_its_first_size_and_the_whole(two, rng):
    machine = Machine(two.model)
    train, judges = machine.encode(two.train[0]), (machine.encode(two.test[0]), two.test[1])
    curve = grow(machine, train, two.train[1], judges, Clock(0.0), rng, whole=machine)
    assert len(curve.sizes) == 2
    assert curve.stopped


def test_the_dependence_of_a_linear_function_is_straight(rng):
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80), "c": rng.choice(["u", "v", "w"], 80)})
    y = 3 * frame["a"].to_numpy() - frame["b"].to_numpy() + (frame["c"] == "u")
    model = AutoRegressor(cv=2, kernels=["Linear()"]).fit(frame, y)
    machine, columns = Machine(model), {c.name: c for c in model.encoder_.treatment_}
    found = depend(machine, frame, columns["a"], 30, rng)
    slope = np.diff(found.means[:, 0]) / np.diff(found.values)
    assert np.allclose(slope, slope[0], rtol=1e-6)
    assert slope[0] == pytest.approx(3.0, rel=0.05)
    names = depend(machine, frame, columns["c"], 30, rng)
    assert set(names.values) == {"u", "v", "w"}
    assert names.values[int(names.means[:, 0].argmax())] == "u"


def test_levels_of_an_ordered_category_are_drawn_in_their_order(rng):
    levels = ["small", "large", "huge", "never"]
    sizes = pd.Categorical(rng.choice(levels[:3], 80), levels, ordered=True)
    frame = pd.DataFrame({"a": rng.normal(size=80), "size": sizes})
    model = AutoRegressor(cv=2, kernels=["Linear()"]).fit(frame, 2.0 * sizes.codes + frame["a"].to_numpy())
    columns = {c.name: c for c in model.encoder_.treatment_}
    found = depend(Machine(model), frame, columns["size"], 30, rng)
    assert found.values == levels[:3]
    assert np.allclose(np.diff(found.means[:, 0]), 2.0, rtol=0.05)
    drawn = dependence_figures(Machine(model), frame, [columns["size"]], Clock(1.0), 1e-4, rng)[0].svg
    assert drawn.index(">small<") < drawn.index(">large<") < drawn.index(">huge<")


def test_averages_are_those_of_tables_with_a_column_set(story):
    machine, frame = Machine(story.model), story.train[0].iloc[:20]
    found = averaged(machine, frame, {"second": [40.0, 60.0]})
    for value, mean in zip([40.0, 60.0], found, strict=True):
        assert np.allclose(mean, machine.values(machine.encode(frame.assign(second=value))).mean(axis=0))


def test_a_plane_needs_two_columns_of_numbers(two, rng):
    machine, columns = Machine(two.model), {str(c.name): c for c in two.treatment}
    frame, y = two.train
    assert columns_plane(machine, frame, y, [columns["second"], columns["kind & sort"]], Clock(1.0), 1e-4, rng) is None
    plane = columns_plane(machine, frame, y, [columns["second"], columns[EVIL]], Clock(1.0), 1e-4, rng)
    assert plane.names == ("second", EVIL)
    svg = plane_figure(machine, plane, "Title").svg
    assert ElementTree.fromstring(svg).find("title").text == "Title"
    assert "<script" not in svg


def test_the_boundary_is_drawn_where_the_classes_are_even(two, several, rng):
    for story in (two, several):
        machine = Machine(story.model)
        Z = machine.encode(story.train[0])
        plane = directions_plane(machine, Z, story.train[1], Clock(2.0), 1e-5, rng)
        assert np.allclose(plane.values.sum(axis=-1), 1.0)
        assert np.corrcoef(plane.points[:, 0], machine.values(Z)[:, -1])[0, 1] > 0.6
        assert "<script>" in plane.names[0]
        svg = plane_figure(machine, plane, "Title").svg
        assert ('class="boundary"' in svg) == (story is two)
    assert directions_plane(machine, Z[:, :1], story.train[1], Clock(1.0), 1e-5, rng) is None


def test_directions_of_a_linear_function_are_its_gradient_and_one_across(rng):
    class Even:
        classes = np.array(["a", "b"])

        def values(self, Z):
            p = 1 / (1 + np.exp(-0.3 * (2 * Z[:, 0] - Z[:, 2])))
            return np.column_stack([1 - p, p])

    S = rng.normal(size=(200, 4)) * [1, 5, 1, 1]
    first, second = leading(Even(), S, lambda rows: rows, 300, rng)
    assert np.allclose(first, np.array([2, 0, -1, 0]) / np.sqrt(5), atol=0.01)
    assert np.isclose(first @ second, 0.0)
    assert abs(second[1]) > 0.95  # the widest spread


def test_cells_that_were_not_tried_are_drawn_as_such(two):
    class Partial:
        def __init__(self, model, results):
            self.results_, self.scoring_, self.best_index_ = results, "accuracy", model.best_index_

    results = {name: np.array(column, copy=True) for name, column in two.model.results_.items()}
    cells, price = cells_of(results)
    assert price == "C"
    assert all(cell.tried for cell in cells)
    drawn = "".join(f.svg for f in search_section(Partial(two.model, results)).blocks[-1].figures[:-1])
    assert drawn.count('class="untried"') == 0
    assert drawn.count('class="ring"') == 1
    gone = [i for i in range(len(cells)) if i % 5 == 0 and i != two.model.best_index_]
    results["mean_test_score"][gone] = np.nan
    results["folds"][gone] = 0
    section = search_section(Partial(two.model, results))
    drawn = "".join(f.svg for f in section.blocks[-1].figures[:-1])
    assert drawn.count('class="untried"') == len(gone)
    assert f"{len(gone)} were not reached" in section.lead


def test_families_that_saw_fewer_rows_are_told_from_the_others(two):
    results = {name: np.array(column, copy=True) for name, column in two.model.results_.items()}
    chosen = results["family"][two.model.best_index_]
    results["rows"] = np.where(results["family"] == chosen, 200, 50)

    class Twice:
        results_, scoring_, best_index_ = results, "accuracy", two.model.best_index_

    figure = search_section(Twice()).blocks[0].figures[0]
    assert "left after a first look at 50 rows; the others saw 200" in figure.note
    assert figure.svg.count("hollow") == 2  # the whisker and the dot of the other family


def test_margins_of_support_vectors_are_those_of_the_machine(two):
    model = two.model.estimator_
    Z = two.model.encoder_.transform(two.train[0])
    some = np.arange(len(model.support_))
    codes = np.searchsorted(two.model.classes_, two.train[1][model.support_])
    expected = model.margins(Z, two.model.learned_target(two.train[1]))["margin"].to_numpy()[model.support_]
    assert np.allclose(_margins(model, codes, some), expected, atol=1e-5)


def test_rows_that_pull_a_ridge_have_the_residuals_of_fits_without_them(numbers, rng):
    machine = Machine(numbers.model)
    frame, y = numbers.train
    section = influence_section(machine, frame, y, [EVIL, "second"], rng)
    table = section.blocks[1]
    row = table.rows[0]
    at = int(row[0])
    Z, target = machine.encode(frame), machine.learnt(y)
    others = np.arange(len(y)) != at
    part = machine.refitted(Z[others], y[others], 60.0)
    left_out = target[at] - part.model.estimator_.predict(Z[[at]])[0]
    residual = target[at] - numbers.model.estimator_.predict(Z[[at]])[0]
    said = dict(zip(table.head, (str(cell).replace("−", "-").replace(",", "") for cell in row), strict=True))
    assert float(said["left out"]) == pytest.approx(left_out, rel=0.02)
    assert float(said["residual"]) == pytest.approx(residual, rel=0.02)


def test_the_proof_and_the_certificate_are_those_of_the_model(story):
    section = winner_section(Machine(story.model))
    tree = next(block for block in section.blocks if block.kind == "tree")
    assert tree.proof == story.model.kernel_.proof().to_dict()
    facts = next(block for block in section.blocks if block.kind == "facts")
    assert [name for name, _, _ in facts.rows][:5] == ["primal", "dual", "gap", "relative gap", "worst KKT residual"]
    assert repr(story.model.kernel_) in section.lead


def test_the_program_that_checks_the_certificate_does_so(story, capsys):
    program = next(block for block in winner_section(Machine(story.model)).blocks if block.kind == "code").text
    exec(program, {"model": story.model, "X": story.train[0], "y": story.train[1]})
    assert "converged" in capsys.readouterr().out


def test_columns_are_told_with_what_was_done_to_them(two, rng):
    table = next(block for block in data_section(two, rng).blocks if block.kind == "table")
    rows = {row[0]: row for row in table.rows}
    assert rows["same"][1] == "constant"
    assert rows["same"][4] == "0"
    assert rows["noise"][3] == "14%"
    assert not rows["second"][5].startswith("second:")


@pytest.mark.parametrize(
    ("values", "kind", "bars"),
    [
        (pd.Series([1.0, 2.0, np.nan, 4.0]), "number", 14),
        (pd.Series(["a", "b", "a", None]), "category", 2),
        (pd.Series([True, False, True]), "yes/no", 2),
        (pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01", None])), "date", 14),
        (pd.Series([np.nan, np.nan]), "constant", 0),
    ],
)
def test_small_pictures_of_columns(values, kind, bars):
    assert sketch(values, kind).count("<rect") == bars


def test_time_is_told_in_the_order_of_the_steps(two):
    figure = timings_section(two, 0.5).blocks[0].figures[0]
    told = figure.svg.replace(figure.title, "")
    places = [told.index(f"{name}: ") for name in ("read", "encode", "search", "refit", "report")]
    assert places == sorted(places)


# -- the metric -------------------------------------------------------------------------------------------


def test_the_metric_is_told_by_its_columns_and_its_directions(learned):
    section, model = metric_section(Machine(learned.model)), learned.model
    first = next(iter(model.column_importances_))
    assert f"compared mostly by {first}" in section.lead
    ((share, parts),) = model.directions(1)
    assert f"({percent(share)})" in section.lead
    assert max(parts, key=parts.get) in section.lead
    shares, directions = section.blocks[0].figures
    hints = {t.text for t in ElementTree.fromstring(shares.svg).iter("title")}
    assert {f"{name}: {percent(size)}" for name, size in model.column_importances_.items()} <= hints
    bars = list(ElementTree.fromstring(directions.svg).iter("rect"))
    entries = [float(re.sub("\u2212", "-", box.find("title").text.rsplit(": ")[-1])) for box in bars]
    assert {box.get("class") for box, entry in zip(bars, entries, strict=True) if entry > 0} == {"fill c0"}
    assert all(box.get("class") == "fill c1" for box, entry in zip(bars, entries, strict=True) if entry < 0)


def test_one_weight_for_each_column_has_no_directions():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 20)))
    model = AutoRegressor(cv=2, kernels=[Laplacian(5.0).transformed(np.r_[9.0, np.ones(19)])]).fit(frame, frame[0])
    section = metric_section(Machine(model))
    assert "mostly by 0 (8" in section.lead
    assert "Each column has a weight of its own." in section.lead
    (figure,) = section.blocks[0].figures
    assert "5 others" in figure.svg
    alike = AutoRegressor(cv=2, kernels=[Laplacian(5.0).transformed(np.ones(20))]).fit(frame, frame[0])
    assert "No few columns decide" in metric_section(Machine(alike)).lead
    assert metric_section(Machine(AutoRegressor(cv=2, kernels=[Laplacian(5.0)]).fit(frame, frame[0]))) is None


def test_a_direction_is_written_as_a_sum():
    assert written({"a": -0.5, "b": 0.25}) == "− 0.5 a + 0.25 b"
    assert written(dict.fromkeys("abcde", 0.44)) == "0.44 a + 0.44 b + 0.44 c + 0.44 d, and smaller parts of others"

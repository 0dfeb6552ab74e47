import inspect
import os
import re
import subprocess
import sys
from importlib.metadata import version

import matplotlib.image
import numpy as np
import pytest
from typer.testing import CliRunner

import mercer.kernels
from mercer import RBF, SVC, Matern, Polynomial, Sigmoid, plots, verdict
from mercer.cli.commands import app
from mercer.cli.kernels import RULES
from mercer.kernels import Kernel

SETTINGS = {"COLUMNS", "FORCE_COLOR", "NO_COLOR", "TERM", "PYTHONIOENCODING"}


def command(*arguments, cwd, **environment):
    """Run the command as a process whose output is no terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [sys.executable, "-m", "mercer.cli", *arguments],
        cwd=cwd,
        env={**kept, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


def words(text):
    """The text on one line, without the lines of trees and tables, so that wrapping does not matter."""
    return " ".join(re.sub(r"[─│├└]", " ", text).split())


def readable_when_piped(shown):
    return "\x1b" not in shown and max(map(len, shown.splitlines())) <= 80 and "…" not in shown


# -- the tour (one run: it takes seconds) -----------------------------------------------------------------


def test_tour(server, tmp_path):
    done = server.run("tour", "--quick", "--out", "pictures/here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert readable_when_piped(done.stdout)
    shows_a_proof_and_a_refusal(words(done.stdout))
    shows_verdicts(done.stdout)
    shows_pictures(done.stdout, tmp_path / "pictures" / "here")
    shows_machines(done.stdout)
    shows_the_thought_experiment(words(done.stdout))
    shows_times(done.stdout)


def shows_a_proof_and_a_refusal(shown):
    def steps(proof):
        yield f"{proof.claim} {proof.status} {proof.rule}: {proof.reason}"
        for part in proof.parts:
            yield from steps(part)

    told = list(steps(((RBF(1.0) + 0.5 * Polynomial(2)) * Matern(1.5, 2.0)).proof()))
    assert len(told) == 6
    for step in told:
        assert words(step) in shown
    with pytest.raises(TypeError) as refused:
        RBF(1.0) - RBF(2.0)
    assert words(f"TypeError: {refused.value}") in shown


def shows_verdicts(shown):
    found = verdict(Sigmoid(gamma=1.0), [[1.0], [2.0], [3.0]])
    assert words(str(found)) in words(shown)
    assert f"a'Ka = {found.quadratic_form:.4f} < 0" in shown
    for entry in np.abs(found.witness):
        assert f"{entry:.4f} ]" in shown
    assert "Positive semidefinite on these 220 points" in shown
    factor = re.search(r"R is (\d+) x 220, largest \|K - R'R\| / \|K\| is (\S+)", shown)
    assert float(factor[2]) < 1e-12


def shows_pictures(shown, folder):
    assert "Drawn in pictures/here:" in shown
    assert {path.stem for path in folder.iterdir()} == {*plots.LIFTS, "gram", "rings_svc", "xor_svc"}
    for path in folder.iterdir():
        assert f"\n{path.name} " in shown
        image = matplotlib.image.imread(path)
        assert min(image.shape[:2]) > 600
        assert image[..., :3].std() > 0.05


def shows_machines(shown):
    numbers = re.findall(r"^ +(primal|dual) objective +(\S+) +(\S+)$", shown, re.MULTILINE)
    assert [name for name, *_ in numbers] == ["primal", "dual"] * 3  # digits, rings, exclusive or
    for _, claimed, verified in numbers:
        assert float(claimed) == pytest.approx(float(verified), rel=1e-6)
    assert re.findall(r"^ +converged +(\w+) +(\w+)$", shown, re.MULTILINE) == [("yes", "yes")] * 3
    roles = re.findall(r"^ +\d+ +([\d.]+) +(\S+) +(\S+)  (outside|on the margin|inside) +\S+$", shown, re.MULTILINE)
    assert len(roles) == 12  # two of each role, for rings and for exclusive or
    for alpha, margin, slack, role in roles:
        assert (float(alpha) == 0) == (role == "outside")
        assert float(slack) == pytest.approx(max(0.0, 1.0 - float(margin)), abs=2e-4)
    widths = [float(width) for width in re.findall(r"model\.margin_width_ +([\d.]+)", shown)]
    X, y = plots.LIFTS["rings"].sample()
    hard = SVC(C=np.inf, kernel=RBF(1.0)).fit(X, y)
    assert len(widths) == 3
    assert widths[-1] == pytest.approx(hard.margin_width_, abs=1e-4)
    assert "Infeasible: the classes cannot be separated by a hard margin (C=inf)" in words(shown)


def shows_the_thought_experiment(shown):
    assert "314,457,495 monomials of degree 8" in shown
    assert "KernelRidge(alpha=0.1, kernel=Polynomial(degree=8, c1=0.0)).fit(X, y)" in shown
    gaps = [float(gap) for gap in re.findall(r"gap, relative (\S+) plan", shown)]
    assert len(gaps) == 2
    assert max(gaps) <= 1e-4


def shows_times(shown):
    rows = re.findall(r"RBF (?:matrix|K v) .* (float32|float64) +[\d.,]+ ms +[\d.,]+ ms +[\d.]+x +(\S+)", shown)
    assert [dtype for dtype, _ in rows] == ["float32", "float64"] * 2
    for dtype, difference in rows:
        assert float(difference) < (1e-4 if dtype == "float32" else 1e-12)


# -- the others -------------------------------------------------------------------------------------------


def test_version(server, tmp_path):
    done = server.run("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"mercer {version('mercer')}\n")
    assert mercer.__version__ == version("mercer")


def test_kernels_lists_the_catalogue_with_status(server, tmp_path):
    done = server.run("kernels", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert readable_when_piped(done.stdout)
    first, second = done.stdout.split("made from kernels")
    listed = dict(re.findall(r"^(\w+) .* (proven|unproven|refuted) *$", first, re.MULTILINE))
    assert listed["RBF"] == "proven"
    assert listed["FromFunction"] == listed["Precomputed"] == "unproven"
    assert listed["Sigmoid"] == "refuted"
    things = [thing for thing in vars(mercer.kernels).values() if inspect.isclass(thing) and issubclass(thing, Kernel)]
    composites = {type(sample) for sample in RULES.values()}
    assert set(listed) == {kind.__name__ for kind in things if not inspect.isabstract(kind) and kind not in composites}
    for written in RULES:
        assert f"\n{written} " in second


@pytest.mark.parametrize("name", ["fit", "predict", "score", "show", "verify", "check", "lab"])
def test_help_shows_what_to_type(name):
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0
    assert f"mercer {name} " in done.output.split("Examples:")[1]


def test_a_terminal_without_unicode_is_no_obstacle(tmp_path):
    done = command("kernels", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "Sigmoid" in done.stdout


def test_colours_where_they_are_wanted(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32mproven" in CliRunner().invoke(app, ["kernels"], color=True).output


@pytest.mark.parametrize("out", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path, monkeypatch, out):
    (tmp_path / "taken").write_text("a file")
    monkeypatch.chdir(tmp_path)
    for name in ("demo", "tour"):
        done = CliRunner().invoke(app, [name, "--quick", "--out", out])
        assert done.exit_code == 2
        assert "--out" in done.output
        assert "taken" in done.output


def test_an_unknown_command_is_an_error(server, tmp_path):
    done = server.run("demos", cwd=tmp_path)
    assert done.returncode == 2
    assert "demos" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_arguments_the_commands_are_listed():
    shown = CliRunner().invoke(app, []).output
    for name in ("fit", "predict", "score", "show", "verify", "check", "kernels", "demo", "tour"):
        assert f" {name} " in shown
    assert "--quick" not in CliRunner().invoke(app, ["demo", "--help"]).output


def test_importing_mercer_loads_no_terminal_and_no_plots():
    done = subprocess.run(
        [sys.executable, "-c", "import mercer, sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    # (Not rich: scikit-learn 1.9 loads it for its own progress bars where it is installed.)
    assert not {"typer", "matplotlib", "mercer.plots", "mercer.cli"} & set(done.stdout.split())

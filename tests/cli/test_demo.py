import re

import pandas as pd

import mercer as library


def test_demo_does_the_main_job(mercer, tmp_path):
    done = mercer("demo", "--quick", "--out", "here")
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    folder = tmp_path / "here"
    for typed in ("mercer fit", "mercer predict", "mercer show", "mercer verify"):
        assert f"$ {typed} here/" in shown
    assert "Holds on" in " ".join(shown.split())
    assert shown.strip().splitlines()[-1] == f"The report is {folder / 'tumours.html'}"
    assert "<html" in (folder / "tumours.html").read_text(encoding="utf-8")
    new = pd.read_csv(folder / "new.csv")
    predicted = pd.read_csv(folder / "predicted.csv")
    assert list(predicted["prediction"]) == list(library.load(folder / "tumours.mercer").predict(new))
    gaps = [float(gap) for gap in re.findall(r"gap, relative +(\S+)", shown)]
    assert len(gaps) == 2  # the lectures' two machines
    assert max(gaps) <= 1e-4
    assert library.io.facts(folder / "tumours.mercer")["scores"]["accuracy"]["value"] > 0.9

"""Tables whose names and labels are as hostile as a user's may be, and what is told of them."""

import numpy as np
import pandas as pd

from mercer.report import Story

EVIL = "<script>alert('x')</script>"
LABELS = np.array(["<b>no</b> & never", 'yes "indeed"'])


def table(n, seed=0):
    """Numbers (one with gaps), a category, a constant; the first two say most about the target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            EVIL: rng.normal(size=n),
            "second": rng.normal(size=n) * 10 + 50,
            "kind & sort": rng.choice(["a<b", "plain", "rare"], n, p=[0.5, 0.4, 0.1]),
            "noise": rng.exponential(size=n),
            "same": 1.0,
        }
    )
    frame.loc[::7, "noise"] = np.nan
    score = (
        1.5 * frame[EVIL] + 0.1 * (frame["second"] - 50) + (frame["kind & sort"] == "plain") + rng.normal(size=n) * 0.4
    )
    return frame, score.to_numpy()


def story_of(model, frame, y, **more):
    told = {
        "title": f"Title {EVIL}",
        "source": f"/data/{EVIL}.csv",
        "command": f"mercer fit 'a.csv' --target '</pre>{EVIL}'",
        "python": f"print('{EVIL}')",
        "notes": [f"3 rows of {EVIL} were dropped."],
        "scores": {},
    }
    return Story(model=model, train=(frame, y), treatment=model.encoder_.treatment_, **{**told, **more})

"""The page of `mercer lab` in headless Chromium: its size, and how long a frame takes that fits and draws.

A frame is what follows one move of a slider or of a point: kernel matrix, solver, certificate, values on the plane,
drawing. What the page promises: 150 kB; 16 ms at 300 points and 100 ms at 1,000.

    python benchmarks/lab.py
"""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path
from typing import Any

from _harness import Report

import mercer

PAGE = Path(mercer.__file__).parent / "lab" / "lab.html"
BYTES = 150_000
ROWS = [
    *((n, "hinge", "RBF(scale=S)", "points") for n in (100, 300, 1000)),
    (300, "hinge", "RBF(scale=S) + Linear()", "dual"),
    (300, "hinge", "Matern(nu=2.5, scale=S)", "gram"),
    (300, "logistic", "RBF(scale=S)", "lift"),
    (300, "squared", "RBF(scale=S)", "points"),
    (1000, "squared_hinge", "RBF(scale=S)", "points"),
]
FRAMES = 40  # timed for each row, after as many that warm the browser's compiler up

# Two noisy half circles of n points; then frames with another scale each, as of a slider that is dragged.
FRAMES_OF = """async ([n, loss, kernel, view, frames]) => {
  const random = ((seed) => () => (seed = (seed * 16807) % 2147483647) / 2147483647)(1);
  const points = Array.from({ length: n }, (_, i) => {
    const t = Math.PI * random(), s = i % 2 ? -1 : 1;
    const [x, y] = [s * (1.4 * Math.cos(t) - 0.7), s * (1.6 * Math.sin(t) - 0.4)];
    return { x: x + 0.5 * random(), y: y + 0.5 * random(), c: i % 2 };
  });
  const times = [];
  for (let i = 0; i < 2 * frames; ++i) {
    const scaled = kernel.replace("S", (0.5 + i / 80).toFixed(3));
    lab.store.set({ points, task: "classes", loss, C: 1, view, kernel: scaled }, true);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(Number(document.body.dataset.frame));
  }
  return times.slice(frames);
}"""


def timed(page: Any, n: int, loss: str, kernel: str, view: str) -> list[float]:
    """Return the milliseconds of each frame, ascending."""
    return sorted(page.evaluate(FRAMES_OF, [n, loss, kernel, view, FRAMES]))


def main() -> None:
    """Measure the size of the page, and the frames of some problems and views."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return print("skipped: playwright is not installed; pip install .[bench]")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None or not PAGE.exists():
        return print(f"skipped: there is no {'chromium' if chromium is None else 'built page; run make lab'}")
    report = Report("lab")
    size = PAGE.stat().st_size
    report.add("the page, one file", f"{size:,} bytes", "", "", f"< {BYTES:,} bytes", size < BYTES)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(PAGE.as_uri())
        page.wait_for_function("globalThis.lab !== undefined")
        for n, loss, kernel, view in ROWS:
            times = timed(page, n, loss, kernel, view)
            middle, bar = statistics.median(times), 100.0 if n > 300 else 16.0
            what = f"{n:,} points, {loss.replace('_', ' ')}, {kernel.replace('S', 's')}, view {view!r}"
            often = f"nine frames in ten within {times[int(0.9 * len(times))]:.1f} ms"
            report.add(what, f"{middle:.1f} ms", "", often, f"< {bar:.0f} ms", middle < bar)
        browser.close()
    report.notes = [
        "Medians of the time that a frame keeps the page busy, in headless Chromium without a graphics card."
    ]
    report.finish(save=True)


if __name__ == "__main__":
    main()

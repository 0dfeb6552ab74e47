"""The page of `mercer lab` in headless Chromium: its size, and how long a frame takes that fits and draws.

A frame is what follows one move of a slider or of a point: kernel matrix, solver, certificate, values on the plane,
drawing. What the page promises: 150 kB; 16 ms at 300 points and 100 ms at 1,000.

    python benchmarks/lab.py
"""

from __future__ import annotations

import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

import mercer

PAGE = Path(mercer.__file__).parent / "lab" / "lab.html"
BYTES = 150_000
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


def chromium() -> str:
    """Return where the system's Chromium is."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    sys.exit("There is no Chromium on this machine; apt-get install chromium.")


def timed(page: Any, n: int, loss: str, kernel: str, view: str) -> list[float]:
    """Return the milliseconds of each frame."""
    times: list[float] = page.evaluate(FRAMES_OF, [n, loss, kernel, view, FRAMES])
    return times


def main() -> None:
    """Print the size of the page, and a table of frames."""
    from playwright.sync_api import sync_playwright

    size = PAGE.stat().st_size
    print(f"{size:,} bytes, {size / BYTES:.2f} of what is promised\n")
    print(f"{'points':>6} {'loss':>14} {'kernel':>34} {'view':>9} {'median':>9} {'nine in ten':>12}")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(PAGE.as_uri())
        page.wait_for_function("globalThis.lab !== undefined")
        rows = [
            *((n, "hinge", "RBF(scale=S)", "points") for n in (100, 300, 1000)),
            (300, "hinge", "RBF(scale=S) + Linear()", "dual"),
            (300, "hinge", "Matern(nu=2.5, scale=S)", "gram"),
            (300, "logistic", "RBF(scale=S)", "lift"),
            (300, "squared", "RBF(scale=S)", "points"),
            (1000, "squared_hinge", "RBF(scale=S)", "points"),
        ]
        for n, loss, kernel, view in rows:
            times = sorted(timed(page, n, loss, kernel, view))
            tenth = times[int(0.9 * len(times))]
            print(f"{n:>6} {loss:>14} {kernel:>34} {view:>9} {statistics.median(times):>6.1f} ms {tenth:>9.1f} ms")
        browser.close()


if __name__ == "__main__":
    main()

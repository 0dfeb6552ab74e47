// The held-out error over scale and C, as a map that one can walk on.
import { type Kernel, replaced, text, walk } from "../kernels/kernel.ts";
import { resolved } from "../kernels/resolve.ts";
import { parse } from "../kernels/text.ts";
import type { Points } from "../numeric/points.ts";
import { Random } from "../numeric/random.ts";
import { css, digits, el, mix } from "../page/dom.ts";
import type { Lab, View } from "../page/lab.ts";
import { machines, type Model, pointsOf, valuesAt, vote } from "../page/model.ts";
import { lossOf } from "../numeric/losses.ts";
import type { State } from "../page/state.ts";

const FOLDS = 5;
const MOST = 200; // points, beyond which evenly many are left out
const SCALES = Array.from({ length: 13 }, (_, i) => Number((0.05 * 2 ** (i * 0.6)).toPrecision(2)));
const PRICES = Array.from({ length: 9 }, (_, i) => 10 ** (i - 3));
const LOOSE = { tol: 1e-3, steps: 20_000 }; // of a fit of which only the sign of f is asked
const SLICE = 12; // milliseconds of work between two frames

export class MapView implements View {
  private readonly canvas = el("canvas", {
    class: "map",
    tabindex: 0,
    "aria-label": "held-out error over scale and C; click, or walk with the arrow keys",
  });
  private readonly said = el("p", { class: "quiet" });
  private errors: number[] = [];
  private asked = ""; // what the map is of
  private timer = 0;

  constructor(
    host: HTMLElement,
    private readonly lab: Lab,
  ) {
    this.canvas.addEventListener("click", (e) => {
      const box = this.canvas.getBoundingClientRect();
      this.go(
        Math.floor(((e.clientX - box.left) / box.width) * SCALES.length),
        PRICES.length - 1 - Math.floor(((e.clientY - box.top) / box.height) * PRICES.length),
      );
    });
    this.canvas.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
      if (by === undefined) return;
      e.preventDefault();
      const [i, j] = this.here();
      this.go(i + by[0]!, j + by[1]!);
    });
    host.append(
      el(
        "p",
        { class: "quiet" },
        `The error on held-out points (${FOLDS} folds) for each scale and each C: the bluer, the better. Click a cell, or walk with the arrow keys: the fit follows.`,
      ),
      el(
        "div",
        { class: "axes" },
        el("span", { class: "up" }, ends(PRICES, "C")),
        this.canvas,
        el("span", { class: "across" }, ends(SCALES, "scale")),
      ),
      this.said,
    );
  }

  leave(): void {
    clearTimeout(this.timer);
    this.asked = "";
  }

  update(model: Model | undefined, settled: boolean): void {
    if (model === undefined) return;
    this.draw();
    const kernel = parse(model.state.kernel);
    const asked = JSON.stringify([model.state.points, model.state.loss, model.state.quantile, withScale(kernel, 1)]);
    if (!settled || asked === this.asked) return;
    this.asked = asked;
    this.errors = [];
    clearTimeout(this.timer);
    const work = this.cells(model.state, kernel);
    const some = (): void => {
      const end = performance.now() + SLICE;
      let done = false;
      while (!done && performance.now() < end) done = work.next().done === true;
      this.draw();
      if (!done) this.timer = window.setTimeout(some);
    };
    some();
  }

  /** Fit and judge one cell after the other: all prices of a scale share their matrices. */
  private *cells(state: State, kernel: Kernel): Generator<void> {
    const { core } = this.lab;
    const chosen = new Random(5).order(state.points.length).slice(0, MOST);
    const inside = FOLDS <= chosen.length ? FOLDS : 0;
    for (const [i, scale] of SCALES.entries()) {
      const totals = PRICES.map(() => 0);
      for (let fold = 0; fold < inside; ++fold) {
        const held = chosen.filter((_, k) => k % FOLDS === fold).map((row) => state.points[row]!);
        const own = { ...state, points: chosen.filter((_, k) => k % FOLDS !== fold).map((row) => state.points[row]!) };
        const [X, Z] = [pointsOf(own), pointsOf({ ...state, points: held })];
        for (const [j, C] of PRICES.entries()) {
          totals[j]! += judged(core, own, held, withScale(kernel, scale), C, X, Z);
          yield;
        }
      }
      PRICES.forEach((_, j) => (this.errors[j * SCALES.length + i] = totals[j]! / chosen.length));
    }
  }

  private draw(): void {
    const { canvas, lab } = this;
    const [across, up] = [SCALES.length, PRICES.length];
    const unit = 32;
    canvas.width = across * unit;
    canvas.height = up * unit;
    const g = canvas.getContext("2d")!;
    const known = this.errors.filter((v) => Number.isFinite(v));
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const [card, ink, accent] = ["card", "c0", "accent"].map((c) => lab.colour(c)) as [never, never, never];
    for (let j = 0; j < up; ++j)
      for (let i = 0; i < across; ++i) {
        const v = this.errors[j * across + i];
        g.fillStyle = css(v === undefined ? card : mix(ink, card, 0.95 * ((v - low) / (high - low || 1))));
        g.fillRect(i * unit, (up - 1 - j) * unit, unit - 1, unit - 1);
      }
    const [i, j] = this.here();
    g.strokeStyle = css(accent);
    g.lineWidth = 4;
    g.strokeRect(i * unit + 2, (up - 1 - j) * unit + 2, unit - 5, unit - 5);
    const best = this.errors.indexOf(low);
    const unitOf =
      lab.store.state.task === "classes"
        ? (v: number) => `${digits(100 * v, 3)} % wrong`
        : (v: number) => `mean loss ${digits(v, 3)}`;
    const here = this.errors[j * across + i];
    this.said.textContent =
      known.length === 0
        ? ""
        : `Here: ${here === undefined ? "…" : unitOf(here)}. Best of those so far: ${unitOf(low)} at scale ${SCALES[best % across]}, C ${digits(PRICES[Math.floor(best / across)]!)}.`;
  }

  /** The cell nearest to the state. */
  private here(): [number, number] {
    const { state } = this.lab.store;
    const scale = scaleOf(this.lab.model?.kernel ?? safe(state.kernel)) ?? 1;
    const near = (list: readonly number[], v: number): number =>
      list.reduce((best, x, i) => (Math.abs(Math.log(x / v)) < Math.abs(Math.log(list[best]! / v)) ? i : best), 0);
    return [near(SCALES, scale), near(PRICES, state.C)];
  }

  private go(i: number, j: number): void {
    const { store } = this.lab;
    const [scale, C] = [
      SCALES[Math.max(0, Math.min(SCALES.length - 1, i))]!,
      PRICES[Math.max(0, Math.min(PRICES.length - 1, j))]!,
    ];
    const kernel = safe(store.state.kernel);
    if (kernel) store.set({ C, kernel: text(withScale(kernel, scale)) });
  }
}

/** The ends of an axis, and between them what it is. */
function ends(values: readonly number[], title: string): HTMLElement {
  return el(
    "span",
    { class: "ends" },
    el("span", {}, digits(values[0]!)),
    el("span", {}, title),
    el("span", {}, digits(values.at(-1)!)),
  );
}

function safe(kernel: string): Kernel | undefined {
  try {
    return parse(kernel);
  } catch {
    return undefined;
  }
}

function scaleOf(kernel: Kernel | undefined): number | undefined {
  for (const [k] of kernel ? walk(kernel) : []) if (typeof k.given["scale"] === "number") return k.given["scale"];
  return undefined;
}

/** The kernel with this scale in all its parts that have one. */
function withScale(kernel: Kernel, scale: number): Kernel {
  let out = kernel;
  for (const [k, way] of walk(kernel))
    if ("scale" in k.given) out = replaced(out, way, (old) => ({ ...old, given: { ...old.given, scale } }));
  return out;
}

/** The number of held-out points on the wrong side, or the sum of their losses; infinite where the kernel has no values. */
function judged(
  core: Lab["core"],
  own: State,
  held: State["points"],
  kernel: Kernel,
  C: number,
  X: Points,
  Z: Points,
): number {
  try {
    const k = resolved(kernel, X);
    const K = core.matrix(k, X);
    const loss = lossOf(own.loss, own.quantile);
    const fitted = machines(core, { ...own, C }, k, X, K, LOOSE);
    K.release();
    if (fitted.length === 0) return held.length;
    const model = { state: own, kernel: k, X, machines: fitted };
    const f = valuesAt(core, model, Z);
    return held.reduce(
      (sum, p, i) =>
        sum + (own.task === "values" ? loss.value(p.y, f[i]!) : Number(vote(model, f, i * fitted.length) !== p.c)),
      0,
    );
  } catch {
    return Infinity;
  }
}

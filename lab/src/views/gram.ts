// The Gram matrix as a picture, and its eigenvalues.
import { css, digits, el, mix, type Rgb } from "../page/dom.ts";
import type { Lab, View } from "../page/lab.ts";
import type { Model } from "../page/model.ts";
import { eigenvalues, witness } from "../numeric/spectrum.ts";
import { Chart } from "./chart.ts";

const MOST = 160; // points of which eigenvalues are computed: 20 ms or so
const MOVING = 400; // points up to which the picture follows what moves
const SHADES = 255; // of each sign
const FLOOR = 1e-12; // of the largest eigenvalue: the chart ends there

export class GramView implements View {
  private readonly canvas = el("canvas", {
    class: "square",
    "aria-label": "the Gram matrix: point at a cell to see its two points",
  });
  private readonly said = el("p", { class: "quiet" });
  private readonly chart = el("div");
  private order: number[] = [];
  private range: readonly [number, number] = [0, 1];

  constructor(
    host: HTMLElement,
    private readonly lab: Lab,
  ) {
    this.canvas.addEventListener("pointermove", (e) => this.over(e));
    this.canvas.addEventListener("pointerleave", () => {
      lab.mark([]);
      this.caption(lab.model);
    });
    host.append(
      el(
        "p",
        { class: "quiet" },
        "k(xᵢ, xⱼ) for all pairs, the points in the order of their classes. Point at a cell: its two points light up on the plane.",
      ),
      this.canvas,
      this.said,
      this.chart,
    );
  }

  update(model: Model | undefined, settled: boolean): void {
    if (model === undefined) return;
    const { points, task } = model.state;
    this.order = points
      .map((_, i) => i)
      .sort((a, b) => (task === "classes" ? points[a]!.c - points[b]!.c : points[a]!.x - points[b]!.x) || a - b);
    if (!settled && model.X.n > MOVING) return;
    this.range = extremes(model.K.view);
    this.paint(model);
    this.caption(model);
    if (settled) this.spectrum(model);
  }

  private paint(model: Model): void {
    const n = this.order.length;
    if (n === 0) return;
    const K = model.K.view;
    const [low, high] = this.range;
    const top = Math.max(-low, high) || 1;
    this.canvas.width = this.canvas.height = n;
    const g = this.canvas.getContext("2d")!;
    const image = g.createImageData(n, n);
    const pixels = new Uint32Array(image.data.buffer);
    const [zero, up, down] = ["card", "c0", "c1"].map((c) => this.lab.colour(c)) as [Rgb, Rgb, Rgb];
    const shades = Array.from({ length: 2 * SHADES + 1 }, (_, k) => {
      const [r, green, b] = mix(zero, k < SHADES ? down : up, Math.abs(k - SHADES) / SHADES);
      return (255 << 24) | (b << 16) | (green << 8) | r;
    });
    for (let i = 0, to = 0; i < n; ++i) {
      const row = this.order[i]! * n;
      for (let j = 0; j < n; ++j, ++to)
        pixels[to] = shades[SHADES + Math.round((SHADES * K[row + this.order[j]!]!) / top)]!;
    }
    g.putImageData(image, 0, 0);
  }

  private over(e: PointerEvent): void {
    const { model } = this.lab;
    const n = this.order.length;
    if (model === undefined || n === 0) return;
    const box = this.canvas.getBoundingClientRect();
    const [i, j] = [(e.clientY - box.top) / box.height, (e.clientX - box.left) / box.width].map(
      (t) => this.order[Math.max(0, Math.min(n - 1, Math.floor(t * n)))]!,
    ) as [number, number];
    this.lab.mark([i, j]);
    this.said.textContent = `k(x${i}, x${j}) = ${digits(model.K.view[i * n + j]!, 5)}`;
  }

  private caption(model: Model | undefined): void {
    if (model === undefined) return;
    const [low, high] = this.range;
    this.said.replaceChildren(
      `${model.X.n} × ${model.X.n} values from ${digits(low, 3)} to ${digits(high, 3)}; `,
      el("span", { style: `color:${css(this.lab.colour("c0"))}` }, "positive"),
      ", ",
      el("span", { style: `color:${css(this.lab.colour("c1"))}` }, "negative"),
    );
  }

  private spectrum(model: Model): void {
    const n = Math.min(MOST, model.X.n);
    if (n === 0) return;
    const values = eigenvalues(leading(model, n), n);
    const top = Math.max(values[0]!, 1e-300);
    const chart = new Chart(
      { low: 0, high: n, title: "eigenvalue, by size" },
      { low: top * FLOOR, high: top, log: true },
      "the spectrum",
    );
    values.forEach((v, i) => chart.bar(i + 0.1, i + 0.9, top * FLOOR, Math.abs(v), v > 0 ? "class0" : "class1"));
    const rank = values.filter((v) => v > top * FLOOR).length;
    const low = values.at(-1)!;
    const of = n < model.X.n ? ` of the first ${n} points` : "";
    const sign =
      low < -1e-10 * top
        ? `The smallest is ${digits(low, 3)}: no Gram matrix of a kernel has a negative one.`
        : `None is negative beyond rounding: the smallest is ${digits(low, 2)}.`;
    this.chart.replaceChildren(
      el("p", { class: "quiet" }, `Eigenvalues${of}: ${rank} of ${n} above rounding. ${sign}`),
      chart.root,
    );
  }
}

function extremes(values: Float64Array): readonly [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const v of values) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return [low, high];
}

/** The matrix of the first n points. */
function leading(model: Model, n: number): Float64Array {
  const K = model.K.view;
  const out = new Float64Array(n * n);
  for (let i = 0; i < n; ++i) out.set(K.subarray(i * model.X.n, i * model.X.n + n), i * n);
  return out;
}

/** What the points say of a kernel without a proof: a witness against it, or that they found none. */
export function verdict(model: Model): string {
  const n = Math.min(60, model.X.n);
  const K = leading(model, n);
  const values = eigenvalues(K, n);
  const shown = values.at(-1)! < -1e-10 * values[0]! ? witness(K, n, values[0]!) : undefined;
  if (shown === undefined) return "in general, though these points show no negative eigenvalue.";
  const largest = [...shown.a.keys()].sort((i, j) => Math.abs(shown.a[j]!) - Math.abs(shown.a[i]!)).slice(0, 2);
  return `on these points: a′Ka = ${digits(shown.value, 3)} < 0 for a witness a, largest at points ${largest.join(" and ")}.`;
}

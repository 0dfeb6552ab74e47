// Random features: the same machine on D random cosines in place of the kernel, beside the exact answer.
import { Random } from "../numeric/random.ts";
import { fit } from "../numeric/fit.ts";
import type { Kernel } from "../kernels/kernel.ts";
import { digits, el, slider } from "../page/dom.ts";
import type { Lab, View } from "../page/lab.ts";
import { type Model, problems } from "../page/model.ts";

const MOST = 500; // features
const MOVING = 5e6; // products of features up to which the answer follows what moves
const LAWS = "RBF, Laplacian, Matern and Cauchy";

/** Draw a frequency from the law whose characteristic function is the kernel (Bochner), for a number as its scale. */
function frequency(kernel: Kernel, width: number, random: Random): number[] | undefined {
  const scale = kernel.given["scale"];
  if (typeof scale !== "number") return undefined;
  const normal = (): number[] => Array.from({ length: width }, () => random.normal() / scale);
  const exponential = (): number => -Math.log(1 - random.uniform());
  switch (kernel.name) {
    case "RBF":
      return normal();
    case "Laplacian": // independent Cauchy numbers
      return normal().map((w) => w / Math.abs(random.normal() || 1e-12));
    case "Matern": {
      // Student's law: a normal vector over the root of a chi-squared number of 2 nu degrees over 2 nu
      const degrees = 2 * (kernel.given["nu"] as number);
      const chi = Array.from({ length: degrees }, () => random.normal() ** 2).reduce((a, b) => a + b, 0);
      return normal().map((w) => w * Math.sqrt(degrees / chi));
    }
    case "Cauchy": // a mixture of normal laws: the precision is exponential
      return ((t) => normal().map((w) => w * Math.sqrt(2 * t)))(exponential());
  }
  return undefined;
}

export class FeaturesView implements View {
  private count = 50;
  private readonly said = el("p");

  constructor(
    host: HTMLElement,
    private readonly lab: Lab,
  ) {
    host.append(
      el(
        "p",
        { class: "quiet" },
        "Bochner: k(x − z) is the mean of cos w·(x − z) over a law of frequencies. D of them, drawn once, give features whose inner product is near k. The violet line is the answer of the same machine on them; the other one is exact.",
      ),
      slider(
        "D",
        "D, the number of random features",
        { low: 1, high: MOST, log: true, whole: true },
        this.count,
        (value) => {
          this.count = value;
          this.update(lab.model, true);
          lab.redraw();
        },
      ),
      this.said,
    );
  }

  leave(): void {
    this.lab.beside = undefined;
  }

  update(model: Model | undefined, settled: boolean): void {
    const { lab } = this;
    lab.beside = undefined;
    if (!settled && model !== undefined && model.X.n ** 2 * this.count > MOVING) return;
    if (model === undefined || model.machines.length !== 1) {
      this.said.textContent = "For one machine: two classes, or values.";
      return;
    }
    const random = new Random(11);
    const width = model.X.width;
    const W: number[][] = [];
    const phases: number[] = [];
    for (let j = 0; j < this.count; ++j) {
      const w = frequency(model.kernel, width, random);
      if (w === undefined) {
        this.said.textContent = `The page knows the laws of frequencies of ${LAWS} with one scale; the library knows those of all stationary kernels, of their sums and of their products.`;
        return;
      }
      W.push(w);
      phases.push(2 * Math.PI * random.uniform());
    }
    this.fit(model, this.map(W, phases, width));
  }

  private map(W: readonly number[][], phases: readonly number[], width: number) {
    const D = this.count;
    return (points: Float64Array): Float64Array => {
      const n = points.length / width;
      const out = new Float64Array(n * D);
      for (let i = 0; i < n; ++i)
        for (let j = 0; j < D; ++j) {
          let angle = phases[j]!;
          for (let k = 0; k < width; ++k) angle += W[j]![k]! * points[i * width + k]!;
          out[i * D + j] = Math.sqrt(2 / D) * Math.cos(angle);
        }
      return out;
    };
  }

  private fit(model: Model, features: (points: Float64Array) => Float64Array): void {
    const { core } = this.lab;
    const [n, D] = [model.X.n, this.count];
    const own = features(model.X.data);
    const near = core.hold(n * n);
    const view = near.view;
    for (let i = 0; i < n; ++i)
      for (let j = 0; j <= i; ++j) {
        let sum = 0;
        for (let k = 0; k < D; ++k) sum += own[i * D + k]! * own[j * D + k]!;
        view[i * n + j] = view[j * n + i] = sum;
      }
    const exact = model.K.view;
    const error = Math.sqrt(
      view.reduce((sum, v, i) => sum + (v - exact[i]!) ** 2, 0) / exact.reduce((sum, v) => sum + v * v, 0),
    );
    const [first] = problems(core, model.state, model.kernel, model.X, model.K);
    const done = fit(core, { ...first!.problem, K: near, tol: 1e-4 });
    near.release();
    const w = new Float64Array(D);
    done.alpha.forEach((a, i) => a !== 0 && w.forEach((_, k) => (w[k]! += a * own[i * D + k]!)));
    this.lab.beside = (nodes) => {
      const at = features(nodes);
      return Float64Array.from({ length: at.length / D }, (_, i) =>
        w.reduce((sum, v, k) => sum + v * at[i * D + k]!, done.offset),
      );
    };
    const values = model.machines[0]!.fit.values;
    const apart = done.values.reduce((most, v, i) => Math.max(most, Math.abs(v - values[i]!)), 0);
    this.said.textContent = `Relative error of the Gram matrix: ${digits(error, 3)} (about 1 / √D = ${digits(1 / Math.sqrt(D), 3)}). f differs by at most ${digits(apart, 3)} at the points.`;
  }
}

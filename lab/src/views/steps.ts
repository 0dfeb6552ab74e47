// Perceptron and Pegasos, step by step: the plane shows where they are, in place of the fit.
import { Points } from "../numeric/points.ts";
import { Random } from "../numeric/random.ts";
import { choice, digits, el } from "../page/dom.ts";
import type { Lab, View } from "../page/lab.ts";
import type { Model } from "../page/model.ts";
import { Chart } from "./chart.ts";

type Algorithm = "perceptron" | "pegasos";

const SAID: Record<Algorithm, string> = {
  perceptron:
    "The perceptron looks at one point after the other, and adds a mistake to f: α ← α + y. Where a surface separates the classes it makes finitely many; elsewhere it goes on for ever.",
  pegasos:
    "Pegasos takes a step down a subgradient of λ/2 |f|² + mean hinge at one point drawn at random, of length 1 / (λ t), with λ = 1 / (C n). It comes near the certified optimum, without a bound of how near it is.",
};

export class StepsView implements View {
  private algorithm: Algorithm = "perceptron";
  private counts: Float64Array = new Float64Array(); // of updates at each point
  private y: Float64Array = new Float64Array();
  private t = 0;
  private mistakes = 0;
  private clean = 0; // looks since the last mistake
  private asked = "";
  private random = new Random(3);
  private timer = 0;
  private history: [number, number][] = [];
  private readonly said = el("p");
  private readonly about = el("p", { class: "quiet" });
  private readonly chart = el("div");
  private readonly running = el("button", { type: "button", click: () => this.toggle() }, "run");

  constructor(
    host: HTMLElement,
    private readonly lab: Lab,
  ) {
    host.append(
      choice<Algorithm>(
        "algorithm",
        [
          ["perceptron", "perceptron"],
          ["pegasos", "Pegasos"],
        ],
        this.algorithm,
        (taken) => {
          this.algorithm = taken;
          this.reset();
        },
      ),
      this.about,
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", click: () => this.go(1) }, "one step"),
        el("button", { type: "button", click: () => this.go(this.y.length) }, "one pass"),
        this.running,
        el("button", { type: "button", click: () => this.reset() }, "from the start"),
      ),
      this.said,
      this.chart,
    );
  }

  leave(): void {
    this.stop();
    this.lab.instead = undefined;
    this.asked = "";
  }

  update(model: Model | undefined): void {
    const machine = model?.machines[0];
    if (model === undefined || machine?.pair === undefined || model.machines.length > 1) {
      this.lab.instead = undefined;
      this.asked = "";
      this.said.textContent = "For two classes.";
      return;
    }
    const asked = JSON.stringify([model.state.points, model.state.kernel, model.state.C]);
    if (asked !== this.asked) {
      this.asked = asked;
      this.reset();
    }
  }

  private reset(): void {
    this.stop();
    const y = this.lab.model?.machines[0]?.y;
    this.about.textContent = SAID[this.algorithm];
    if (y === undefined) return;
    this.y = y;
    this.counts = new Float64Array(y.length);
    this.t = this.mistakes = this.clean = 0;
    this.random = new Random(3);
    this.history = [];
    this.show();
  }

  private toggle(): void {
    if (this.timer) return this.stop();
    this.running.textContent = "pause";
    const some = (): void => {
      this.go(Math.max(1, Math.round(this.y.length / 20)));
      if (this.timer) this.timer = window.setTimeout(some, 40);
    };
    this.timer = window.setTimeout(some, 40);
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    this.running.textContent = "run";
  }

  /** The factor between counts and coefficients. */
  private get factor(): number {
    const C = this.lab.store.state.C;
    return this.algorithm === "perceptron" ? 1 : (C * this.y.length) / Math.max(1, this.t);
  }

  private value(row: number): number {
    const K = this.lab.model!.K.view;
    const n = this.y.length;
    let sum = 0;
    for (let j = 0; j < n; ++j) if (this.counts[j] !== 0) sum += this.counts[j]! * this.y[j]! * (K[row * n + j]! + 1); // + 1: an offset that is penalised, too
    return sum * this.factor;
  }

  private go(steps: number): void {
    if (this.lab.model?.machines[0]?.pair === undefined) return;
    let row = 0;
    for (let s = 0; s < steps; ++s) {
      row =
        this.algorithm === "perceptron" ? this.t % this.y.length : Math.floor(this.random.uniform() * this.y.length);
      const margin = this.y[row]! * this.value(row);
      const moves = this.algorithm === "perceptron" ? margin <= 0 : margin < 1;
      this.t += 1;
      this.clean = moves ? 0 : this.clean + 1;
      if (moves) {
        this.counts[row]! += 1;
        this.mistakes += 1;
      }
      if (this.algorithm === "perceptron" && this.clean >= this.y.length) {
        this.stop();
        break;
      }
    }
    this.lab.mark(steps === 1 ? [row] : []);
    this.note();
    this.show();
  }

  private note(): void {
    const f = this.y.map((_, i) => this.value(i));
    if (this.algorithm === "perceptron")
      this.history.push([this.t, f.reduce((sum, v, i) => sum + Number(v * this.y[i]! <= 0), 0)]);
    else {
      const { C } = this.lab.store.state;
      const square = f.reduce((sum, v, i) => sum + v * this.counts[i]! * this.y[i]! * this.factor, 0);
      this.history.push([this.t, square / 2 + C * f.reduce((sum, v, i) => sum + Math.max(0, 1 - v * this.y[i]!), 0)]);
    }
    if (this.history.length > 300) this.history = this.history.filter((_, i) => i % 2 === 1 || i > 200);
  }

  private show(): void {
    const { lab } = this;
    const model = lab.model;
    if (model === undefined) return;
    const [counts, y, factor] = [this.counts.slice(), this.y, this.factor];
    lab.instead = (nodes, width) => {
      const rows = [...counts.keys()].filter((i) => counts[i] !== 0);
      const at = new Points(nodes, width);
      if (rows.length === 0) return new Float64Array(at.n);
      const v = Float64Array.from(rows, (i) => counts[i]! * y[i]! * factor);
      const offset = v.reduce((a, b) => a + b, 0);
      return lab.core.picture(model.kernel, at, model.X.take(rows), v).map((f) => f + offset);
    };
    lab.redraw();
    const done = this.algorithm === "perceptron" && this.clean >= this.y.length && this.t > 0;
    const what = this.algorithm === "perceptron" ? "mistakes" : "updates";
    const best = this.history.length > 0 ? this.history.at(-1)![1] : undefined;
    const reached =
      this.algorithm === "pegasos" && best !== undefined
        ? ` Objective ${digits(best, 5)}, the offset counted in the norm.`
        : "";
    this.said.textContent = `${this.t} steps, ${this.mistakes} ${what}.${done ? " A whole pass without a mistake: it has stopped." : ""}${reached}`;
    if (this.history.length < 2) return this.chart.replaceChildren();
    const top = Math.max(...this.history.map(([, v]) => v), 1);
    const chart = new Chart(
      { low: 0, high: this.t, title: "steps" },
      { low: 0, high: top, title: this.algorithm === "perceptron" ? "points on the wrong side" : "objective" },
      "the course of the algorithm",
    );
    this.chart.replaceChildren(chart.line(this.history, "line class0").root);
  }
}

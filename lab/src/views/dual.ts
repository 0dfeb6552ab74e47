// The dual: alphas as bars, and how the objectives close in on the optimum.
import { digits, el } from "../page/dom.ts";
import type { Lab, View } from "../page/lab.ts";
import { type Model, problems } from "../page/model.ts";
import { course } from "../numeric/fit.ts";
import { Chart } from "./chart.ts";

const MOST = 300; // bars, and points of which the course is followed

export class DualView implements View {
  private readonly bars = el("div");
  private readonly course = el("div");

  constructor(
    host: HTMLElement,
    private readonly lab: Lab,
  ) {
    host.append(
      el("p", { class: "quiet" }, "f = Σ αᵢ k(xᵢ, ·) + b: what each point contributes, signed. Point at a bar."),
      this.bars,
      el(
        "p",
        { class: "quiet" },
        "Weak duality as a receipt: every dual value is below every primal one, and the optimum is between them.",
      ),
      this.course,
    );
  }

  update(model: Model | undefined, settled: boolean): void {
    const machine = model?.machines[0];
    if (model === undefined || machine === undefined) return this.bars.replaceChildren();
    const { alpha } = machine.fit;
    const n = Math.min(MOST, alpha.length);
    const most = alpha.reduce((top, a) => Math.max(top, Math.abs(a)), 1e-12);
    const chart = new Chart(
      { low: 0, high: n, title: `point${model.machines.length > 1 ? " of the first pair" : ""}` },
      { low: -most, high: most, title: "α" },
      "the coefficients of the points",
    );
    for (let i = 0; i < n; ++i) {
      const row = machine.rows[i]!;
      const c = model.state.task === "classes" ? model.state.points[row]!.c : 0;
      chart.bar(i + 0.1, i + 0.9, 0, alpha[i]!, `class${c}`, (inside) => this.lab.mark(inside ? [row] : []));
    }
    this.bars.replaceChildren(chart.root);
    if (settled) this.follow(model);
  }

  private follow(model: Model): void {
    const { core } = this.lab;
    if (model.proof.status !== "proven")
      return this.course.replaceChildren(
        el("p", { class: "quiet" }, "Without positivity the dual is not concave: there is no such bound."),
      );
    if (model.X.n > MOST)
      return this.course.replaceChildren(el("p", { class: "quiet" }, `The course is drawn for up to ${MOST} points.`));
    const [first] = problems(core, model.state, model.kernel, model.X, model.K);
    const rows = course(core, first!.problem).filter((row) => Number.isFinite(row.primal) && Number.isFinite(row.dual));
    if (rows.length < 2)
      return this.course.replaceChildren(
        el(
          "p",
          { class: "quiet" },
          "One step is all it takes: the loss is quadratic, and its optimum is the solution of a linear system.",
        ),
      );
    const values = rows.flatMap((row) => [row.primal, row.dual]);
    const last = rows.at(-1)!;
    const size = Math.max(1e-12, Math.abs(last.primal));
    // The dual starts at or near 0; a primal start far above would hide the rest.
    const [low, high] = [
      Math.max(Math.min(...values), last.dual - 1.2 * size),
      Math.min(Math.max(...values), last.primal + 1.6 * size),
    ];
    const smo = model.machines[0]!.fit.method === "SMO";
    const across = {
      low: Math.max(1, rows[0]!.steps),
      high: Math.max(2, last.steps),
      log: smo,
      title: `steps of ${smo ? "SMO" : "Newton's method"}`,
    };
    const chart = new Chart(across, { low, high }, "primal and dual objective by steps")
      .line(
        rows.map((row) => [row.steps, Math.min(row.primal, high * 1.02)]),
        "line class1",
      )
      .line(
        rows.map((row) => [row.steps, row.dual]),
        "line class0",
      );
    this.course.replaceChildren(
      chart.root,
      el(
        "p",
        { class: "legend" },
        el("span", { class: "key class1" }, `primal ${digits(last.primal, 5)}`),
        el("span", { class: "key class0" }, `dual ${digits(last.dual, 5)}`),
        `after ${last.steps} steps`,
      ),
    );
  }
}

// The table of points: complementary slackness, one row for each.
import { digits, el } from "../page/dom.ts";
import type { Lab, View } from "../page/lab.ts";
import type { Machine, Model } from "../page/model.ts";

const MOST = 400; // rows shown
const FREE = 1e-8; // of C: nearer to a bound than this, a coefficient is at it

export class PointsView implements View {
  private readonly body = el("tbody");
  private readonly head = el("tr");
  private readonly rest = el("p", { class: "quiet" });

  constructor(
    host: HTMLElement,
    private readonly lab: Lab,
  ) {
    host.append(el("p", { class: "quiet" }, "Complementary slackness, point by point: α = 0 outside the margin, 0 < α < C on it, α = C inside."), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, this.head), this.body)), this.rest);
  }

  update(model: Model | undefined): void {
    const machines = model?.machines ?? [];
    const values = model?.state.task === "values";
    const many = machines.length > 1;
    const columns = values ? ["x", "y", "f", "α", "role"] : [...(many ? ["pair"] : []), "class", "α", "y f", "slack", "role"];
    this.head.replaceChildren(el("th", {}, "#"), ...columns.map((c) => el("th", {}, c)));
    const rows = machines.flatMap((machine) => machine.rows.map((row, i) => this.row(model!, machine, row, i, many)));
    this.body.replaceChildren(...rows.slice(0, MOST));
    this.rest.textContent = rows.length > MOST ? `and ${rows.length - MOST} more` : "";
  }

  point(): void {
    for (const row of this.body.rows) row.classList.toggle("marked", this.lab.marked.includes(Number(row.dataset["row"])));
  }

  private row(model: Model, { pair, y, fit }: Machine, row: number, i: number, many: boolean): HTMLElement {
    const { state } = model;
    const [alpha, f, truth] = [fit.alpha[i]!, fit.values[i]!, y[i]!];
    const point = state.points[row]!;
    const mark = (rows: readonly number[]) => () => this.lab.mark(rows);
    const cells = pair
      ? [...(many ? [`${pair[0] + 1} | ${pair[1] + 1}`] : []), swatch(point.c), digits(Math.abs(alpha), 3), digits(truth * f, 3), digits(Math.max(0, 1 - truth * f), 3), role(Math.abs(alpha), truth * f, state.C, state.loss === "hinge")]
      : [digits(point.x, 3), digits(truth, 3), digits(f, 3), digits(alpha, 3), Math.abs(alpha) < FREE * state.C ? "no weight" : alpha > 0 ? "pulls f up" : "pulls f down"];
    return el("tr", { "data-row": row, pointerenter: mark([row]), pointerleave: mark([]) }, el("td", {}, String(row)), ...cells.map((c) => el("td", {}, c)));
  }
}

function swatch(c: number): HTMLElement {
  return el("span", { class: `swatch class${c}` }, String(c + 1));
}

function role(alpha: number, margin: number, C: number, bounded: boolean): string {
  if (margin < 0) return "misclassified";
  if (!bounded) return margin < 1 ? "inside" : "outside";
  if (alpha <= FREE * C) return "outside";
  return alpha < C * (1 - FREE) ? "on the margin" : "inside";
}

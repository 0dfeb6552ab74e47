// The table of points: complementary slackness, one row for each.
import { digits, el } from "../page/dom.ts";
import type { Lab, View } from "../page/lab.ts";
import type { Machine, Model } from "../page/model.ts";

const MOST = 600; // rows shown
const VISIBLE = 40; // rows that are written while something moves; the others wait for a pause
const HEIGHT = 24; // of a row, about, in CSS pixels
const FREE = 1e-8; // of C: nearer to a bound than this, a coefficient is at it

const SLACK = 1e-6; // below this, what is left of a gap and no slack

interface Row {
  readonly machine: number;
  readonly i: number;
  readonly point: number;
  readonly cells: readonly HTMLElement[];
}

export class PointsView implements View {
  private readonly body = el("tbody");
  private readonly head = el("tr");
  private readonly rest = el("p", { class: "quiet" });
  private rows: Row[] = [];
  private shape = ""; // what the rows are of
  private first = 0; // the row at the top of the scrolled part

  constructor(
    host: HTMLElement,
    private readonly lab: Lab,
  ) {
    const scroll = el(
      "div",
      { class: "scroll", tabindex: 0, "aria-label": "the table of points" },
      el("table", {}, el("thead", {}, this.head), this.body),
    );
    scroll.addEventListener("scroll", () => {
      this.first = Math.floor(scroll.scrollTop / HEIGHT);
      this.write(false);
    });
    host.append(
      el(
        "p",
        { class: "quiet" },
        "Complementary slackness, point by point: α = 0 outside the margin, 0 < α < C on it, α = C inside.",
      ),
      scroll,
      this.rest,
    );
  }

  update(model: Model | undefined, settled: boolean): void {
    const machines = model?.machines ?? [];
    const shape = JSON.stringify([
      model?.state.task,
      machines.map((m) => [m.pair, m.rows.length]),
      model?.state.points.map((p) => p.c),
    ]);
    if (shape !== this.shape) this.build(model, shape);
    this.write(settled);
  }

  point(): void {
    for (const row of this.body.rows)
      row.classList.toggle("marked", this.lab.marked.includes(Number(row.dataset["row"])));
  }

  private build(model: Model | undefined, shape: string): void {
    this.shape = shape;
    this.rows = [];
    const machines = model?.machines ?? [];
    const many = machines.length > 1;
    const columns =
      model?.state.task === "values"
        ? ["x", "y", "f", "α", "role"]
        : [...(many ? ["pair"] : []), "class", "α", "y f", "slack", "role"];
    this.head.replaceChildren(el("th", {}, "#"), ...columns.map((c) => el("th", {}, c)));
    const all = machines.flatMap((machine, k) =>
      machine.rows.map((point, i) => ({ machine: k, i, point, pair: machine.pair })),
    );
    this.body.replaceChildren(
      ...all.slice(0, MOST).map(({ machine, i, point, pair }) => {
        const known = [
          ...(many ? [`${pair![0] + 1} | ${pair![1] + 1}`] : []),
          ...(pair ? [swatch(model!.state.points[point]!.c)] : []),
        ];
        const cells = columns.slice(known.length).map(() => el("td"));
        this.rows.push({ machine, i, point, cells });
        const mark = (rows: readonly number[]) => () => this.lab.mark(rows);
        return el(
          "tr",
          { "data-row": point, pointerenter: mark([point]), pointerleave: mark([]) },
          el("td", {}, String(point)),
          ...known.map((c) => el("td", {}, c)),
          ...cells,
        );
      }),
    );
    this.rest.textContent = all.length > MOST ? `and ${all.length - MOST} more` : "";
  }

  private write(settled: boolean): void {
    const { model } = this.lab;
    if (model === undefined) return;
    const some = settled ? this.rows : this.rows.slice(this.first, this.first + VISIBLE);
    for (const row of some) {
      const machine = model.machines[row.machine];
      if (machine === undefined) continue;
      values(model, machine, row).forEach((said, k) => {
        const cell = row.cells[k]!;
        if (cell.textContent !== said) cell.textContent = said;
      });
    }
  }
}

function values({ state }: Model, { pair, y, fit }: Machine, { i, point }: Row): string[] {
  const [alpha, f, truth] = [fit.alpha[i]!, fit.values[i]!, y[i]!];
  if (pair === undefined) {
    const pulls = Math.abs(alpha) < FREE * state.C ? "no weight" : alpha > 0 ? "pulls f up" : "pulls f down";
    return [digits(state.points[point]!.x, 3), digits(truth, 3), digits(f, 3), digits(alpha, 3), pulls];
  }
  const margin = truth * f;
  const slack = Math.max(0, 1 - margin);
  return [
    digits(Math.abs(alpha), 3),
    digits(margin, 3),
    digits(slack < SLACK ? 0 : slack, 3),
    role(Math.abs(alpha), margin, state.C, state.loss === "hinge"),
  ];
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

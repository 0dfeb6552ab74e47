// Small charts as drawings: axes with few ticks, lines and bars, coloured by the style sheet.
import { digits, svg } from "../page/dom.ts";

export interface Axis {
  readonly low: number;
  readonly high: number;
  readonly log?: boolean;
  readonly title?: string;
}

const [WIDTH, HEIGHT] = [360, 190]; // of the drawing's own units; the page scales it
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 8, 10, 30];

export class Chart {
  readonly root: SVGSVGElement;

  constructor(
    private readonly across: Axis,
    private readonly up: Axis,
    label: string,
  ) {
    this.root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": label });
    for (const v of ticks(up)) {
      const y = this.y(v);
      this.root.append(
        svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "grid" }),
        svg("text", { x: LEFT - 5, y: y + 3.5, "text-anchor": "end" }, digits(v, 3)),
      );
    }
    for (const v of ticks(across))
      this.root.append(svg("text", { x: this.x(v), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, digits(v, 3)));
    if (across.title)
      this.root.append(
        svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 3, "text-anchor": "end", class: "title" }, across.title),
      );
    if (up.title) this.root.append(svg("text", { x: LEFT + 4, y: TOP + 4, class: "title" }, up.title));
  }

  x(v: number): number {
    return LEFT + share(this.across, v) * (WIDTH - LEFT - RIGHT);
  }

  y(v: number): number {
    return HEIGHT - BOTTOM - share(this.up, v) * (HEIGHT - TOP - BOTTOM);
  }

  line(points: readonly (readonly [number, number])[], kind: string): this {
    this.root.append(
      svg("polyline", {
        points: points.map(([x, y]) => `${this.x(x).toFixed(1)},${this.y(y).toFixed(1)}`).join(" "),
        class: kind,
      }),
    );
    return this;
  }

  text(x: number, y: number, said: string, kind: string): this {
    this.root.append(svg("text", { x: this.x(x) - 4, y: this.y(y) - 5, "text-anchor": "end", class: kind }, said));
    return this;
  }

  /** A bar from a base to a value, which tells when it is pointed at. */
  bar(from: number, to: number, base: number, value: number, kind: string, over?: (inside: boolean) => void): this {
    const [x0, x1, y0, y1] = [this.x(from), this.x(to), this.y(base), this.y(value)];
    const bar = svg("rect", {
      x: x0,
      width: Math.max(0.4, x1 - x0),
      y: Math.min(y0, y1),
      height: Math.max(0.6, Math.abs(y1 - y0)),
      class: kind,
    });
    if (over) {
      bar.addEventListener("pointerenter", () => over(true));
      bar.addEventListener("pointerleave", () => over(false));
    }
    this.root.append(bar);
    return this;
  }
}

function share({ low, high, log }: Axis, v: number): number {
  const of = (x: number): number => (log ? Math.log10(x) : x);
  const at = (of(Math.max(log ? low : -Infinity, v)) - of(low)) / (of(high) - of(low) || 1);
  return Math.max(-0.05, Math.min(1.05, at));
}

function ticks({ low, high, log }: Axis): number[] {
  if (log) {
    const [from, to] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.max(1, Math.ceil((to - from) / 5));
    return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => 10 ** (from + i * step));
  }
  const rough = (high - low) / 4 || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * size).find((s) => s >= rough)!;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(6)),
  );
}

// The plane: points, zones, boundary and margins on a canvas; drawing, dragging and deleting points.
import { Points } from "../numeric/points.ts";
import { Before } from "./before.ts";
import { contour } from "./contour.ts";
import { byId, css, mix, type Rgb } from "./dom.ts";
import type { Lab } from "./lab.ts";
import { type Model, valuesAt, vote } from "./model.ts";
import { EDGE, type Point, snapped } from "./state.ts";

export type Brush = "0" | "1" | "2" | "erase";

const FAST = 56; // cells of the grid each way while something moves
const FINE = 120; // and once the user has paused
const CURVE = 300; // places at which f of one number is drawn
const NEAR = { mouse: 10, pen: 14, touch: 22 } as Record<string, number>; // CSS pixels at which a point is meant
const STEP = 0.1; // of the arrow keys; 0.5 with shift

export class Plane {
  brush: Brush = "0";
  private readonly canvas = byId<HTMLCanvasElement>("plane");
  private readonly context = this.canvas.getContext("2d")!;
  private size = 0;
  private readonly before = new Before();
  private held: number | undefined; // the point that is dragged
  private cursor: readonly [number, number] | undefined; // of the keyboard
  private nodes: { side: number; width: number; at: Points } | undefined;

  constructor(private readonly lab: Lab) {
    new ResizeObserver(() => {
      this.size = this.canvas.clientWidth; // asked for in a frame, it would have the whole page laid out
      this.draw(true);
    }).observe(this.canvas);
    this.canvas.addEventListener("pointerdown", (e) => this.down(e));
    this.canvas.addEventListener("pointermove", (e) => this.move(e));
    for (const end of ["pointerup", "pointercancel"] as const)
      this.canvas.addEventListener(end, () => (this.held = undefined));
    this.canvas.addEventListener("pointerleave", () => lab.mark([]));
    this.canvas.addEventListener("contextmenu", (e) => e.preventDefault());
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    this.canvas.addEventListener("blur", () => this.forget());
  }

  // -- places ---------------------------------------------------------------------------------------------

  private place(p: { x: number; y: number }): [number, number] {
    const unit = this.size / (2 * EDGE);
    return [(p.x + EDGE) * unit, (EDGE - p.y) * unit];
  }

  private under(e: MouseEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    const unit = (2 * EDGE) / box.width;
    return [(e.clientX - box.left) * unit - EDGE, EDGE - (e.clientY - box.top) * unit];
  }

  private nearest(x: number, y: number, within: number): number | undefined {
    let best: number | undefined;
    let least = ((within * 2 * EDGE) / this.size) ** 2;
    this.lab.store.state.points.forEach((p, i) => {
      const apart = (p.x - x) ** 2 + (p.y - y) ** 2;
      if (apart <= least) [best, least] = [i, apart];
    });
    return best;
  }

  // -- hands ----------------------------------------------------------------------------------------------

  private down(e: PointerEvent): void {
    const { store } = this.lab;
    const [x, y] = this.under(e);
    const hit = this.nearest(x, y, NEAR[e.pointerType] ?? 10);
    this.cursor = undefined;
    if (this.brush === "erase" || e.button === 2 || e.altKey) {
      if (hit !== undefined) this.remove(hit);
      return;
    }
    this.canvas.setPointerCapture(e.pointerId);
    store.mark();
    if (hit === undefined) this.add(x, y, true);
    this.held = hit ?? store.state.points.length - 1;
  }

  private move(e: PointerEvent): void {
    const [x, y] = this.under(e);
    if (this.held === undefined) {
      const hit = this.nearest(x, y, NEAR[e.pointerType] ?? 10);
      this.canvas.style.cursor = hit === undefined ? "crosshair" : this.brush === "erase" ? "not-allowed" : "grab";
      this.lab.mark(hit === undefined ? [] : [hit]);
      return;
    }
    this.shift(this.held, x, y, true);
  }

  private shift(row: number, x: number, y: number, gesture: boolean): void {
    const { store } = this.lab;
    const points = [...store.state.points];
    const old = points[row];
    if (old === undefined) return;
    points[row] = snapped(x, y, old.c);
    store.set({ points }, gesture);
  }

  private add(x: number, y: number, gesture = false): void {
    const { store } = this.lab;
    const c = store.state.task === "values" || this.brush === "erase" ? 0 : Number(this.brush);
    store.set({ points: [...store.state.points, snapped(x, y, c)] }, gesture);
  }

  private remove(row: number): void {
    const { store } = this.lab;
    this.lab.mark([]);
    store.set({ points: store.state.points.filter((_, i) => i !== row) });
  }

  private forget(): void {
    this.cursor = undefined;
    this.lab.redraw();
  }

  /** Arrows move a cross, Enter draws a point there, M moves the nearest point along, Delete deletes it. */
  private key(e: KeyboardEvent): void {
    const moves: Record<string, readonly [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    const by = moves[e.key];
    const [x, y] = this.cursor ?? [0, 0];
    const near = this.nearest(x, y, 20);
    if (by !== undefined) {
      const step = e.shiftKey ? 5 * STEP : STEP;
      const next = [x + step * by[0], y + step * by[1]].map((v) => Math.max(-EDGE, Math.min(EDGE, v))) as [
        number,
        number,
      ];
      if (this.held !== undefined) this.shift(this.held, ...next, true);
      this.cursor = next;
      const hit = this.nearest(...next, 20);
      this.lab.mark(hit === undefined ? [] : [hit]);
      this.lab.redraw();
    } else if (e.key === "Enter" || e.key === " ") this.add(x, y);
    else if (e.key === "m" || e.key === "M") this.held = this.held === undefined ? near : undefined;
    else if (e.key === "Delete" || e.key === "Backspace") {
      if (near !== undefined) this.remove(near);
    } else return;
    e.preventDefault();
  }

  // -- drawing --------------------------------------------------------------------------------------------

  draw(settled: boolean): void {
    const { context: g, canvas, lab } = this;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (this.size === 0) return;
    const pixels = Math.round(this.size * ratio);
    if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = css(lab.colour("card"));
    g.fillRect(0, 0, this.size, this.size);
    const { model } = lab;
    const n = lab.store.state.points.length;
    const side = settled ? (n > 400 ? 80 : FINE) : n > 400 ? 40 : FAST;
    const task = lab.store.state.task;
    if (task === "classes" && model !== undefined && (model.machines.length > 0 || lab.instead))
      this.zones(model, side);
    this.axes();
    if (task === "values" && model !== undefined) this.curve(model);
    this.points(model);
    if (this.cursor !== undefined) this.cross(...this.cursor);
  }

  private grid(side: number, width: number): Points {
    if (this.nodes?.side === side && this.nodes.width === width) return this.nodes.at;
    const rows: number[][] = [];
    if (width === 1) for (let i = 0; i <= side; ++i) rows.push([-EDGE + (2 * EDGE * i) / side]);
    else
      for (let j = 0; j <= side; ++j)
        for (let i = 0; i <= side; ++i) rows.push([-EDGE + (2 * EDGE * i) / side, EDGE - (2 * EDGE * j) / side]);
    this.nodes = { side, width, at: Points.of(rows, width) };
    return this.nodes.at;
  }

  private zones(model: Model, side: number): void {
    const { lab } = this;
    const at = this.grid(side, 2);
    const instead = lab.instead?.(at.data, 2);
    const f = instead ?? valuesAt(lab.core, model, at);
    if (f.every((v) => v === 0)) return; // an algorithm before its first step
    const count = instead ? 1 : model.machines.length;
    const pair = model.machines[0]?.pair ?? [0, 1];
    if (count === 1) this.shades(f, side, pair);
    else this.votes(model, f, side);
    if (count !== 1) return;
    const before = instead ? undefined : this.before.than(model.state, { f, side });
    if (before) this.level(before.f, before.side, 0, css(lab.colour("muted"), 0.75), 1.6);
    this.level(f, side, 0, css(lab.colour("ink")), 2);
    for (const [level, c] of [
      [-1, pair[0]],
      [1, pair[1]],
    ] as const)
      this.level(f, side, level, css(lab.colour(`c${c}`), 0.9), 1.2);
    if (lab.beside) this.level(lab.beside(at.data, 2), side, 0, css(lab.colour("accent")), 2);
  }

  private level(f: ArrayLike<number>, side: number, level: number, style: string, width: number): void {
    const g = this.context;
    const cell = this.size / side;
    g.beginPath();
    contour(f, side, level, (x0, y0, x1, y1) => {
      g.moveTo(x0 * cell, y0 * cell);
      g.lineTo(x1 * cell, y1 * cell);
    });
    g.strokeStyle = style;
    g.lineWidth = width;
    g.lineCap = "round";
    g.stroke();
  }

  /** Four zones: surely and probably of each class. */
  private shades(f: ArrayLike<number>, side: number, [low, high]: readonly number[]): void {
    const [card, a, b] = ["card", `c${low}`, `c${high}`].map((name) => this.lab.colour(name)) as [Rgb, Rgb, Rgb];
    const tints = [mix(card, a, 0.3), mix(card, a, 0.13), mix(card, b, 0.13), mix(card, b, 0.3)];
    this.paint(side, (at) => {
      const v = at(f, 1, 0);
      return Number.isNaN(v) ? card : tints[v < 0 ? (v <= -1 ? 0 : 1) : v < 1 ? 2 : 3]!;
    });
  }

  private votes(model: Model, f: ArrayLike<number>, side: number): void {
    const card = this.lab.colour("card");
    const tints = [0, 1, 2].map((c) => mix(card, this.lab.colour(`c${c}`), 0.22));
    const count = model.machines.length;
    const here = new Float64Array(count);
    this.paint(side, (at) => {
      for (let k = 0; k < count; ++k) here[k] = at(f, count, k);
      return here.some(Number.isNaN) ? card : tints[vote(model, here, 0)]!;
    });
  }

  /** Colour each pixel by values between the nodes; a change of colour is softened by the canvas. */
  private paint(side: number, colour: (at: (f: ArrayLike<number>, count: number, k: number) => number) => Rgb): void {
    const pixels = Math.round(this.size / 1.5);
    const image = new ImageData(pixels, pixels);
    const row = side + 1;
    const step = side / pixels;
    let [cell, s, t] = [0, 0, 0];
    const at = (f: ArrayLike<number>, count: number, k: number): number => {
      const place = cell * count + k;
      const top = f[place]! + s * (f[place + count]! - f[place]!);
      const below = place + row * count;
      return top + t * (f[below]! + s * (f[below + count]! - f[below]!) - top);
    };
    for (let j = 0, to = 0; j < pixels; ++j) {
      const y = (j + 0.5) * step;
      t = y - Math.floor(y);
      for (let i = 0; i < pixels; ++i, to += 4) {
        const x = (i + 0.5) * step;
        s = x - Math.floor(x);
        cell = Math.floor(y) * row + Math.floor(x);
        const [r, g, b] = colour(at);
        image.data[to] = r;
        image.data[to + 1] = g;
        image.data[to + 2] = b;
        image.data[to + 3] = 255;
      }
    }
    const canvas = new OffscreenCanvas(pixels, pixels);
    canvas.getContext("2d")!.putImageData(image, 0, 0);
    this.context.drawImage(canvas, 0, 0, this.size, this.size);
  }

  private axes(): void {
    const g = this.context;
    g.strokeStyle = css(this.lab.colour("muted"), 0.22);
    g.lineWidth = 1;
    g.beginPath();
    for (let v = -EDGE + 1; v < EDGE; ++v) {
      const [x, y] = this.place({ x: v, y: v });
      g.moveTo(x, 0);
      g.lineTo(x, this.size);
      g.moveTo(0, y);
      g.lineTo(this.size, y);
    }
    g.stroke();
    g.fillStyle = css(this.lab.colour("muted"));
    g.font = "11px system-ui, sans-serif";
    for (let v = -EDGE + 1; v < EDGE; ++v) {
      const [x, y] = this.place({ x: v, y: v });
      g.fillText(String(v).replace("-", "−"), x + 3, this.size - 5);
      g.fillText(String(v).replace("-", "−"), 4, y - 3);
    }
  }

  private curve(model: Model): void {
    const { lab, context: g } = this;
    const at = this.grid(CURVE, 1);
    const line = (f: ArrayLike<number>, style: string): void => {
      g.beginPath();
      for (let i = 0; i <= CURVE; ++i)
        g.lineTo(...this.place({ x: at.data[i]!, y: Math.max(-99, Math.min(99, f[i]!)) }));
      g.strokeStyle = style;
      g.lineWidth = 2.4;
      g.lineJoin = "round";
      g.stroke();
    };
    const [machine] = model.machines;
    if (machine !== undefined && machine.rows.length <= 200) {
      g.beginPath();
      machine.rows.forEach((row, i) => {
        const p = lab.store.state.points[row];
        if (p === undefined) return;
        g.moveTo(...this.place(p));
        g.lineTo(...this.place({ x: p.x, y: machine.fit.values[i]! }));
      });
      g.strokeStyle = css(lab.colour("c1"), 0.35);
      g.lineWidth = 1;
      g.stroke();
    }
    const f = valuesAt(lab.core, model, at);
    const before = this.before.than(model.state, { f, side: CURVE });
    if (before) line(before.f, css(lab.colour("muted"), 0.6));
    line(f, css(lab.colour("ink")));
    if (lab.beside) line(lab.beside(at.data, 1), css(lab.colour("accent")));
  }

  /** Circles, triangles and squares, so that no colour is needed; a ring for what carries the function. */
  private points(model: Model | undefined): void {
    const { context: g, lab } = this;
    const { points, C } = lab.store.state;
    const r = points.length > 400 ? 3 : points.length > 150 ? 4 : 5;
    const weight = new Map<number, number>();
    if (!lab.instead)
      for (const { rows, fit } of model?.machines ?? [])
        rows.forEach((row, i) => weight.set(row, Math.max(weight.get(row) ?? 0, Math.abs(fit.alpha[i]!) / C)));
    const rings = [...weight.values()].some((w) => w === 0); // where all carry it, a ring would say nothing
    points.forEach((p, i) => {
      const [x, y] = this.place(p);
      const colour = lab.colour(`c${p.c}`);
      if (rings && weight.get(i)! > 0) {
        g.beginPath();
        g.arc(x, y, r + 3.5, 0, 7);
        g.strokeStyle = css(lab.colour("ink"), weight.get(i)! >= 1 ? 0.45 : 1);
        g.lineWidth = weight.get(i)! >= 1 ? 1 : 1.8;
        g.stroke();
      }
      shape(g, x, y, r, p);
      g.fillStyle = css(colour);
      g.fill();
      g.strokeStyle = css(lab.colour("card"));
      g.lineWidth = 1.2;
      g.stroke();
    });
    for (const i of lab.marked) {
      const p = points[i];
      if (p === undefined) continue;
      g.beginPath();
      g.arc(...this.place(p), r + 8, 0, 7);
      g.strokeStyle = css(lab.colour("accent"));
      g.lineWidth = 3;
      g.stroke();
    }
  }

  private cross(x: number, y: number): void {
    const g = this.context;
    const [at, height] = this.place({ x, y });
    g.beginPath();
    g.moveTo(at - 12, height);
    g.lineTo(at + 12, height);
    g.moveTo(at, height - 12);
    g.lineTo(at, height + 12);
    g.strokeStyle = css(this.lab.colour("accent"));
    g.lineWidth = 2;
    g.stroke();
  }
}

function shape(g: CanvasRenderingContext2D, x: number, y: number, r: number, { c }: Point): void {
  g.beginPath();
  if (c === 0) g.arc(x, y, r, 0, 7);
  else if (c === 1) {
    g.moveTo(x, y - 1.25 * r);
    g.lineTo(x + 1.15 * r, y + 0.85 * r);
    g.lineTo(x - 1.15 * r, y + 0.85 * r);
    g.closePath();
  } else g.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
}

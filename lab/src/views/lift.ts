// The lift: f as a surface over the plane, the points at their heights.
import { Points } from "../numeric/points.ts";
import { contour } from "../page/contour.ts";
import { css, el, mix, type Rgb } from "../page/dom.ts";
import type { Lab, View } from "../page/lab.ts";
import { type Model, valuesAt } from "../page/model.ts";
import { EDGE } from "../page/state.ts";

const SIDE = 30; // cells each way
const HEIGHT = 1.7; // of |f| = `top` in the units of the plane

export class LiftView implements View {
  private readonly canvas = el("canvas", {
    class: "lift",
    tabindex: 0,
    "aria-label": "f as a surface; drag, or use the arrow keys, to turn it",
  });
  private turn = -0.6;
  private tilt = 0.95;
  private model: Model | undefined;
  private readonly nodes = Points.of(
    Array.from({ length: (SIDE + 1) ** 2 }, (_, k) => [
      -EDGE + (2 * EDGE * (k % (SIDE + 1))) / SIDE,
      -EDGE + (2 * EDGE * Math.floor(k / (SIDE + 1))) / SIDE,
    ]),
    2,
  );

  constructor(
    host: HTMLElement,
    private readonly lab: Lab,
  ) {
    let from: readonly [number, number] | undefined;
    this.canvas.addEventListener("pointerdown", (e) => {
      this.canvas.setPointerCapture(e.pointerId);
      from = [e.clientX, e.clientY];
    });
    this.canvas.addEventListener("pointerup", () => (from = undefined));
    this.canvas.addEventListener("pointermove", (e) => {
      if (from === undefined) return;
      this.rotate((e.clientX - from[0]) / 120, (e.clientY - from[1]) / 150);
      from = [e.clientX, e.clientY];
    });
    this.canvas.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] }[e.key];
      if (by === undefined) return;
      e.preventDefault();
      this.rotate(by[0]!, by[1]!);
    });
    host.append(
      el(
        "p",
        { class: "quiet" },
        "What is a curve on the plane is a level of f: the sheet is f, cut at 0. In the space of the kernel the cut is a hyperplane. Of three classes it shows the first two. Drag to turn.",
      ),
      this.canvas,
    );
  }

  update(model: Model | undefined): void {
    this.model = model;
    this.draw();
  }

  point(): void {
    this.draw();
  }

  private rotate(turn: number, tilt: number): void {
    this.turn += turn;
    this.tilt = Math.max(0.15, Math.min(1.5, this.tilt + tilt));
    this.draw();
  }

  private draw(): void {
    const { canvas, lab, model } = this;
    const g = canvas.getContext("2d")!;
    const size = canvas.clientWidth || 340;
    canvas.width = canvas.height = size * 2;
    g.scale(2, 2);
    const pair = model?.machines[0]?.pair;
    if (model === undefined || pair === undefined) {
      g.fillStyle = css(lab.colour("muted"));
      g.font = "13px system-ui";
      return g.fillText("The lift is drawn for classes.", 12, 24);
    }
    const count = model.machines.length;
    const f = valuesAt(lab.core, model, this.nodes)
      .filter((_, i) => i % count === 0)
      .map((v) => v || 0); // 0 where f has no value
    const top = Math.max(
      1.5,
      Math.min(
        6,
        f.reduce((most, v) => Math.max(most, Math.abs(v)), 0),
      ),
    );
    const [sin, cos, up] = [Math.sin(this.turn), Math.cos(this.turn), Math.sin(this.tilt)];
    const flat = Math.cos(this.tilt);
    const unit = size / 8.2;
    const place = (x: number, y: number, z: number): [number, number, number] => {
      const [a, b] = [x * cos - y * sin, x * sin + y * cos];
      const height = (Math.max(-top, Math.min(top, z)) / top) * HEIGHT;
      return [size / 2 + a * unit, size / 2 - (b * up * 0.75 + height * flat * 1.25) * unit, b];
    };
    const [card, low, high] = ["card", `c${pair[0]}`, `c${pair[1]}`].map((c) => lab.colour(c)) as [Rgb, Rgb, Rgb];
    const pieces: { depth: number; draw: () => void }[] = [];
    for (let j = 0; j < SIDE; ++j)
      for (let i = 0; i < SIDE; ++i) {
        const at = j * (SIDE + 1) + i;
        const corners = [at, at + 1, at + SIDE + 2, at + SIDE + 1];
        const places = corners.map((k) => place(this.nodes.data[2 * k]!, this.nodes.data[2 * k + 1]!, f[k]!));
        const mean = corners.reduce((sum, k) => sum + f[k]!, 0) / 4;
        const colour = mix(card, mean < 0 ? low : high, 0.25 + 0.6 * Math.min(1, Math.abs(mean) / top));
        pieces.push({
          depth: places[0]![2],
          draw: () => {
            g.beginPath();
            for (const [x, y] of places) g.lineTo(x, y);
            g.closePath();
            g.fillStyle = css(colour);
            g.fill();
            g.strokeStyle = css(card, 0.25);
            g.lineWidth = 0.5;
            g.stroke();
          },
        });
      }
    const first = model.machines[0]!;
    first.rows.forEach((row, i) => {
      const p = model.state.points[row]!;
      const [x, y, depth] = place(p.x, p.y, first.fit.values[i]!);
      pieces.push({
        depth: depth - 0.2,
        draw: () => {
          g.beginPath();
          g.arc(x, y, lab.marked.includes(row) ? 6 : 3, 0, 7);
          g.fillStyle = css(lab.colour(`c${p.c}`));
          g.fill();
          g.strokeStyle = css(lab.marked.includes(row) ? lab.colour("accent") : card);
          g.lineWidth = 1;
          g.stroke();
        },
      });
    });
    pieces.sort((a, b) => b.depth - a.depth);
    for (const { draw } of pieces) draw();
    g.beginPath();
    contour(f, SIDE, 0, (...ends) => {
      const at = ends.map((v) => -EDGE + (2 * EDGE * v) / SIDE) as [number, number, number, number];
      const [x0, y0] = place(at[0], at[1], 0);
      const [x1, y1] = place(at[2], at[3], 0);
      g.moveTo(x0, y0);
      g.lineTo(x1, y1);
    });
    g.strokeStyle = css(lab.colour("ink"));
    g.lineWidth = 2;
    g.stroke();
  }
}

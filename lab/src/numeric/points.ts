// Points as rows of numbers, and the maps that kernels see them through.
import type { PointMap } from "../kernels/entry.ts";

const KEPT = 16; // images of one set of points: the grid of the plane lives through many scales

export class Points {
  readonly n: number;
  private readonly images = new Map<string, Points>();

  constructor(
    readonly data: Float64Array,
    readonly width: number,
  ) {
    this.n = data.length / width;
  }

  static of(rows: readonly (readonly number[])[], width: number): Points {
    return new Points(Float64Array.from(rows.flatMap((row) => row.slice(0, width))), width);
  }

  row(i: number): Float64Array {
    return this.data.subarray(i * this.width, (i + 1) * this.width);
  }

  take(rows: readonly number[]): Points {
    const out = new Float64Array(rows.length * this.width);
    rows.forEach((row, i) => out.set(this.row(row), i * this.width));
    return new Points(out, this.width);
  }

  /** The points after a map; the last few are kept, since many kernels ask for the same. */
  through(map: PointMap): Points {
    const key = JSON.stringify(map);
    let image = this.images.get(key);
    if (image === undefined && this.images.size >= KEPT) this.images.clear();
    if (image === undefined) this.images.set(key, (image = applied(this, map)));
    return image;
  }

  private each(width: number, row: (x: Float64Array, out: Float64Array) => void): Points {
    const out = new Float64Array(this.n * width);
    for (let i = 0; i < this.n; ++i)
      row(this.data.subarray(i * this.width, (i + 1) * this.width), out.subarray(i * width, (i + 1) * width));
    return new Points(out, width);
  }

  // -- the maps of the catalogue, by their names there ----------------------------------------------------

  scaled(by: number | readonly number[]): Points {
    const scale = typeof by === "number" ? Array<number>(this.width).fill(by) : by;
    if (scale.length !== this.width)
      throw new Error(
        `a scale for ${scale.length} features meets points with ${this.width}; give one number, or one for each.`,
      );
    return this.each(this.width, (x, out) => x.forEach((v, j) => (out[j] = v / scale[j]!)));
  }

  unit(): Points {
    return this.each(this.width, (x, out) => {
      const length = Math.hypot(...x) || 1;
      x.forEach((v, j) => (out[j] = v / length));
    });
  }

  circles(period: number | readonly number[]): Points {
    const d = this.width;
    return this.each(2 * d, (x, out) =>
      x.forEach((v, j) => {
        const angle = (2 * Math.PI * v) / (typeof period === "number" ? period : period[j]!);
        out[j] = Math.cos(angle);
        out[d + j] = Math.sin(angle);
      }),
    );
  }

  columns(chosen: readonly number[]): Points {
    if (chosen.some((j) => j >= this.width))
      throw new Error(
        `the points have ${this.width} ${this.width === 1 ? "feature" : "features"}: column ${Math.max(...chosen)} is not among them.`,
      );
    return this.each(chosen.length, (x, out) => chosen.forEach((j, k) => (out[k] = x[j]!)));
  }

  linear(by: readonly number[] | readonly (readonly number[])[]): Points {
    const rows = by.map((row, i) => (typeof row === "number" ? by.map((_, j) => (i === j ? row : 0)) : row));
    if (rows[0]!.length !== this.width)
      throw new Error(`.transformed has a matrix for ${rows[0]!.length} features; the points have ${this.width}.`);
    return this.each(rows.length, (x, out) =>
      rows.forEach((row, i) => (out[i] = row.reduce((sum, a, j) => sum + a * x[j]!, 0))),
    );
  }

  nonNegative(): Points {
    if (this.data.some((v) => v < 0))
      throw new Error(
        "this kernel is positive semidefinite on non-negative features only; some points have negative ones. Shift them, or choose another kernel.",
      );
    return this;
  }
}

function applied(points: Points, { map, by }: PointMap): Points {
  switch (map) {
    case "scaled":
      return points.scaled(by as number | readonly number[]);
    case "UnitVectors":
      return points.unit();
    case "Circles":
      return points.circles(by as number | readonly number[]);
    case "Columns":
      return points.columns(by as readonly number[]);
    case "LinearMap":
      return points.linear(by as readonly number[]);
    case "non_negative":
      return points.nonNegative();
  }
  throw new Error(`no map is called ${map}`);
}

/** The width after a map, for points of some width. */
export function widthAfter(width: number, { map, by }: PointMap): number {
  if (map === "Circles") return 2 * width;
  return map === "Columns" || map === "LinearMap" ? (by as readonly unknown[]).length : width;
}

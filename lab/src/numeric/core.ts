// The library's core in WebAssembly: kernel matrices, SMO, factors and Newton steps (lab/core/lab.cpp).
import { type Assembled, assemble, type PointValue } from "../kernels/assembly.ts";
import { type Kernel, text } from "../kernels/kernel.ts";
import type { Points } from "./points.ts";

interface Exports {
  readonly memory: WebAssembly.Memory;
  _initialize(): void;
  allocate(bytes: number): number;
  release(place: number): void;
  matrix(plan: number, constants: number, n: number, m: number, out: number, symmetric: number): number;
  diagonal(plan: number, constants: number, n: number, out: number): number;
  picture(plan: number, constants: number, n: number, m: number, v: number, count: number, out: number): void;
  smo(K: number, n: number, vectors: number, tol: number, steps: number, outcome: number): void;
  factor(K: number, n: number, share: number, most: number, L: number): number;
  newton(
    L: number,
    n: number,
    r: number,
    y: number,
    loss: number,
    C: number,
    w: number,
    b: number,
    f: number,
    steps: number,
  ): number;
}

/** Numbers in the module's memory. */
export class Held {
  constructor(
    private readonly core: Exports,
    readonly place: number,
    readonly size: number,
  ) {}

  /** A view of the numbers, valid until memory is next taken. */
  get view(): Float64Array {
    return new Float64Array(this.core.memory.buffer, this.place, this.size);
  }

  release(): void {
    this.core.release(this.place);
  }
}

export interface Box {
  readonly linear: ArrayLike<number>;
  readonly upper: ArrayLike<number>;
  readonly lower: ArrayLike<number>;
  readonly width: ArrayLike<number>;
}

export interface SmoResult {
  readonly alpha: Float64Array;
  readonly primal: number;
  readonly dual: number;
  readonly offset: number;
  readonly steps: number;
}

export class Core {
  private constructor(private readonly module: Exports) {}

  static async from(bytes: BufferSource): Promise<Core> {
    const nothing = (): number => 0; // of the system it is asked for nothing that matters
    const imports = { wasi_snapshot_preview1: new Proxy({}, { get: () => nothing }) };
    const { instance } = await WebAssembly.instantiate(bytes, imports);
    const module = instance.exports as unknown as Exports;
    module._initialize();
    return new Core(module);
  }

  /** Room for some numbers, filled with those of `from`. */
  hold(from: ArrayLike<number> | number): Held {
    const size = typeof from === "number" ? from : from.length;
    const place = this.module.allocate(8 * Math.max(1, size));
    if (place === 0) throw new Error("the browser gives the page no more memory.");
    const held = new Held(this.module, place, size);
    if (typeof from === "number") held.view.fill(0);
    else held.view.set(from);
    return held;
  }

  // -- kernels --------------------------------------------------------------------------------------------

  /** The kernel matrix of points against others, or against themselves; the caller releases it. */
  matrix(kernel: Kernel, X: Points, Z?: Points): Held {
    const right = Z ?? X;
    const out = this.hold(X.n * right.n);
    const finite = this.compared(kernel, X, right, (plan, constants) =>
      this.module.matrix(plan, constants, X.n, right.n, out.place, Z ? 0 : 1),
    );
    if (!finite) {
      out.release();
      throw new Error(
        `${text(kernel)} has values that are not finite on these points; a smaller power or factor helps.`,
      );
    }
    return out;
  }

  diagonal(kernel: Kernel, X: Points): Float64Array {
    const out = this.hold(X.n);
    this.compared(kernel, X, X, (plan, constants) => this.module.diagonal(plan, constants, X.n, out.place));
    return taken(out);
  }

  /** sum_j k(x_i, z_j) v_j for each of `count` columns of v, in float32: for pictures. */
  picture(kernel: Kernel, X: Points, Z: Points, v: ArrayLike<number>, count = 1): Float64Array {
    const weights = this.hold(v);
    const out = this.hold(X.n * count);
    this.compared(kernel, X, Z, (plan, constants) =>
      this.module.picture(plan, constants, X.n, Z.n, weights.place, count, out.place),
    );
    weights.release();
    return taken(out);
  }

  private compared<T>(kernel: Kernel, X: Points, Z: Points, use: (plan: number, constants: number) => T): T {
    const made = assemble(kernel, X.width);
    const held: Held[] = [];
    const keep = (numbers: Float64Array): number => {
      held.push(this.hold(numbers));
      return held.at(-1)!.place;
    };
    try {
      const plan = this.planned(made, X, Z, keep);
      const constants = keep(Float64Array.from(made.constants.flat()));
      const place = this.module.allocate(4 * plan.length);
      new Int32Array(this.module.memory.buffer, place, plan.length).set(plan);
      const result = use(place, constants);
      this.module.release(place);
      return result;
    } finally {
      for (const h of held) h.release();
    }
  }

  private planned(made: Assembled, X: Points, Z: Points, keep: (numbers: Float64Array) => number): number[] {
    const sides = X === Z ? [X] : [X, Z];
    const operands = made.operands.flatMap(({ kind, path }) => {
      const images = sides.map((side) => path.reduce((points, map) => points.through(map), side));
      const places = images.map((image) => keep(image.data));
      return [kind, images[0]!.width, places[0]!, places.at(-1)!];
    });
    const values = sides.map((side) => made.values.map((value) => keep(this.valuesOf(value, side))));
    const [left, right] = [values[0]!, values.at(-1)!];
    const head = [made.code.length, made.registers, made.result, made.operands.length, left.length, right.length];
    return [...head, ...made.code.flat(), ...operands, ...left, ...right];
  }

  private valuesOf({ of, path, kernel }: PointValue, side: Points): Float64Array {
    const points = path.reduce((seen, map) => seen.through(map), side);
    if (of === "norm" || of === "square") {
      const out = new Float64Array(points.n);
      for (let i = 0; i < points.n; ++i) {
        const length = Math.hypot(...points.data.subarray(i * points.width, (i + 1) * points.width));
        out[i] = of === "norm" ? length : length * length;
      }
      return out;
    }
    const d = this.diagonal(kernel!, points);
    if (of === "inverse root") {
      if (d.some((v) => v < 0))
        throw new Error(`${text(kernel!)} cannot be normalized: k(x, x) < 0 at some point, so it is not a kernel.`);
      return d.map((v) => (v > 0 ? 1 / Math.sqrt(v) : 0));
    }
    const top = d.reduce((a, b) => Math.max(a, b), 0);
    if (top >= 1)
      throw new Error(
        `1 / (1 - k) converges only where k(x, x) < 1; here it reaches ${top.toPrecision(4)}. Use (a * k).geometric() with a < ${(1 / top).toPrecision(3)}.`,
      );
    return d.map(() => 1);
  }

  // -- solvers --------------------------------------------------------------------------------------------

  /** SMO on the dual of a machine with one offset. */
  smo(K: Held, box: Box, tol: number, steps: number): SmoResult {
    const n = box.linear.length;
    const vectors = this.hold(7 * n);
    const outcome = this.hold(8);
    [box.linear, box.upper, box.lower, box.width].forEach((v, k) => vectors.view.set(v, k * n));
    this.module.smo(K.place, n, vectors.place, tol, steps, outcome.place);
    const [primal, dual, , , offset, , taken_] = outcome.view as unknown as number[];
    const plus = vectors.view.slice(4 * n, 5 * n);
    const minus = vectors.view.slice(5 * n, 6 * n);
    const result = {
      alpha: plus.map((p, i) => p - minus[i]!),
      primal: primal!,
      dual: dual!,
      offset: offset!,
      steps: taken_!,
    };
    vectors.release();
    outcome.release();
    return result;
  }

  /** Rows of L with K = L L' up to a share of the largest diagonal value; n numbers apart, r <= `most` of them used. */
  factor(K: Held, n: number, share: number, most = n): { L: Held; r: number } {
    const L = this.hold(n * n);
    return { L, r: this.module.factor(K.place, n, share, most, L.place) };
  }

  /** Newton steps for a smooth loss, from 0; returns f at the points, the offset and the number of steps. */
  newton(
    L: Held,
    r: number,
    y: Float64Array,
    loss: number,
    C: number,
    steps: number,
  ): { f: Float64Array; offset: number; steps: number } {
    const [labels, w, b, f] = [this.hold(y), this.hold(r), this.hold(1), this.hold(y.length)];
    const done = this.module.newton(L.place, y.length, r, labels.place, loss, C, w.place, b.place, f.place, steps);
    const result = { f: f.view.slice(), offset: b.view[0]!, steps: done };
    for (const h of [labels, w, b, f]) h.release();
    return result;
  }
}

function taken(held: Held): Float64Array {
  const out = held.view.slice();
  held.release();
  return out;
}

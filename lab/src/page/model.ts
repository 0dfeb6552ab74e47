// What is fitted to the points on the plane: one machine, or one for each pair of three classes.
import { type Kernel, proof, type Proof } from "../kernels/kernel.ts";
import { resolved } from "../kernels/resolve.ts";
import { parse } from "../kernels/text.ts";
import type { Core, Held } from "../numeric/core.ts";
import { type Fit, fit, type Problem } from "../numeric/fit.ts";
import { lossOf } from "../numeric/losses.ts";
import { Points } from "../numeric/points.ts";
import { classesOf, type State } from "./state.ts";

export interface Machine {
  /** The classes with f < 0 and f > 0; none where y is a number. */
  readonly pair: readonly [number, number] | undefined;
  /** Which of the points it is fitted to. */
  readonly rows: readonly number[];
  readonly y: Float64Array;
  readonly fit: Fit;
}

export interface Model {
  readonly state: State;
  readonly kernel: Kernel;
  readonly proof: Proof;
  readonly X: Points;
  /** The kernel matrix of all points. */
  readonly K: Held;
  readonly machines: readonly Machine[];
}

type Limits = Pick<Problem, "tol" | "steps" | "quick">;

/** What values need of a model. */
export type Fitted = Pick<Model, "kernel" | "X" | "machines">;

export const widthOf = (state: State): number => (state.task === "classes" ? 2 : 1);

export function pointsOf(state: State): Points {
  return Points.of(
    state.points.map((p) => [p.x, p.y]),
    widthOf(state),
  );
}

/** The problems of a state, each with its rows; the matrix of a pair is held until the next one is asked for. */
export function* problems(
  core: Core,
  state: State,
  kernel: Kernel,
  X: Points,
  K: Held,
): Generator<{ pair: Machine["pair"]; rows: readonly number[]; problem: Problem }> {
  const loss = lossOf(state.loss, state.quantile);
  const all = state.points.map((_, i) => i);
  if (state.task === "values") {
    yield {
      pair: undefined,
      rows: all,
      problem: { K, y: Float64Array.from(state.points, (p) => p.y), loss, C: state.C },
    };
    return;
  }
  const classes = classesOf(state.points);
  for (const [i, a] of classes.entries())
    for (const b of classes.slice(i + 1)) {
      const rows = classes.length === 2 ? all : all.filter((r) => [a, b].includes(state.points[r]!.c));
      const own = classes.length === 2 ? K : core.matrix(kernel, X.take(rows));
      yield {
        pair: [a, b],
        rows,
        problem: { K: own, y: Float64Array.from(rows, (r) => (state.points[r]!.c === a ? -1 : 1)), loss, C: state.C },
      };
      if (own !== K) own.release();
    }
}

/** The machines of a state on a matrix, to a tolerance. */
export function machines(core: Core, state: State, kernel: Kernel, X: Points, K: Held, limits: Limits = {}): Machine[] {
  const out: Machine[] = [];
  for (const { pair, rows, problem } of problems(core, state, kernel, X, K))
    out.push({ pair, rows, y: problem.y, fit: fit(core, { ...problem, ...limits }) });
  return out;
}

/** Fit; an Error with a sentence where the kernel cannot be computed. The caller releases the matrix. */
export function solved(core: Core, state: State, limits?: Limits): Model {
  const X = pointsOf(state);
  const kernel = resolved(parse(state.kernel), X);
  const reason = proof(kernel, X.width);
  const K = core.matrix(kernel, X);
  try {
    return { state, kernel, proof: reason, X, K, machines: machines(core, state, kernel, X, K, limits) };
  } catch (error) {
    K.release();
    throw error;
  }
}

/** f of each machine at some points, one column for each; no number where a kernel of non-negative features has none. */
export function valuesAt(core: Core, model: Fitted, at: Points): Float64Array {
  try {
    return values(core, model, at);
  } catch (error) {
    const inside = [...Array(at.n).keys()].filter((i) => at.row(i).every((v) => v >= 0));
    if (inside.length === at.n) throw error;
    const count = model.machines.length;
    const some = inside.length > 0 ? values(core, model, at.take(inside)) : new Float64Array();
    const out = new Float64Array(at.n * count).fill(NaN);
    inside.forEach((row, i) => out.set(some.subarray(i * count, (i + 1) * count), row * count));
    return out;
  }
}

function values(core: Core, model: Fitted, at: Points): Float64Array {
  const count = model.machines.length;
  const weights = new Float64Array(model.X.n * count);
  model.machines.forEach(({ rows, fit: { alpha } }, k) =>
    rows.forEach((row, i) => (weights[row * count + k] = alpha[i]!)),
  );
  const support = [...Array(model.X.n).keys()].filter((row) =>
    model.machines.some((_, k) => weights[row * count + k] !== 0),
  );
  const chosen = Float64Array.from(support.flatMap((row) => [...weights.subarray(row * count, (row + 1) * count)]));
  const out =
    support.length > 0
      ? core.picture(model.kernel, at, model.X.take(support), chosen, count)
      : new Float64Array(at.n * count);
  for (let i = 0; i < out.length; ++i) out[i]! += model.machines[i % count]!.fit.offset;
  return out;
}

/** The class with the most votes of the pairs; of equal ones, that with the larger sum of |f|. */
export function vote(model: Fitted, f: ArrayLike<number>, from: number): number {
  if (model.machines.length === 1) return model.machines[0]!.pair![f[from]! >= 0 ? 1 : 0];
  const votes = [0, 0, 0];
  model.machines.forEach(({ pair }, k) => {
    const value = f[from + k]!;
    votes[pair![value >= 0 ? 1 : 0]]! += 1 + Math.min(0.3, Math.abs(value) * 1e-3);
  });
  return votes.indexOf(Math.max(...votes));
}

/** The problem of all machines together, as one certificate. */
export interface Account {
  readonly primal: number;
  readonly dual: number;
  readonly gap: number;
  /** |f|^2, negative where the matrix is indefinite, and |f|. */
  readonly square: number;
  readonly norm: number;
  readonly support: number;
  readonly steps: number;
  readonly wrong: number;
}

export function account(model: Model): Account {
  const total = (of: (fit: Fit) => number): number => model.machines.reduce((sum, { fit: done }) => sum + of(done), 0);
  const [primal, dual] = [total((f) => f.primal), total((f) => f.dual)];
  const size = Math.max(Math.abs(primal), Math.abs(dual));
  const touched = new Set(model.machines.flatMap(({ rows, fit: { alpha } }) => rows.filter((_, i) => alpha[i] !== 0)));
  return {
    primal,
    dual,
    gap: size > 0 ? (primal - dual) / size : 0,
    square: total((f) => f.square),
    norm: Math.sqrt(
      Math.max(
        0,
        total((f) => f.square),
      ),
    ),
    support: touched.size,
    steps: total((f) => f.steps),
    wrong: model.state.task === "classes" ? wrong(model) : 0,
  };
}

function wrong(model: Model): number {
  if (model.machines.length === 1) {
    const { y, fit: done } = model.machines[0]!;
    return y.reduce((sum, v, i) => sum + Number(v * done.values[i]! < 0), 0);
  }
  const inside = model.machines.map(({ rows, fit: { values } }) => new Map(rows.map((row, i) => [row, values[i]!])));
  return model.state.points.reduce((sum, { c }, row) => {
    const right = model.machines.every(
      ({ pair }, k) => !pair!.includes(c) || (inside[k]!.get(row)! >= 0 ? pair![1] : pair![0]) === c,
    );
    return sum + Number(!right);
  }, 0);
}

// The state of the page: points, kernel, loss, price; all that a link holds.
import type { LossName } from "../numeric/losses.ts";

export interface Point {
  readonly x: number;
  readonly y: number;
  /** Its class, 0 to 2; of no meaning where y is predicted from x. */
  readonly c: number;
}

export type Task = "classes" | "values";
export const VIEWS = ["points", "gram", "dual", "lift", "features", "map", "steps"] as const;
export type ViewName = (typeof VIEWS)[number];

export interface State {
  readonly task: Task;
  readonly points: readonly Point[];
  readonly kernel: string;
  readonly loss: LossName;
  readonly C: number;
  readonly quantile: number;
  readonly view: ViewName;
}

/** Coordinates are whole multiples of this, so that a link holds them exactly; the plane goes from -3 to 3. */
export const UNIT = 1 / 500;
export const EDGE = 3;

export const PRICES = [1e-3, 1e5] as const; // the range of C
const UNDO = 100; // states that can be gone back to

export function snapped(x: number, y: number, c: number): Point {
  const inside = (v: number): number => Math.round(Math.max(-EDGE, Math.min(EDGE, v)) / UNIT) * UNIT;
  return { x: Number(inside(x).toFixed(3)), y: Number(inside(y).toFixed(3)), c };
}

/** The classes among the points, ascending; the second of two is the one with f > 0. */
export function classesOf(points: readonly Point[]): number[] {
  return [...new Set(points.map((p) => p.c))].sort();
}

/** Holds the state, tells of changes, and goes back. */
export class Store {
  private past: State[] = [];
  private readonly listeners: (() => void)[] = [];

  constructor(private current: State) {}

  get state(): State {
    return this.current;
  }

  listen(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Change some of the state; a gesture, such as a drag, is one step back however many changes it makes. */
  set(change: Partial<State>, gesture = false): void {
    if (!gesture) this.mark();
    this.current = { ...this.current, ...change };
    for (const listener of this.listeners) listener();
  }

  /** The state before a gesture is what one goes back to. */
  mark(): void {
    this.past = [...this.past.slice(-UNDO), this.current];
  }

  undo(): void {
    const before = this.past.pop();
    if (before === undefined) return;
    this.current = before;
    for (const listener of this.listeners) listener();
  }
}

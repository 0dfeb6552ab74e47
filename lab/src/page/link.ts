// The state as the part of a link after #, and back.
import type { LossName } from "../numeric/losses.ts";
import { parse } from "../kernels/text.ts";
import { EDGE, type Point, PRICES, type State, UNIT, VIEWS, type ViewName } from "./state.ts";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const MIDDLE = 2048; // two digits hold a coordinate in units, from -2048
const MOST = 2000; // points: their kernel matrix takes 32 MB
export const LOSSES: readonly LossName[] = ["hinge", "squared_hinge", "logistic", "squared", "absolute", "pinball"];
export const LABEL_LOSSES: readonly LossName[] = ["hinge", "squared_hinge", "logistic"];

export function toLink(state: State): string {
  const out = new URLSearchParams({
    kernel: state.kernel,
    loss: state.loss,
    C: String(state.C),
    task: state.task,
    view: state.view,
  });
  if (state.loss === "pinball") out.set("quantile", String(state.quantile));
  const two = (v: number): string => {
    const whole = Math.round(v / UNIT) + MIDDLE;
    return DIGITS[whole >> 6]! + DIGITS[whole & 63]!;
  };
  out.set("points", state.points.map((p) => two(p.x) + two(p.y) + DIGITS[p.c]!).join(""));
  return `#${out}`;
}

/** The state that a link holds; an Error with a sentence where it holds none. */
export function fromLink(hash: string, usual: State): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const known = <T extends string>(name: string, of: readonly T[], otherwise: T): T => {
    const value = given.get(name) ?? otherwise;
    if (!of.includes(value as T))
      throw new Error(`${name} is ${of.join(", ")} in a link; this one says '${value.slice(0, 40)}'.`);
    return value as T;
  };
  const number = (name: string, low: number, high: number, otherwise: number): number => {
    const value = given.has(name) ? Number(given.get(name)) : otherwise;
    if (!(value >= low && value <= high))
      throw new Error(
        `${name} is a number from ${low} to ${high} in a link; this one says '${given.get(name)?.slice(0, 40)}'.`,
      );
    return value;
  };
  const task = known("task", ["classes", "values"] as const, "classes");
  const loss = known("loss", LOSSES, task === "classes" ? "hinge" : "squared");
  if (task === "values" && LABEL_LOSSES.includes(loss))
    throw new Error(`the loss ${loss} is for classes; this link has values to predict.`);
  const kernel = given.get("kernel") ?? usual.kernel;
  parse(kernel);
  return {
    task,
    loss,
    kernel,
    C: number("C", ...PRICES, 1),
    quantile: number("quantile", 0.02, 0.98, 0.5),
    view: known<ViewName>("view", VIEWS, "points"),
    points: given.has("points") ? points(given.get("points")!) : usual.points,
  };
}

function points(text: string): Point[] {
  if (text.length % 5 || text.length > 5 * MOST)
    throw new Error(
      `the points of a link are groups of five characters, at most ${MOST}; this one has ${text.length} characters.`,
    );
  return Array.from({ length: text.length / 5 }, (_, i) => {
    const [a, b, c, d, kind] = [...text.slice(5 * i, 5 * i + 5)].map((digit) => DIGITS.indexOf(digit)) as [
      number,
      number,
      number,
      number,
      number,
    ];
    const [x, y] = [64 * a + b - MIDDLE, 64 * c + d - MIDDLE].map((v) => Number((v * UNIT).toFixed(3))) as [
      number,
      number,
    ];
    if (Math.min(a, b, c, d, kind) < 0 || kind > 2 || Math.max(Math.abs(x), Math.abs(y)) > EDGE)
      throw new Error(`point ${i + 1} of the link is none: '${text.slice(5 * i, 5 * i + 5)}'.`);
    return { x, y, c: kind };
  });
}

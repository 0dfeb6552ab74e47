// The losses of the page: values and conjugates for the certificate, boxes for SMO (src/mercer/losses).
import type { Box } from "./core.ts";

export type LossName = "hinge" | "squared_hinge" | "logistic" | "squared" | "absolute" | "pinball";

export interface Loss {
  readonly name: LossName;
  readonly title: string;
  /** What y is: a label -1 or 1, or any number. */
  readonly labels: boolean;
  value(y: number, f: number): number;
  derivative(y: number, f: number): number;
  conjugate(y: number, u: number): number;
  /** How far coefficients may go, for one unit of C; only piecewise linear losses have it. */
  box?(y: number): readonly [upper: number, lower: number];
  /** Its number in smooth.hpp; only smooth losses have it. */
  readonly smooth?: number;
}

function xlogx(p: number): number {
  return p > 0 ? p * Math.log(p) : 0;
}

/** The losses by name; the pinball's quantile is the share of truths that should lie below. */
export function lossOf(name: LossName, quantile = 0.5): Loss {
  switch (name) {
    case "hinge":
      return {
        name,
        title: "hinge",
        labels: true,
        value: (y, f) => Math.max(0, 1 - y * f),
        derivative: (y, f) => (y * f < 1 ? -y : 0),
        conjugate: (y, u) => (y * u >= -1 - 1e-12 && y * u <= 1e-12 ? y * u : Infinity),
        box: (y) => (y > 0 ? [1, 0] : [0, 1]),
      };
    case "squared_hinge":
      return {
        name,
        title: "squared hinge",
        labels: true,
        smooth: 2,
        value: (y, f) => Math.max(0, 1 - y * f) ** 2,
        derivative: (y, f) => -2 * y * Math.max(0, 1 - y * f),
        conjugate: (y, u) => (y * u <= 0 ? y * u * (1 + (y * u) / 4) : Infinity),
      };
    case "logistic":
      return {
        name,
        title: "logistic",
        labels: true,
        smooth: 1,
        value: (y, f) => Math.log1p(Math.exp(-Math.abs(y * f))) + Math.max(0, -y * f),
        derivative: (y, f) =>
          y * f > 0 ? (-y * Math.exp(-y * f)) / (1 + Math.exp(-y * f)) : -y / (1 + Math.exp(y * f)),
        conjugate: (y, u) => (y * u >= -1 && y * u <= 0 ? xlogx(-y * u) + xlogx(1 + y * u) : Infinity),
      };
    case "squared":
      return {
        name,
        title: "squared",
        labels: false,
        smooth: 0,
        value: (y, f) => (f - y) ** 2 / 2,
        derivative: (y, f) => f - y,
        conjugate: (y, u) => u * (y + u / 2),
      };
    case "absolute":
      return {
        name,
        title: "absolute",
        labels: false,
        value: (y, f) => Math.abs(f - y),
        derivative: (y, f) => Math.sign(f - y),
        conjugate: (y, u) => (Math.abs(u) <= 1 + 1e-12 ? u * y : Infinity),
        box: () => [1, 1],
      };
    case "pinball":
      return {
        name,
        title: "pinball",
        labels: false,
        value: (y, f) => Math.max(quantile * (y - f), (1 - quantile) * (f - y)),
        derivative: (y, f) => (f > y ? 1 - quantile : f < y ? -quantile : 0),
        conjugate: (y, u) => (u >= -quantile - 1e-12 && u <= 1 - quantile + 1e-12 ? u * y : Infinity),
        box: () => [quantile, 1 - quantile],
      };
  }
}

/** The dual's box of a piecewise linear loss, for all points. */
export function boxOf(loss: Loss, y: Float64Array, C: number): Box {
  const bounds = [...y].map((v) => loss.box!(v));
  return {
    linear: y.map((v) => -v),
    upper: bounds.map(([up]) => C * up),
    lower: bounds.map(([, down]) => C * down),
    width: new Float64Array(y.length),
  };
}

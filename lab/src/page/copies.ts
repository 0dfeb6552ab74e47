// The same problem for the library: Python code, and commands.
import { text } from "../kernels/kernel.ts";
import type { Model } from "./model.ts";
import type { Point } from "./state.ts";

const LOSSES: Record<string, string> = {
  squared_hinge: "SquaredHinge()",
  logistic: "Logistic()",
  squared: "Squared()",
  absolute: "Absolute()",
};

/** A program that fits the very machine of the page: with other losses than the hinge, three classes are pairs here. */
export function python({ state, kernel, machines }: Model): string {
  const labels = state.task === "classes";
  const hinge = state.loss === "hinge";
  const pairs = labels && !hinge;
  const rows = (of: (p: Point) => string): string => state.points.map(of).join(", ");
  const code = text(kernel);
  const names = [...new Set(code.match(/[A-Z]\w+/g)), hinge ? "SVC" : "KernelMachine"].join(", ");
  const loss = LOSSES[state.loss] ?? `Pinball(${state.quantile})`;
  const model = hinge
    ? `SVC(C=${state.C}, kernel=kernel, tol=1e-7)`
    : `KernelMachine(kernel, loss=${loss}, penalty=${1 / state.C}, tol=1e-7)`;
  const fits = [`model = ${model}.fit(X, y)`, "print(model.certificate_)"];
  const each = (): string[] => [
    `for low, high in [${machines.map(({ pair }) => `(${pair!.map((c) => c + 1).join(", ")})`).join(", ")}]:`,
    "    rows = (y == low) | (y == high)",
    `    model = ${model}.fit(X[rows], np.where(y[rows] == low, -1, 1))`,
    "    print(model.certificate_)",
  ];
  return [
    "import numpy as np",
    `from mercer import ${names}`,
    ...(hinge ? [] : [`from mercer.losses import ${loss.replace(/\(.*/, "")}`]),
    "",
    `X = np.array([${rows((p) => (labels ? `[${p.x}, ${p.y}]` : `[${p.x}]`))}])`,
    `y = np.array([${rows((p) => String(labels ? p.c + 1 : p.y))}])`,
    `kernel = ${code}`,
    ...(pairs ? each() : fits),
    "print(kernel.proof())",
  ].join("\n");
}

/** Commands that write the points as a table, fit it with this kernel, and look at the kernel's matrix. */
export function command({ state, kernel }: Model): string {
  const head = state.task === "classes" ? "x1,x2,class" : "x,y";
  const rows = state.points.map((p) => (state.task === "classes" ? `${p.x},${p.y},${"abc"[p.c]}` : `${p.x},${p.y}`));
  const target = state.task === "classes" ? "class" : "y";
  return [
    `cat > points.csv <<'END'`,
    head,
    ...rows,
    "END",
    `mercer fit points.csv --target ${target} --kernel '${text(kernel)}' --report report.html`,
    `mercer check '${text(kernel)}' points.csv --drop ${target}`,
  ].join("\n");
}

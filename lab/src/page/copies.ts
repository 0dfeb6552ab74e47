// The same problem for the library: Python code, and commands.
import { text } from "../kernels/kernel.ts";
import { LABEL_LOSSES } from "./link.ts";
import type { Model } from "./model.ts";

const LOSSES: Record<string, string> = {
  squared_hinge: "SquaredHinge()",
  logistic: "Logistic()",
  squared: "Squared()",
  absolute: "Absolute()",
};

/** A program that fits the very machine of the page. */
export function python({ state, kernel }: Model): string {
  const labels = state.task === "classes";
  const rows = (of: (p: { x: number; y: number; c: number }) => string): string => state.points.map(of).join(", ");
  const X = labels ? rows((p) => `[${p.x}, ${p.y}]`) : rows((p) => `[${p.x}]`);
  const real = labels && !LABEL_LOSSES.includes(state.loss);
  const y = rows((p) => String(labels ? (real ? 2 * p.c - 1 : p.c + 1) : p.y));
  const code = text(kernel);
  const names = [...new Set(code.match(/[A-Z]\w+/g))].join(", ");
  const loss = LOSSES[state.loss] ?? `Pinball(${state.quantile})`;
  const model =
    state.loss === "hinge"
      ? `SVC(C=${state.C}, kernel=kernel, tol=1e-7)`
      : `KernelMachine(kernel, loss=${loss}, penalty=${1 / state.C}, tol=1e-7)`;
  return [
    "import numpy as np",
    `from mercer import ${names}, ${state.loss === "hinge" ? "SVC" : "KernelMachine"}`,
    ...(state.loss === "hinge" ? [] : [`from mercer.losses import ${loss.replace(/\(.*/, "")}`]),
    "",
    `X = np.array([${X}])`,
    `y = np.array([${y}])`,
    `kernel = ${code}`,
    `model = ${model}.fit(X, y)`,
    "print(model.certificate_)",
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

// The certificate of this very fit: dual <= optimum <= primal, and what the solution is made of.
import { byId, digits, el } from "./dom.ts";
import { account, type Model } from "./model.ts";

export const CONVERGED = 1e-6; // relative gap from which the page calls a fit converged

export function certificate(model: Model | undefined, milliseconds: number): void {
  const host = byId("certificate");
  if (model === undefined || model.machines.length === 0) {
    host.replaceChildren(
      el(
        "p",
        { class: "quiet" },
        model === undefined
          ? "No fit: see what is said of the kernel."
          : "Draw points of two classes: there is nothing to separate yet.",
      ),
    );
    return;
  }
  const a = account(model);
  const { state, machines } = model;
  const sound = model.proof.status === "proven";
  const holds = sound && a.gap <= CONVERGED;
  const verdict = !sound
    ? "no certificate: the kernel is not proven positive semidefinite"
    : holds
      ? "certified: dual ≤ optimum ≤ primal, this close"
      : "not converged: the optimum lies between the two";
  const fact = (name: string, value: string, title: string): HTMLElement =>
    el("div", { title }, el("dt", {}, name), el("dd", { "data-fact": name }, value));
  const smo = machines[0]!.fit.method;
  host.replaceChildren(
    el(
      "p",
      { class: `status ${holds ? "proven" : sound ? "unproven" : "refuted"}` },
      el("b", {}, holds ? "✓ " : "! "),
      verdict,
    ),
    el(
      "dl",
      { class: "facts" },
      fact("primal", digits(a.primal, 6), "½ |f|² + C Σ loss"),
      fact("dual", digits(a.dual, 6), "a lower bound of every primal value, by weak duality"),
      fact("gap", sound ? digits(Math.max(a.gap, 0), 2) : "none", "(primal − dual) / the larger of both"),
      fact(
        "|f|",
        a.square < 0 ? "none" : digits(a.norm),
        a.square < 0
          ? "a′Ka < 0: there is no space in which this would be a length"
          : "the norm of f in the space of the kernel",
      ),
      state.task === "classes" && machines.length === 1
        ? fact(
            "margin",
            a.square > 0 ? digits(2 / a.norm) : "none",
            "2 / |f|: how far f = −1 and f = 1 are apart in feature space",
          )
        : fact("machines", String(machines.length), "one for each pair of classes"),
      fact("support", `${a.support} of ${state.points.length}`, "points with α ≠ 0"),
      state.task === "classes"
        ? fact("errors", String(a.wrong), "points on the wrong side")
        : fact("b", digits(machines[0]!.fit.offset), "the offset"),
      fact("steps", `${a.steps}`, `of ${smo}; ${milliseconds.toFixed(1)} ms for matrix and fit`),
    ),
  );
}

// The left side: the kernel with its text, its sliders and its proof; the loss and the price.
import { KERNELS } from "../catalogue.ts";
import { type Argument, entryOf, type Kernel, type Proof, replaced, text, walk } from "../kernels/kernel.ts";
import { KernelError, parse } from "../kernels/text.ts";
import { lossOf } from "../numeric/losses.ts";
import { byId, choice, digits, el, inHand, renew, slider, type SliderRange } from "./dom.ts";
import type { Lab } from "./lab.ts";
import { LABEL_LOSSES, LOSSES } from "./link.ts";
import { PRICES } from "./state.ts";

const RANGES: Record<string, SliderRange> = {
  scale: { low: 0.02, high: 20, log: true },
  period: { low: 0.2, high: 20, log: true },
  factor: { low: 0.01, high: 100, log: true },
  alpha: { low: 0.05, high: 20, log: true },
  gamma: { low: 0.01, high: 10, log: true },
  c2: { low: 0.01, high: 10, log: true },
  c1: { low: 0, high: 5 },
  c: { low: -3, high: 3 },
  value: { low: 0, high: 10 },
  degree: { low: 1, high: 10, whole: true },
};
const POWER: SliderRange = { low: 1, high: 6, whole: true };
const FRACTION: SliderRange = { low: 0.1, high: 2 };

/** Ways to make a kernel of a kernel: what the button shows, and the text it makes of the text. */
const RULES: readonly (readonly [string, string, (k: string) => string])[] = [
  ["k²", "the product of the kernel with itself", (k) => `(${k}) ** 2`],
  ["exp k", "the exponential, a limit of sums of powers", (k) => `(${k}).exp()`],
  ["k / √kk", "the cosine in feature space", (k) => `(${k}).normalized()`],
  ["2 k", "a non-negative multiple", (k) => `2 * (${k})`],
];

export class Controls {
  private readonly input = byId<HTMLTextAreaElement>("kernel");
  private shape = ""; // of the kernel whose sliders are shown: its text without the numbers
  private readonly sliderHost = byId("sliders");
  private readonly lossHost = byId("loss");

  constructor(private readonly lab: Lab) {
    this.input.addEventListener("input", () => lab.store.set({ kernel: this.input.value }, true));
    this.input.addEventListener("focus", () => lab.store.mark());
    this.builder();
  }

  private builder(): void {
    const names = el(
      "select",
      { "aria-label": "kernel to add" },
      ...Object.keys(KERNELS).map((name) => el("option", {}, name)),
    );
    names.value = "RBF";
    const about = el("div", { class: "formula" });
    const show = (): void => {
      const entry = KERNELS[names.value]!;
      about.innerHTML = entry.formula; // of the catalogue: MathML, or the first line of a docstring
      about.title = entry.summary;
    };
    names.addEventListener("change", show);
    show();
    const one = (): string =>
      `${names.value}(${KERNELS[names.value]!.parameters.some((p) => p.name === "scale") ? "scale=1" : ""})`;
    const put = (make: (k: string) => string) => () => {
      let now = "";
      try {
        now = text(parse(this.lab.store.state.kernel));
      } catch {
        now = one();
      }
      this.lab.store.set({ kernel: text(parse(make(now))) });
    };
    byId("builder").replaceChildren(
      el(
        "div",
        { class: "buttons" },
        names,
        el("button", { type: "button", click: put(() => one()) }, "use"),
        el("button", { type: "button", click: put((k) => `${k} + ${one()}`) }, "k +"),
        el("button", { type: "button", click: put((k) => `(${k}) * ${one()}`) }, "k ×"),
      ),
      about,
      el(
        "div",
        { class: "buttons" },
        ...RULES.map(([shown, title, make]) => el("button", { type: "button", title, click: put(make) }, shown)),
      ),
    );
  }

  /** Show the state, and what is wrong with it. */
  update(error: Error | undefined): void {
    const { state } = this.lab.store;
    if (document.activeElement !== this.input || this.input.value !== state.kernel) this.input.value = state.kernel;
    this.input.setAttribute("aria-invalid", String(error !== undefined));
    byId("error").replaceChildren(...(error ? this.complaint(error) : []));
    this.sliders();
    this.losses();
  }

  private complaint(error: Error): (Node | string)[] {
    const said = error.message;
    if (!(error instanceof KernelError)) return [said];
    const { kernel } = this.lab.store.state;
    const [before, at, after] = [
      kernel.slice(0, error.start),
      kernel.slice(error.start, error.end) || " ",
      kernel.slice(error.end),
    ];
    return [el("code", {}, before, el("mark", {}, at), after), el("br"), said];
  }

  private sliders(): void {
    let kernel: Kernel;
    try {
      kernel = parse(this.lab.store.state.kernel);
    } catch {
      return;
    }
    const shown = this.lab.model?.kernel ?? kernel;
    const many = (v: Argument): number => (Array.isArray(v) ? v.length : 1);
    const shape = JSON.stringify([...walk(kernel)].map(([k, way]) => [k.name, way, Object.values(k.given).map(many)]));
    if (inHand(this.sliderHost) && shape === this.shape) return;
    this.shape = shape;
    renew(this.sliderHost, ...[...walk(kernel)].flatMap(([k, way]) => this.ofKernel(k, way, at(shown, way))));
  }

  private ofKernel(k: Kernel, way: readonly string[], shown: Kernel | undefined): HTMLElement[] {
    const change = (name: string, value: Argument, gesture: boolean): void => {
      const kernel = replaced(parse(this.lab.store.state.kernel), way, (old) => ({
        ...old,
        given: { ...old.given, [name]: value },
      }));
      this.lab.store.set({ kernel: text(kernel) }, gesture);
    };
    const out = entryOf(k).parameters.flatMap((p) => {
      const given = k.given[p.name]!;
      const value = typeof given === "string" ? (shown?.given[p.name] ?? 1) : given;
      const title = k.name === "Scaled" ? "factor" : k.name === "Power" ? "power" : `${p.name} of ${k.name}`;
      if (p.choices.length > 0) {
        const options = p.choices.map((v) => [String(v), String(v)] as const);
        return [
          el(
            "div",
            { class: "slider" },
            el("span", {}, title),
            choice(`${way.join("")}${p.name}`, options, String(value), (v) => change(p.name, Number(v), false)),
          ),
        ];
      }
      const range = p.name === "power" ? (k.name === "Power" ? POWER : FRACTION) : RANGES[p.name];
      if (range === undefined) return [];
      const many = Array.isArray(value) ? (value as number[]) : [value as number];
      return many.map((v, i) =>
        slider(p.name, many.length > 1 ? `${title}, feature ${i}` : title, range, v, (now, gesture) =>
          change(p.name, many.length > 1 ? many.with(i, now) : now, gesture),
        ),
      );
    });
    return [...out, ...this.factors(k, way)];
  }

  /** The factors of .transformed([a, b]). */
  private factors(k: Kernel, way: readonly string[]): HTMLElement[] {
    const factors = k.by;
    if (k.name !== "Transformed" || !Array.isArray(factors) || factors.some((v) => typeof v !== "number")) return [];
    return (factors as number[]).map((v, i) =>
      slider("unit", `factor of feature ${i}`, RANGES["factor"]!, v, (now, gesture) => {
        const kernel = replaced(parse(this.lab.store.state.kernel), way, (old) => ({
          ...old,
          by: (old.by as number[]).with(i, now),
        }));
        this.lab.store.set({ kernel: text(kernel) }, gesture);
      }),
    );
  }

  private losses(): void {
    const { store } = this.lab;
    const { state } = store;
    const shape = state.loss + state.task;
    if (inHand(this.lossHost) && this.lossHost.dataset["shape"] === shape) return;
    this.lossHost.dataset["shape"] = shape;
    const usable = state.task === "values" ? LOSSES.filter((l) => !LABEL_LOSSES.includes(l)) : LOSSES;
    renew(
      this.lossHost,
      choice(
        "loss",
        usable.map((name) => [name, lossOf(name).title] as const),
        state.loss,
        (loss) => store.set({ loss }),
      ),
      el("p", { class: "quiet" }, "Swap only the loss: a grey line stays where f was."),
      lossCurve(state.loss, state.quantile, state.task === "classes"),
      slider("C", "C, the price of a loss", { low: PRICES[0], high: PRICES[1], log: true }, state.C, (C, gesture) =>
        store.set({ C }, gesture),
      ),
      ...(state.loss === "pinball"
        ? [
            slider("quantile", "quantile", { low: 0.02, high: 0.98 }, state.quantile, (quantile, gesture) =>
              store.set({ quantile }, gesture),
            ),
          ]
        : []),
    );
  }

  /** The proof, or why there is none; `verdict` is what the matrix says, once it has been asked. */
  proof(proof: Proof | undefined, verdict: string): void {
    const said = { proven: "proven", unproven: "not proven", refuted: "refuted" };
    byId("proof").replaceChildren(
      ...(proof
        ? [
            el(
              "p",
              { class: `status ${proof.status}` },
              el("b", {}, said[proof.status]),
              proof.status === "proven"
                ? " positive semidefinite on every set of points"
                : verdict
                  ? ` ${verdict}`
                  : "",
            ),
            tree(proof),
          ]
        : []),
    );
  }
}

function at(kernel: Kernel, way: readonly string[]): Kernel | undefined {
  return way.reduce<Kernel | undefined>((k, name) => k?.parts[name], kernel);
}

function tree(proof: Proof): HTMLElement {
  return el(
    "details",
    { open: true, class: proof.status },
    el("summary", {}, el("code", {}, proof.claim)),
    el("p", {}, el("b", {}, `${proof.rule}: `), proof.reason),
    ...proof.parts.map(tree),
  );
}

/** The loss as a function of the margin y f, or of the error f - y. */
function lossCurve(name: Parameters<typeof lossOf>[0], quantile: number, labels: boolean): HTMLElement {
  const loss = lossOf(name, quantile);
  const [low, high, top] = [-2.5, 2.5, 3];
  const x = (v: number): number => ((v - low) / (high - low)) * 200;
  const y = (v: number): number => 58 - (Math.min(v, top * 2) / top) * 52;
  const line = Array.from({ length: 101 }, (_, i) => low + ((high - low) * i) / 100)
    .map((v) =>
      `${digits(x(v), 5)},${digits(y(loss.labels || labels ? loss.value(1, v) : loss.value(0, v)), 5)}`.replaceAll(
        "−",
        "-",
      ),
    )
    .join(" ");
  const ticks = [-2, -1, 0, 1, 2]
    .map(
      (v) =>
        `<text x="${x(v)}" y="70" text-anchor="middle">${String(v).replace("-", "−")}</text><line x1="${x(v)}" x2="${x(v)}" y1="58" y2="61"/>`,
    )
    .join("");
  const host = el("div", { class: "losscurve" });
  host.innerHTML = `<svg viewBox="0 0 200 74" role="img" aria-label="the loss as a function of ${labels ? "y f" : "f − y"}"><line x1="0" x2="200" y1="58" y2="58"/><line x1="${x(labels ? 1 : 0)}" x2="${x(labels ? 1 : 0)}" y1="2" y2="58" class="dash"/>${ticks}<polyline points="${line}"/><text x="199" y="52" text-anchor="end">${labels ? "y f" : "f − y"}</text></svg>`;
  return host;
}

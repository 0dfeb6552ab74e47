// The page as a whole: what is fitted and drawn when, and what the buttons do.
import type { Core } from "../numeric/core.ts";
import { DualView } from "../views/dual.ts";
import { FeaturesView } from "../views/features.ts";
import { GramView, verdict } from "../views/gram.ts";
import { LiftView } from "../views/lift.ts";
import { MapView } from "../views/map.ts";
import { PointsView } from "../views/points.ts";
import { StepsView } from "../views/steps.ts";
import { certificate, CONVERGED } from "./certificate.ts";
import { Controls } from "./controls.ts";
import { command, python } from "./copies.ts";
import { byId, choice, el, palette, type Rgb } from "./dom.ts";
import type { Lab, View } from "./lab.ts";
import { fromLink, LABEL_LOSSES, toLink } from "./link.ts";
import { account, type Model, solved } from "./model.ts";
import { type Brush, Plane } from "./plane.ts";
import { LESSONS, PRESETS } from "./presets.ts";
import { type State, Store, type ViewName } from "./state.ts";

const PAUSE = 180; // milliseconds without a change after which the page takes its time
const NOTICE = 6000; // milliseconds for which a message stays

const VIEWS: Record<ViewName, readonly [string, new (host: HTMLElement, lab: Lab) => View]> = {
  points: ["Points", PointsView],
  gram: ["Gram", GramView],
  dual: ["Dual", DualView],
  lift: ["Lift", LiftView],
  features: ["Features", FeaturesView],
  map: ["Held-out", MapView],
  steps: ["Steps", StepsView],
};

const HANDS = "Click draws, drag moves, right-click or “erase” deletes.";
const LEGENDS = {
  classes: `${HANDS} The dark line is f = 0, the thin ones are f = ±1, and beyond them the colour is deep; a ring marks a point with α ≠ 0, a faint one α = C.`,
  votes: `${HANDS} Each pair of classes has its machine, and a colour is the class with the most votes; a ring marks a point with α ≠ 0.`,
  values: `${HANDS} The line is f; the thin ones lead from the points to it.`,
};

export class App implements Lab {
  readonly store: Store;
  model: Model | undefined;
  colour: (name: string) => Rgb = palette();
  marked: readonly number[] = [];
  instead: Lab["instead"];
  beside: Lab["beside"];

  private readonly plane: Plane;
  private readonly controls: Controls;
  private view: { name: ViewName; shown: View } | undefined;
  private frame = 0;
  private redrawing = 0;
  private pause = 0;

  constructor(readonly core: Core) {
    const usual = { view: "points", quantile: 0.5, ...PRESETS["rings"]!.state() } as State;
    this.store = new Store(this.linked(usual) ?? usual);
    this.plane = new Plane(this);
    this.controls = new Controls(this);
    this.store.listen(() => this.ask());
    this.buttons();
    this.whenThemed();
    window.addEventListener("hashchange", () => {
      if (location.hash === toLink(this.store.state)) return;
      const state = this.linked(this.store.state);
      if (state) this.store.set(state);
    });
    this.fit();
  }

  /** The state of the link; none, and a notice, where it is malformed. */
  private linked(usual: State): State | undefined {
    if (location.hash.length < 2) return undefined;
    try {
      return fromLink(location.hash, usual);
    } catch (error) {
      this.notice(`This link could not be read: ${(error as Error).message}`);
      return undefined;
    }
  }

  // -- fitting and drawing --------------------------------------------------------------------------------

  private ask(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.fit());
  }

  /** Fit and draw in one frame; what takes longer waits for a pause. */
  private fit(): void {
    this.frame = 0;
    const begin = performance.now();
    let error: Error | undefined;
    let next: Model | undefined;
    try {
      next = solved(this.core, this.store.state, { quick: true });
    } catch (caught) {
      error = caught as Error;
    }
    const milliseconds = performance.now() - begin;
    this.model?.K.release();
    this.model = next;
    this.showView();
    this.view!.shown.update(next, false);
    this.plane.draw(false);
    this.controls.update(error);
    this.controls.proof(next?.proof, "");
    certificate(next, milliseconds);
    this.tools();
    clearTimeout(this.pause);
    this.pause = window.setTimeout(() => this.settle(), PAUSE);
    document.body.dataset["frame"] = (performance.now() - begin).toFixed(2); // for the benchmark
  }

  private settle(): void {
    if (this.model !== undefined && account(this.model).gap > CONVERGED) this.finish(this.model);
    const { model } = this;
    this.view!.shown.update(model, true);
    this.view!.shown.point?.();
    this.plane.draw(true);
    if (model !== undefined && model.proof.status !== "proven" && model.X.n > 0)
      this.controls.proof(model.proof, verdict(model));
    history.replaceState(null, "", toLink(this.store.state));
    document.body.dataset["settled"] = String(Number(document.body.dataset["settled"] ?? 0) + 1); // for tests
  }

  /** Fit again, with the steps that SMO needs. */
  private finish(before: Model): void {
    const begin = performance.now();
    this.model = solved(this.core, before.state);
    before.K.release();
    certificate(this.model, performance.now() - begin);
  }

  mark(rows: readonly number[]): void {
    if (rows.length === this.marked.length && rows.every((row, i) => row === this.marked[i])) return;
    this.marked = rows;
    this.view?.shown.point?.();
    this.redraw();
  }

  redraw(): void {
    if (this.redrawing === 0 && this.frame === 0)
      this.redrawing = requestAnimationFrame(() => {
        this.redrawing = 0;
        this.plane.draw(true);
      });
  }

  private showView(): void {
    const { view: name } = this.store.state;
    if (this.view?.name === name) return;
    this.view?.shown.leave?.();
    const host = byId("view");
    host.replaceChildren();
    this.view = { name, shown: new VIEWS[name][1](host, this) };
    byId("tabs").replaceChildren(
      ...Object.entries(VIEWS).map(([key, [title]]) =>
        el(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${key}`,
            "aria-controls": "view",
            "aria-selected": String(key === name),
            click: () => this.store.set({ view: key as ViewName }),
          },
          title,
        ),
      ),
    );
  }

  // -- buttons --------------------------------------------------------------------------------------------

  private buttons(): void {
    const button = (title: string, click: () => void, said = ""): HTMLElement =>
      el("button", { type: "button", click, ...(said ? { title: said } : {}) }, title);
    byId("presets").append(
      ...Object.values(PRESETS).map(({ title, state }) => button(title, () => this.load(state()))),
    );
    byId("lessons").append(
      ...LESSONS.map(({ title, says, state }) =>
        el(
          "article",
          {},
          el("h3", {}, title),
          el("p", {}, says),
          button("Break it", () => {
            this.load(state());
            byId("plane").scrollIntoView({ block: "center", behavior: "smooth" });
          }),
        ),
      ),
    );
    byId("actions").append(
      button("Copy link", () =>
        this.copy(
          location.href.replace(/#.*/, "") + toLink(this.store.state),
          "The link holds the whole state of the page.",
        ),
      ),
      button(
        "Copy as Python",
        () => this.model && this.copy(python(this.model), "Python code that fits this machine."),
      ),
      button("Copy as command", () => this.model && this.copy(command(this.model), "Commands for a shell.")),
      button("Undo", () => this.store.undo(), "Ctrl + Z"),
      button("Light / dark", () => this.turn()),
    );
    document.addEventListener("keydown", (e) => {
      if (!(e.ctrlKey || e.metaKey) || e.key !== "z" || e.target instanceof HTMLTextAreaElement) return;
      if (e.target instanceof HTMLInputElement) e.target.blur(); // a slider in the hand would stay where it is
      this.store.undo();
    });
  }

  private load(state: Partial<State>): void {
    const { quantile } = this.store.state;
    this.store.set({ quantile, ...state });
  }

  /** Which class is drawn, for the task at hand; emptying the plane; classes or values. */
  private tools(): void {
    const { state } = this.store;
    const votes = (this.model?.machines.length ?? 0) > 1;
    byId("legend").textContent = LEGENDS[votes ? "votes" : state.task];
    const host = byId("tools");
    if (host.dataset["task"] === state.task) return;
    host.dataset["task"] = state.task;
    const brushes: (readonly [Brush, string])[] =
      state.task === "classes"
        ? [
            ["0", "● 1"],
            ["1", "▲ 2"],
            ["2", "■ 3"],
            ["erase", "erase"],
          ]
        : [
            ["0", "● draw"],
            ["erase", "erase"],
          ];
    this.plane.brush = "0";
    host.replaceChildren(
      choice("brush", brushes, "0", (brush) => (this.plane.brush = brush)),
      choice(
        "task",
        [
          ["classes", "classes"],
          ["values", "regression"],
        ] as const,
        state.task,
        (task) => {
          const { loss } = this.store.state;
          this.store.set({
            task,
            loss:
              task === "values" && LABEL_LOSSES.includes(loss)
                ? "squared"
                : task === "classes" && !LABEL_LOSSES.includes(loss)
                  ? "hinge"
                  : loss,
          });
        },
      ),
      el("button", { type: "button", click: () => this.store.set({ points: [] }) }, "clear"),
    );
  }

  private async copy(text: string, said: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.notice(`Copied. ${said}`);
    } catch {
      // A page from disk may not be allowed to: then the text is shown, to be copied by hand.
      const area = el("textarea", { readonly: true, rows: 6, "aria-label": "to be copied" });
      area.value = text;
      this.notice("The browser does not let the page copy; here it is.", area);
      area.select();
    }
    document.body.dataset["copied"] = text;
  }

  private notice(said: string, more?: HTMLElement): void {
    const host = byId("notice");
    host.replaceChildren(el("p", {}, said), ...(more ? [more] : []));
    host.hidden = false;
    if (more === undefined) window.setTimeout(() => (host.hidden = true), NOTICE);
  }

  // -- light and dark -------------------------------------------------------------------------------------

  private turn(): void {
    const dark =
      getComputedStyle(document.documentElement).colorScheme.includes("dark") &&
      !getComputedStyle(document.documentElement).colorScheme.includes("light");
    const now = document.documentElement.dataset["theme"] ? dark : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset["theme"] = now ? "light" : "dark";
    this.coloured();
  }

  private whenThemed(): void {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.coloured());
  }

  private coloured(): void {
    this.colour = palette();
    this.view?.shown.update(this.model, true);
    this.plane.draw(true);
  }
}

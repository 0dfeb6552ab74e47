// What the parts of the page share: the core, the state, the model, and what is pointed at.
import type { Core } from "../numeric/core.ts";
import type { Rgb } from "./dom.ts";
import type { Model } from "./model.ts";
import type { Store } from "./state.ts";

export interface Lab {
  readonly core: Core;
  readonly store: Store;
  /** What was fitted last; none where there is nothing to fit, or no kernel. */
  model: Model | undefined;
  colour: (name: string) => Rgb;
  /** The points that are pointed at, here or in a linked view. */
  marked: readonly number[];
  /** Point at some points everywhere. */
  mark(rows: readonly number[]): void;
  /** f at points of the plane, of what stands in place of the fit; none where the fit is shown. */
  instead: ((nodes: Float64Array, width: number) => Float64Array) | undefined;
  /** f whose zero is drawn beside that of the fit. */
  beside: ((nodes: Float64Array, width: number) => Float64Array) | undefined;
  /** Draw the plane again, with the same fit. */
  redraw(): void;
}

/** One of the linked views. */
export interface View {
  /** The model has changed; it is settled once the user has paused. */
  update(model: Model | undefined, settled: boolean): void;
  /** Other points are pointed at. */
  point?(): void;
  /** Another view takes the place. */
  leave?(): void;
}

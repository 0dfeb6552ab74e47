// The page, and what tests and benchmarks see of it.
import { Core } from "./numeric/core.ts";
import { numeric } from "./numeric/index.ts";
import { App } from "./page/app.ts";

const start = async (core: ArrayBuffer): Promise<App> => new App(await Core.from(core));

Object.assign(globalThis, { mercerLab: { numeric, start } });

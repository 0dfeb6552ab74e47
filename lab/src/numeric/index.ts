// What node sees of the page: the numeric core, for tests and benchmarks.
import { parse } from "../kernels/text.ts";
import { proof, text } from "../kernels/kernel.ts";
import { resolved } from "../kernels/resolve.ts";
import { Core } from "./core.ts";
import { fit } from "./fit.ts";
import { lossOf } from "./losses.ts";
import { Points } from "./points.ts";
import { eigenvalues, witness } from "./spectrum.ts";

export const numeric = { Core, Points, eigenvalues, fit, lossOf, parse, proof, resolved, text, witness };

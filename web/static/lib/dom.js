/** Preact and htm, in one place. */

export { html, render, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";

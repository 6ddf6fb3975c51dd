/**
 * The state of all jobs, live: one message a second at most.
 *
 * A hidden page has no connection, since a browser opens only six to a server, for all pages together.
 */
import { useEffect, useState } from "./dom.js";
import { get, giveUp, isReport } from "./documents.js";

/** A connection without a message for so long is broken, as after the sleep of a laptop; the server sends one every five seconds. */
const SILENCE_MS = 15_000;
const AGAIN_MS = 3_000;
const LOST = "The connection to tfprof web is lost: it has ended, or the tunnel is closed.";

const listeners = new Set();
let state = { top: null, problem: /** @type {string | null} */ (null), isConnected: isReport };
let source = /** @type {EventSource | null} */ (null);
let heard = 0;

function change(part) {
  state = { ...state, ...part };
  for (const listener of listeners) listener(state);
}

function connect() {
  source?.close();
  source = null;
  if (document.hidden) return;
  heard = Date.now();
  const opened = new EventSource("/api/live");
  source = opened;
  const on = (name, take) =>
    opened.addEventListener(name, (event) => {
      heard = Date.now();
      change({ isConnected: true, ...take(JSON.parse(event.data)) });
    });
  on("top", (top) => ({ top }));
  on("problem", ({ error }) => ({ problem: error }));
  on("alive", () => ({}));
  opened.addEventListener("error", async () => {
    change({ isConnected: false, problem: state.isConnected ? LOST : (state.problem ?? LOST) });
    if (opened.readyState !== EventSource.CLOSED) return; // else the browser tries again by itself
    const problem = await reason();
    if (source !== opened) return;
    change({ problem });
    setTimeout(() => source === opened && connect(), AGAIN_MS);
  });
}

/** Why the server refuses the connection: the event source itself does not tell. */
async function reason() {
  try {
    await get("/api/formats");
    return LOST;
  } catch (problem) {
    return problem.message;
  }
}

function check() {
  if (source === null || Date.now() - heard < SILENCE_MS) return;
  change({ isConnected: false, problem: LOST });
  giveUp();
  connect();
}

/**
 * Return the document of `tfprof top --all`, null before it arrives, what is wrong in words, and the state of the connection.
 * @returns {{top: any, problem: string | null, isConnected: boolean}}
 */
export function useLive() {
  const [current, setCurrent] = useState(state);
  useEffect(() => {
    if (isReport) return undefined;
    if (!listeners.size && source === null) {
      connect();
      document.addEventListener("visibilitychange", connect);
      setInterval(check, 1000);
    }
    listeners.add(setCurrent);
    setCurrent(state);
    return () => listeners.delete(setCurrent);
  }, []);
  return current;
}

/**
 * The state of all jobs, live: about one message a second.
 *
 * A browser opens only six connections to a server, for all its pages together. So one page that is
 * visible has the connection, and passes its messages on to the other pages. A lock says which.
 */
import { useEffect, useState } from "../vendor/preact-htm.js";
import { get, giveUp, isReport } from "./documents.js";

/** A connection without a message for so long is broken, as after the sleep of a laptop; the server sends one every five seconds. */
const SILENCE_MS = 15_000;
const AGAIN_MS = 3_000;
const LOST = "The connection to tfprof web is lost: it has ended, or the tunnel is closed.";
const NAME = "tfprof live";
const HELLO = "hello";

const listeners = new Set();
const channel = isReport ? null : new BroadcastChannel(NAME);
let state = { top: null, problem: /** @type {string | null} */ (null), isConnected: isReport };
/** The connection of this page; null if another page has it. */
let source = /** @type {EventSource | null} */ (null);
let heard = 0;
let stop = () => {};

function change(part) {
  state = { ...state, ...part };
  if (source !== null) channel.postMessage(part);
  for (const listener of listeners) listener(state);
}

/** Take part, or not while the page is hidden. */
function look() {
  stop();
  if (document.hidden) return;
  heard = Date.now();
  const waiting = new AbortController();
  let leave = () => {};
  stop = () => {
    waiting.abort();
    source?.close();
    source = null;
    leave();
  };
  channel.postMessage(HELLO);
  const lead = () => {
    if (waiting.signal.aborted) return undefined;
    connect();
    return new Promise((resolve) => (leave = () => resolve(undefined)));
  };
  navigator.locks.request(NAME, { signal: waiting.signal }, lead).catch(() => {}); // aborted
}

function connect() {
  source?.close();
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
    heard = Date.now();
    change({ problem });
    setTimeout(() => source === opened && connect(), AGAIN_MS);
  });
}

/** Why the server refuses the connection, which the event source itself does not tell. */
async function reason() {
  try {
    await get("/api/formats");
    return LOST;
  } catch (problem) {
    return problem.message;
  }
}

/** Take a message of another page. */
function receive(message) {
  if (message === HELLO) {
    if (source !== null && state.top !== null) channel.postMessage(state);
  } else if (source === null && !document.hidden) {
    heard = Date.now();
    change(message);
  }
}

function check() {
  if (document.hidden || Date.now() - heard < SILENCE_MS) return;
  change({ isConnected: false, problem: LOST });
  giveUp();
  look();
}

function start() {
  channel.onmessage = ({ data }) => receive(data);
  document.addEventListener("visibilitychange", look);
  setInterval(check, 1000);
  look();
}

let isStarted = false;

/**
 * Return the document of `tfprof top --all`, null before it arrives, what is wrong in words, and the state of the connection.
 * @returns {{top: any, problem: string | null, isConnected: boolean}}
 */
export function useLive() {
  const [current, setCurrent] = useState(state);
  useEffect(() => {
    if (isReport) return undefined;
    listeners.add(setCurrent);
    if (!isStarted) {
      isStarted = true;
      start();
    }
    setCurrent(state);
    return () => listeners.delete(setCurrent);
  }, []);
  return current;
}

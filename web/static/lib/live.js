/** The state of all jobs, live: one message a second at most. */
import { useEffect, useState } from "./dom.js";
import { isReport } from "./documents.js";

const listeners = new Set();
let state = { top: null, problem: null, isConnected: isReport };
let source = null;

function change(part) {
  state = { ...state, ...part };
  for (const listener of listeners) listener(state);
}

function connect() {
  source = new EventSource("/api/live");
  source.addEventListener("top", (event) => change({ top: JSON.parse(event.data), problem: null, isConnected: true }));
  source.addEventListener("problem", (event) => change({ problem: JSON.parse(event.data).error, isConnected: true }));
  source.addEventListener("error", () => {
    change({ isConnected: false });
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

/**
 * Return the document of `tfprof top --all`, null before it arrives, and the state of the connection.
 * @returns {{top: any, problem: string | null, isConnected: boolean}}
 */
export function useLive() {
  const [current, setCurrent] = useState(state);
  useEffect(() => {
    if (isReport) return undefined;
    listeners.add(setCurrent);
    if (source === null) connect();
    setCurrent(state);
    return () => listeners.delete(setCurrent);
  }, []);
  return current;
}

/**
 * The documents of a page: from the server, or from the data of a report.
 *
 * A document is what a command prints with `--json`. A report holds all its documents, by the same
 * paths.
 */
import { useEffect, useRef, useState } from "../vendor/preact-htm.js";

/** Shortest time between two requests of a document that is kept up to date (ms). */
const REFRESH_MS = 2000;
/** A document is requested at most once in this multiple of the time that the last answer took. */
const REST = 20;
/** Time after which a document that could not be read is requested again (ms). */
const AGAIN_MS = 3000;

const data = document.getElementById("data");
/** Whether this page is a report, without a server. */
export const isReport = data !== null;
const report = isReport ? unpack(data.textContent) : null;

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Return the content of the report: the path of its page, notes and documents. */
export function reportContent() {
  return report;
}

/** An answer of the server that is no document; `text` says why. */
export class Problem extends Error {
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

/** Answers of the last moment by path: parts of a page that need the same document share its request. */
const recent = new Map();
const SHARED_MS = 1000;

/**
 * Return the document at `path`.
 * @param {string} path
 * @returns {Promise<any>}
 */
export function get(path) {
  const old = recent.get(path);
  if (old !== undefined && performance.now() - old.at < SHARED_MS) return old.answer;
  const answer = read(path);
  recent.set(path, { at: performance.now(), answer });
  setTimeout(() => recent.get(path)?.answer === answer && recent.delete(path), 2 * SHARED_MS);
  return answer;
}

/** The requests that wait for an answer. */
let pending = new AbortController();

/** End all requests that wait for an answer: their connection is broken. */
export function giveUp() {
  pending.abort();
  pending = new AbortController();
}

/** Return the document at `path` from a request of its own; it throws a `Problem` if there is none. */
export async function read(path) {
  if (report !== null) {
    const { documents } = await report;
    if (!(path in documents)) throw new Problem("not part of this report", 404);
    return documents[path];
  }
  let response;
  try {
    response = await fetch(path, { signal: pending.signal });
  } catch {
    throw new Problem("no connection to tfprof web: it has ended, or the tunnel is closed", 0);
  }
  if (!response.ok) throw new Problem(await problemText(response), response.status);
  return response.json();
}

async function problemText(response) {
  if (response.status === 403) return "tfprof web has been started again: open the link that it has printed.";
  try {
    return (await response.json()).error;
  } catch {
    return `tfprof web answers ${response.status}`;
  }
}

/**
 * Return the document at `path`, which is requested again whenever `version` changes, and while it cannot be read.
 * @param {string | null} path
 * @param {unknown} [version]
 * @returns {{document: any, problem: Problem | null}}
 */
export function useDocument(path, version) {
  const [state, setState] = useState({ document: null, problem: null, path: null });
  const wanted = useRef(path);
  const [attempt, setAttempt] = useState(0);
  const asked = useRef({ path: /** @type {string | null} */ (null), next: 0 });
  const latest = useRef(version);
  [wanted.current, latest.current] = [path, version];
  useEffect(() => () => (wanted.current = null), []);
  useEffect(() => {
    if (path === null || asked.current.path === path) return undefined;
    const wait = state.path === path ? Math.max(0, asked.current.next - performance.now()) : 0;
    const timer = setTimeout(async () => {
      const [start, askedVersion] = [performance.now(), latest.current];
      asked.current.path = path;
      let answer;
      try {
        answer = { document: await get(path), problem: null, path };
      } catch (problem) {
        answer = { document: null, problem, path };
      }
      const end = performance.now();
      const isTriedAgain = answer.problem !== null && ![400, 404].includes(answer.problem.status);
      if (asked.current.path === path) asked.current = { path: null, next: end + (isTriedAgain ? AGAIN_MS : pause(end - start)) };
      if (wanted.current !== path) return;
      setState((old) => withOldDocument(answer, old));
      if (isTriedAgain || latest.current !== askedVersion) setAttempt((old) => old + 1);
    }, wait);
    return () => clearTimeout(timer);
  }, [path, version, attempt]);
  return state.path === path ? state : { document: null, problem: null };
}

function pause(duration) {
  return Math.max(REFRESH_MS, REST * duration);
}

/** If a document cannot be read again, the old one stays, with the problem beside it. */
function withOldDocument(answer, old) {
  return answer.problem !== null && old.path === answer.path ? { ...answer, document: old.document } : answer;
}

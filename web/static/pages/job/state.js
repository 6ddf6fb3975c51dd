/** The state of a job in words, as `tfprof jobs` shows it. */

import { count } from "../../lib/numbers.js";

/** What the state `stale` means. */
export const STALE = "The collector has ended: the figures of stale jobs are those until then. They go on when a collector runs again (tfprof start).";

/** Names of the signals that end processes. */
const SIGNALS = { 1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1",
  11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 16: "SIGSTKFLT", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM",
  27: "SIGPROF", 29: "SIGIO", 30: "SIGPWR", 31: "SIGSYS" };

/**
 * Return the words for a job's state, and the class of its dot.
 * @param {{state: string, phase: string, status: number | null, signal: number | null, odd_times: number}} job
 * @returns {{word: string, dot: string}}
 */
export function stateOf(job) {
  if (job.phase === "starting") return { word: "starting", dot: "running" };
  if (job.state === "running") return { word: "running", dot: "running" };
  if (job.signal) return { word: `${job.state} ${SIGNALS[job.signal] ?? job.signal}`, dot: "failed" };
  if (job.odd_times) return { word: `${job.state}, odd times`, dot: "failed" };
  if (job.status) return { word: `${job.state} ${job.status}`, dot: "failed" };
  return { word: job.state, dot: ["exited", "imported"].includes(job.state) ? "" : "failed" };
}

/** Return the number of a job's lost records and span entries as text. */
export function lostText(job) {
  return job.lost === null ? "unknown" : count(job.lost);
}

/** The public routes of the service that this page came from. */

/** Where they are: beside this page, under any path prefix. */
export const BASE = new URL(".", document.baseURI);

const PATIENCE_MS = 60_000;
const RETRIES = 2;
const LONGEST_PAUSE_MS = 5_000;
let key = ""; // nowhere else: not in storage, not in the address

export function useKey(given) {
  key = given.trim();
}

export const hasKey = () => key !== "";

/** The service answered with an error: its own message, field, limit and request id. */
export class Refused extends Error {
  constructor(status, { code, message, field, limit, request_id: requestId }) {
    super(message);
    Object.assign(this, { status, code, field, limit, requestId });
  }
}

/** There was no answer, or not one of this service. */
export class NoAnswer extends Error {}

/** GET a route, or POST `body` to it; too many requests (429) are sent again after the pause that the service asks for. */
export async function ask(path, body, signal) {
  for (let retry = 0; ; retry += 1) {
    const response = await send(path, body, signal);
    const pause = Number(response.headers.get("retry-after-ms") ?? NaN);
    if (response.status === 429 && retry < RETRIES && pause <= LONGEST_PAUSE_MS) {
      await new Promise((go) => setTimeout(go, pause));
      signal?.throwIfAborted();
    } else {
      return read(response);
    }
  }
}

async function send(path, body, signal) {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  if (key) headers["x-api-key"] = key;
  const late = AbortSignal.timeout(PATIENCE_MS);
  try {
    return await fetch(new URL(path, BASE), {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    if (late.aborted) throw new NoAnswer(`The service at ${BASE.origin} gave no answer within ${PATIENCE_MS / 1000} seconds.`);
    throw new NoAnswer(`No answer from ${BASE.origin}. Is the service running, and the network up?`);
  }
}

async function read(response) {
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    // not JSON: a proxy's page, or an answer that broke off
  }
  if (response.ok && answer !== null) return answer;
  if (answer?.error?.message) throw new Refused(response.status, answer.error);
  throw new NoAnswer(`The answer (status ${response.status}) is not of this service: a proxy before it may have failed.`);
}

/** Whether a request was given up by this page itself. */
export const wasStopped = (error) => error.name === "AbortError";

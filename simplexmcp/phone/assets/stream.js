// The stream to the server: requests with answers, pushes, and coming back after a loss.

const FIRST_PAUSE = 250; // milliseconds until the first try to come back
const LONGEST_PAUSE = 5000;

/** What a request that failed says to the person. */
export class Failure extends Error {}

export class Stream {
  #socket = null;
  #number = 0;
  #waiting = new Map(); // number of a request → its promise
  #pause = FIRST_PAUSE;
  #onPush;
  #onLost;

  /** `onPush(frame)` gets the pushes in their order; `onLost(sentence)` is called at each loss. */
  constructor(onPush, onLost) {
    this.#onPush = onPush;
    this.#onLost = onLost;
  }

  /** Connect, now and after every loss. */
  open() {
    const socket = new WebSocket(`ws://${location.host}/stream`);
    this.#socket = socket;
    socket.onmessage = (event) => this.#take(JSON.parse(event.data));
    socket.onclose = () => this.#lost();
  }

  /** Ask for something; its `ok`. Throws a Failure with a sentence. */
  ask(what, fields = {}) {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      return Promise.reject(new Failure("The server is gone. Try again when it is back."));
    }
    const id = ++this.#number;
    this.#socket.send(JSON.stringify({ id, do: what, ...fields }));
    return new Promise((done, failed) => this.#waiting.set(id, { done, failed }));
  }

  #take(frame) {
    if ("push" in frame) {
      this.#pause = FIRST_PAUSE;
      this.#onPush(frame);
      return;
    }
    const waiting = this.#waiting.get(frame.re);
    this.#waiting.delete(frame.re);
    if ("error" in frame) waiting?.failed(new Failure(frame.error));
    else waiting?.done(frame.ok);
  }

  async #lost() {
    for (const { failed } of this.#waiting.values()) failed(new Failure("The server went away before it answered."));
    this.#waiting.clear();
    this.#onLost(await reason());
    setTimeout(() => this.open(), this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }
}

/** Why the stream is lost: a server that was started again does not know this page any more. */
async function reason() {
  try {
    const answer = await fetch("/", { method: "GET", cache: "no-store" });
    if (answer.status === 401) return "This page is no longer valid. Open the URL that the server printed.";
  } catch {
    // No server: what is said below.
  }
  return "The server is gone. This page comes back by itself when the server does.";
}

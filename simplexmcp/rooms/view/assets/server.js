// The server: questions with answers, and the stream of news that comes back after a loss.

const FIRST_PAUSE = 250; // milliseconds until the first try to come back
const LONGEST_PAUSE = 5000;
const GONE = "The connection is lost: the program that shows this page has ended. The page comes back by itself.";

/** What a request that failed says to the person; `status` is 0 when nobody answered. */
export class Failure extends Error {
  constructor(text, status = 0) {
    super(text);
    this.status = status;
  }
}

/** The answer to `GET /api/PATH?…`. Throws a Failure with a sentence. */
export const ask = (path, query = {}) => answer(`/api/${path}?${new URLSearchParams(query)}`);

/** The answer to `POST /api/PATH`. Throws a Failure with a sentence. */
export const tell = (path, body) => answer(`/api/${path}`, { method: "POST", body: JSON.stringify(body) });

async function answer(url, init) {
  const response = await fetch(url, init).catch(() => null);
  const value = await response?.json().catch(() => null);
  if (!value) throw new Failure(GONE);
  if (!response.ok || value.error) throw new Failure(value.error, response.status);
  return value;
}

/** Calls `onNews(frame)` for each frame, and `onLost(sentence)` at each loss of the connection. */
export function listen(onNews, onLost) {
  let pause = FIRST_PAUSE;
  const open = () => {
    const socket = new WebSocket(`ws://${location.host}/stream`);
    socket.onmessage = (event) => {
      pause = FIRST_PAUSE;
      onNews(JSON.parse(event.data));
    };
    socket.onclose = async () => {
      onLost(await reason());
      setTimeout(open, pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    };
  };
  open();
}

/** Why the stream is lost: a program that was started again may not know this page any more. */
async function reason() {
  const response = await fetch("/", { cache: "no-store" }).catch(() => null);
  return response?.status === 401 ? "This page is no longer valid. Open the address that the program printed." : GONE;
}

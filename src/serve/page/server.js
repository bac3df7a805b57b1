// Requests to the server, and the events of its jobs. Addresses are relative to the page's: it may be
// served below a path.
import { $ } from "./dom.js";
import { session } from "./storage.js";

export const unreachable = "the server cannot be reached";

// The page's own address may hold a name and a password, with which no request may be made.
function addressOf(path) {
  const address = new URL(path, document.baseURI);
  address.username = address.password = "";
  return address.href;
}

const reach = (path, options) => fetch(addressOf(path), options).catch((error) => {
  console.debug(error);
  throw new Error(unreachable);
});

// A connection may be lost without a word: then nothing comes, and no error either. In milliseconds.
const kStatusTime = 20e3;
const kSilence = 45e3;  // a stream of events says something every 15 s

class Patience {
  static #all = new Set();
  #controller = new AbortController();
  #timer = 0;

  constructor() {
    this.renew();
  }
  // A page that is left keeps its connections in the browser's memory, and a browser has six to a server.
  static giveUp() {
    for (const one of Patience.#all) one.#controller.abort();
  }
  get signal() {
    return this.#controller.signal;
  }
  renew() {
    this.rest();
    Patience.#all.add(this);
    this.#timer = setTimeout(() => this.#controller.abort(), kSilence);
  }
  rest() {
    clearTimeout(this.#timer);
  }
  end() {
    this.rest();
    Patience.#all.delete(this);
  }
}
addEventListener("pagehide", Patience.giveUp);

// A proxy that does not reach the server answers with a page of its own.
export async function readStatus() {
  const response = await reach("readyz", { signal: AbortSignal.timeout(kStatusTime) });
  return response.json().catch((error) => {
    console.debug(error);
    throw new Error(unreachable);
  });
}

export async function ask(path, options = {}) {
  const headers = { ...options.headers };
  const key = session.read("api-key");
  if (key) headers.authorization = `Bearer ${key}`;
  const response = await reach(path, { ...options, headers });
  if (response.status === 401) {
    await askForKey(key);
    return ask(path, options);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const error = new Error(body?.error?.message ?? `the server answered ${response.status}`);
  error.param = body?.error?.param;
  error.status = response.status;
  throw error;
}

export const askJson = async (path, options) => (await ask(path, options)).json();

export const post = (path, body, signal) => askJson(path,
  { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });

export const keyNeeded = "a key is needed";
const needsKey = () => Object.assign(new Error(keyNeeded), { status: 401 });

// Who closes the dialog without a key is not asked again until the button is pressed: the page asks the
// server every few seconds.
let keyAsked = null, isDeclined = false;
function askForKey(refused) {
  // Another request may have been given a key meanwhile.
  if (!keyAsked && session.read("api-key") !== refused) return Promise.resolve();
  if (isDeclined) return Promise.reject(needsKey());
  keyAsked ??= new Promise((resolve, reject) => {
    const dialog = $("ask-key");
    $("key-wrong").hidden = !refused;
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      isDeclined = dialog.returnValue !== "use";
      $("give-key").hidden = !isDeclined;
      // HTTP takes only these characters; others are not in any key.
      const given = $("key").value.replace(/[^\x20-\x7e]/g, "").trim();
      $("key").value = "";
      keyAsked = null;
      if (isDeclined) return reject(needsKey());
      session.write("api-key", given);
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return keyAsked;
}
$("give-key").addEventListener("click", () => {
  isDeclined = false;
  askForKey(session.read("api-key")).catch(console.debug);
});

export const isOver = (state) => ["done", "failed", "cancelled"].includes(state);

// An event's data may have an `id` as well: the job's.
function eventOf(block) {
  const event = Object.fromEntries(block.split("\n").filter((line) => !line.startsWith(":"))
    .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
  return event.event ? { ...JSON.parse(event.data), name: event.event, id: event.id } : null;
}

// The connection is closed where the reading ends.
async function* piecesOf(stream, patience) {
  const reader = stream.getReader();
  try {
    for (;;) {
      patience.renew();
      const { value, done } = await reader.read();
      patience.rest();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(console.debug);
  }
}

// A file, however slowly it comes.
export async function askFile(path) {
  const patience = new Patience();
  try {
    const response = await ask(path, { signal: patience.signal }), pieces = [];
    for await (const piece of piecesOf(response.body, patience)) pieces.push(piece);
    return new Blob(pieces, { type: response.headers.get("content-type") });
  } catch (error) {
    throw error.status ? error : new Error(unreachable);
  } finally {
    patience.end();
  }
}

// The events of one connection.
async function* eventsOfStream(body, patience, onSign) {
  let text = "";
  for await (const piece of piecesOf(body.pipeThrough(new TextDecoderStream()), patience)) {
    onSign();
    text += piece;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const event of blocks.map(eventOf)) if (event) yield event;
  }
}

// Asking again would not help, unless there were too many requests.
const isRefusal = ({ status }) => status >= 400 && status < 500 && status !== 408 && status !== 429;

// The events of a job, resumed across broken connections. `onSign` is called at least once in a minute.
export async function* eventsOf(id, onSign) {
  let last = 0;
  for (let failures = 0; failures < 20;) {
    const patience = new Patience();
    onSign();
    try {
      const response = await ask(`v1/jobs/${id}/events`, { headers: { "last-event-id": `${last}` }, signal: patience.signal });
      for await (const event of eventsOfStream(response.body, patience, onSign)) {
        failures = 0;
        last = event.id;
        yield event;
        if (isOver(event.name)) return;
      }
    } catch (error) {
      if (isRefusal(error)) throw error;
    } finally {
      patience.end();
    }
    ++failures;
    await new Promise((resolve) => setTimeout(resolve, 500 * failures));
  }
  throw new Error(unreachable);
}

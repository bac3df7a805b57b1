// Requests to the server, and the events of its jobs.

const $ = (id) => document.getElementById(id);

// Browsers that block storage throw at the name alone: then nothing outlives the page.
const storage = (name) => {
  try {
    return window[name];
  } catch {
    return {};
  }
};
export const local = storage("localStorage"), session = storage("sessionStorage");

// Without room nothing is remembered, and the page works on.
export function remember(name, value) {
  try {
    local[name] = value;
  } catch (error) {
    console.debug(error);
  }
}

export const unreachable = "the server cannot be reached";
// The page may stand below a path, where addresses begin.
const base = new URL(".", document.baseURI).pathname.replace(/\/$/, "");
export const reach = (path, options) => fetch(base + path, options).catch(() => {
  throw new Error(unreachable);
});

export async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (session.key) headers.authorization = `Bearer ${session.key}`;
  const response = await reach(path, { ...options, headers });
  if (response.status === 401) {
    await askForKey();
    return ask(path, options);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const error = new Error(body?.error?.message ?? `the server answered ${response.status}`);
  error.param = body?.error?.param;
  error.status = response.status;
  throw error;
}

let keyAsked = null;
function askForKey() {
  keyAsked ??= new Promise((resolve) => {
    const dialog = $("ask-key");
    $("key-wrong").hidden = !session.key;
    dialog.addEventListener("close", () => {
      session.key = $("key").value;
      keyAsked = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return keyAsked;
}

export const isOver = (state) => ["done", "failed", "cancelled"].includes(state);

// The events of a job, resumed across broken connections.
export async function* eventsOf(id) {
  let last = 0;
  for (let failures = 0; failures < 20;) {
    try {
      const response = await ask(`/v1/jobs/${id}/events`, { headers: { "last-event-id": `${last}` } });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const blocks = text.split("\n\n");
        text = blocks.pop();
        for (const block of blocks) {
          const event = Object.fromEntries(block.split("\n").filter((line) => !line.startsWith(":"))
            .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
          if (!event.event) continue;
          failures = 0;
          last = event.id;
          yield { name: event.event, ...JSON.parse(event.data) };
          if (isOver(event.event)) return;
        }
      }
    } catch (error) {
      if (error.status === 404) throw error;
    }
    ++failures;
    await new Promise((resolve) => setTimeout(resolve, 500 * failures));
  }
  throw new Error(unreachable);
}

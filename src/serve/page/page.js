// The page: a form, the running job, and a gallery kept by the browser.
import { addPictures, chooseLoras, chosenLoras, hasPictures, lookAt, missing, offerPictures, startFrom, takePicture } from "./pictures.js";

const $ = (id) => document.getElementById(id);
const user = (localStorage.user ??= crypto.getRandomValues(new Uint32Array(4)).join("-"));
let capabilities = null;
let shown = null;      // the job whose progress is shown
let finished = null;   // the newest picture and its caption
let anySeed = true;
const jobs = new Map();  // running, by id

// ---- the server

const reach = (path, options) => fetch(path, options).catch(() => {
  throw new Error("the server cannot be reached");
});

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (sessionStorage.key) headers.authorization = `Bearer ${sessionStorage.key}`;
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
    $("key-wrong").hidden = !sessionStorage.key;
    dialog.addEventListener("close", () => {
      sessionStorage.key = $("key").value;
      keyAsked = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return keyAsked;
}

// The events of a job, resumed across broken connections.
async function* eventsOf(id) {
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
  throw new Error("the server cannot be reached");
}

let spokenStatus = "ready";
async function watchServer() {
  for (;;) {
    try {
      const status = await (await reach("/readyz")).json();
      $("server").textContent =
        status.status === "loading" ? `loading the model, ${Math.floor(status.loaded * 100)} %`
        : status.status !== "ready" ? "stopping"
        : status.running + status.waiting === 0 ? "idle"
        : `${status.running} running, ${status.waiting} waiting` +
          (status.seconds_until_idle ? `, ${duration(status.seconds_until_idle)} left` : "");
      sayStatus(status.status);
      if (status.status === "ready" && !capabilities) await begin();
    } catch (error) {
      $("server").textContent = error.message;
      sayStatus("unreachable");
    }
    await new Promise((resolve) => setTimeout(resolve, 3000));
  }
}

// The line above changes with each step: only changes of state are spoken.
function sayStatus(status) {
  if (status !== spokenStatus) $("spoken").textContent = `The server is ${status}.`;
  spokenStatus = status;
}

// ---- the form

async function begin() {
  await offerModel(localStorage.model ?? "");
  const { model, loras, ...settings } = JSON.parse(localStorage.settings ?? "{}");
  if (model !== capabilities.model) for (const name of ofTheModel) delete settings[name];
  fill({ ...capabilities.defaults, ...settings });
  chooseLoras(loras ?? []);
  for (const job of (await (await ask(`/v1/jobs?user=${user}`)).json()).jobs) follow(job);
}

// Settings that mean something else to another model.
const ofTheModel = ["steps", "guidance", "true_cfg"];

// Fits the form to the named model, or to the first one if there is no such model.
async function offerModel(name) {
  const first = await (await ask("/v1/capabilities")).json();
  const isOther = name !== first.model && first.models.includes(name);
  capabilities = isOther ? await (await ask(`/v1/capabilities?model=${encodeURIComponent(name)}`)).json() : first;
  const { limits } = capabilities;
  $("models").replaceChildren(...first.models.map((one) => new Option(one, one, false, one === capabilities.model)));
  $("models-row").hidden = first.models.length < 2;
  $("model").textContent = `${capabilities.model} (${capabilities.family})`;
  for (const side of ["width", "height"]) {
    $(side).step = $(side).min = limits.size_multiple;
    $(side).max = limits.largest_side;
  }
  $("steps").max = limits.steps;
  $("n").max = limits.pictures;
  $("negative-row").hidden = !capabilities.negative_prompt;
  $("guidance-row").hidden = capabilities.guidance === "none";
  $("true-cfg-row").hidden = capabilities.guidance !== "embedded_or_true";
  offerPictures(capabilities, useSizeOf);
}
$("models").addEventListener("change", async () => {
  localStorage.model = $("models").value;
  await offerModel(localStorage.model).catch((error) => ($("error").textContent = error.message));
  const { steps, guidance } = capabilities.defaults;
  fill({ steps, guidance, true_cfg: 1 });
  remember();
});

// Sets the size to a start picture's, in the model's multiples and within the limit.
function useSizeOf(width, height) {
  const { size_multiple: multiple, pixels } = capabilities.limits;
  const scale = Math.min(1, Math.sqrt(pixels / (width * height)));
  const side = (of) => Math.max(multiple, Math.floor(of * scale / multiple) * multiple);
  $("width").value = side(width);
  $("height").value = side(height);
}

const remembered = ["prompt", "negative_prompt", "width", "height", "steps", "guidance", "true_cfg", "n"];
function fill(settings) {
  for (const name of remembered) if (settings[name] !== undefined) $(name).value = settings[name];
  if (settings.seed !== undefined) useSeed(settings.seed);
}

// Saves the form for the next visit.
function remember() {
  if (!capabilities) return;
  const settings = Object.fromEntries(remembered.map((name) => [name, $(name).value]));
  localStorage.settings = JSON.stringify(
    { ...settings, seed: anySeed ? "" : $("seed").value, loras: chosenLoras(), model: capabilities.model });
}
for (const kind of ["input", "change"]) $("form").addEventListener(kind, remember);

function useSeed(seed) {
  anySeed = seed === "";
  $("seed").value = seed;
  $("dice").setAttribute("aria-pressed", anySeed);
}

function settingsOfForm() {
  const settings = { prompt: $("prompt").value, user, previews: true };
  for (const name of ["width", "height", "steps", "n"]) settings[name] = Number($(name).value);
  if (capabilities.guidance !== "none") settings.guidance = Number($("guidance").value);
  if (capabilities.negative_prompt && $("negative_prompt").value) {
    settings.negative_prompt = $("negative_prompt").value;
    if (capabilities.guidance === "embedded_or_true") settings.true_cfg = Number($("true_cfg").value);
  }
  if (!anySeed && $("seed").value) settings.seed = $("seed").value;
  if (capabilities.models.length > 1) settings.model = capabilities.model;
  const loras = chosenLoras();
  if (loras.length) settings.lora = loras;
  return settings;
}

// Pictures are sent as files; the browser sets the content type.
function formOf(settings) {
  const body = new FormData();
  for (const [name, value] of Object.entries(settings))
    body.append(name, typeof value === "object" ? JSON.stringify(value) : value);
  addPictures(body);
  return { body, headers: {} };
}

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("error").textContent = "";
  if (!capabilities) return;
  const settings = settingsOfForm();
  remember();
  $("make").disabled = true;
  try {
    if (missing()) throw new Error(missing());
    const { body, headers } = hasPictures() ? formOf(settings)
      : { body: JSON.stringify(settings), headers: { "content-type": "application/json" } };
    const job = await (await ask("/v1/jobs", { method: "POST", headers, body })).json();
    $("error").textContent = (job.warnings ?? []).join("; ");
    follow(job);
    if (matchMedia("(max-width: 48rem)").matches) $("result").scrollIntoView();
  } catch (error) {
    $("error").textContent = error.message;
    fieldOf(error.param)?.focus();
  } finally {
    $("make").disabled = false;
  }
});
const fieldOf = (param) => {
  const { elements } = $("form");
  return elements[param] ?? elements[`${param}-file`] ?? elements[`${param}s-file`];
};
$("form").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !event.target.matches("input, textarea")) return;
  event.preventDefault();
  $("make").click();
});
// A negative prompt does nothing without true guidance, so turn that on if it has its own scale.
$("negative_prompt").addEventListener("input", () => {
  if ($("true_cfg").value === "1") $("true_cfg").value = 4;
});
$("seed").addEventListener("input", () => useSeed($("seed").value));
$("dice").addEventListener("click", () => {
  useSeed(anySeed ? String(Math.floor(Math.random() * 2 ** 32)) : "");
  remember();
});

// ---- jobs

function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

// Also for a job that ended unobserved, if one of its pictures is not in the gallery yet.
const isOver = (state) => ["done", "failed", "cancelled"].includes(state);
async function follow(job) {
  if (jobs.has(job.id) || (isOver(job.state) && job.pictures.every(({ url }) => isKept(url)))) return;
  const row = listJob(job);
  jobs.set(job.id, row);
  shown ??= job.id;
  showWorking();
  try {
    for await (const event of eventsOf(job.id)) await tell(job, row, event);
  } catch (error) {
    $("error").textContent = error.message;
  }
  jobs.delete(job.id);
  row.remove();
  if (shown === job.id) shown = jobs.keys().next().value ?? null;
  showWorking();
}

function listJob(job) {
  const row = document.createElement("li");
  const text = document.createElement("span");
  text.textContent = job.request.prompt || "(no prompt)";
  const state = document.createElement("small");
  state.textContent = job.state;
  const cancel = document.createElement("button");
  cancel.type = "button";
  cancel.textContent = "Cancel";
  cancel.setAttribute("aria-label", `Cancel ${text.textContent}`);
  cancel.addEventListener("click", () => cancelJob(job.id));
  row.append(text, state, cancel);
  $("jobs").append(row);
  return row;
}

function showWorking() {
  $("working").hidden = shown === null;
  $("no-jobs").hidden = jobs.size > 0;
}

async function cancelJob(id) {
  const row = jobs.get(id);
  if (row) row.querySelector("small").textContent = "cancelling";
  if (id === shown) $("phase").textContent = "cancelling …";
  await ask(`/v1/jobs/${id}`, { method: "DELETE" }).catch((error) => ($("error").textContent = error.message));
}
$("cancel").addEventListener("click", () => shown && cancelJob(shown));

async function tell(job, row, event) {
  const state = row.querySelector("small");
  if (event.name === "started") {
    shown = job.id;
    state.textContent = "running";
    showWorking();
  } else if (event.name === "progress") {
    const part = (event.picture + event.step / Math.max(1, event.steps)) / event.pictures;
    if (shown === job.id) showProgress(event, Math.min(1, part));
  } else if (event.name === "preview") {
    if (shown !== job.id) return;
    showPicture(blobOf(event.b64_json), job.request.prompt, true);
    $("caption").textContent = job.request.prompt;
  } else if (event.name === "picture") {
    const url = `/v1/jobs/${job.id}/pictures/${event.picture}`;
    const blob = await (await ask(url)).blob();
    finished = { blob, prompt: job.request.prompt, caption: `${job.request.prompt} (seed ${event.seed})` };
    showFinished();
    if (!isKept(url)) await keep(url, blob);
  } else if (event.name === "failed") {
    showFinished();
    $("error").textContent = event.message;
  } else if (["done", "cancelled"].includes(event.name)) {
    if ($("picture").className === "rough") showFinished();
    $("spoken").textContent = event.name === "done" ? "The picture is ready." : "Cancelled.";
  }
}

let spokenTenth = 0;
function showProgress(event, part) {
  $("progress").value = part;
  const eta = event.eta === null ? "" : `, ${duration(event.eta)} left`;
  const picture = event.pictures > 1 ? `picture ${event.picture + 1} of ${event.pictures}, ` : "";
  $("phase").textContent =
    event.phase === "load" ? "loading the model"
    : event.phase === "denoise" ? `${picture}step ${event.step} of ${event.steps}${eta}`
    : event.phase === "text" ? "reading the prompt" : `${picture}decoding`;
  const tenth = Math.floor(part * 10);
  if (tenth !== spokenTenth) $("spoken").textContent = `${tenth * 10} percent`;
  spokenTenth = tenth;
}

function blobOf(base64) {
  return new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type: "image/png" });
}

function showBlob(image, blob) {
  const old = image.src;
  image.src = URL.createObjectURL(blob);
  if (old.startsWith("blob:")) URL.revokeObjectURL(old);
}

function showPicture(blob, prompt, isRough) {
  showBlob($("picture"), blob);
  $("picture").alt = isRough ? `Preview of: ${prompt}` : prompt;
  $("picture").className = isRough ? "rough" : "";
  $("picture").hidden = false;
  $("empty").hidden = true;
}

// Replaces a preview that did not become a picture.
function showFinished() {
  if (finished) showPicture(finished.blob, finished.prompt, false);
  else $("picture").hidden = true;
  $("empty").hidden = finished !== null;
  $("caption").textContent = finished?.caption ?? "";
}

// ---- the gallery

function gallery(mode) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("braid", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("pictures", { autoIncrement: true });
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => resolve(opening.result.transaction("pictures", mode).objectStore("pictures"));
  });
}
const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

// After a reload jobs report their pictures again: this finds those kept, or deleted since.
const newestKept = () => JSON.parse(localStorage.kept ?? "[]");
const isKept = (url) => newestKept().includes(url);

async function keep(url, blob) {
  const settings = await readSettings(blob);
  const key = await done((await gallery("readwrite")).add({ blob, settings })).catch((error) => {
    $("error").textContent = `this browser cannot keep more pictures: ${error.message}`;
    return null;
  });
  localStorage.kept = JSON.stringify([...newestKept(), url].slice(-1000));
  $("gallery").prepend(galleryItem(key, { blob, settings }));
}

function galleryItem(key, picture) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const image = document.createElement("img");
  image.alt = picture.settings.prompt || "a picture without a prompt";
  image.loading = "lazy";
  showBlob(image, picture.blob);
  button.append(image);
  button.addEventListener("click", () => show(key, picture, item));
  item.append(button);
  return item;
}

async function loadGallery() {
  const store = await gallery("readonly");
  const [keys, pictures] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
  $("gallery").append(...keys.map((key, i) => galleryItem(key, pictures[i])).reverse());
}

// The newest deletion can be undone: the picture returns to its place.
async function forget(key, picture, item) {
  const place = document.createComment("");
  item.replaceWith(place);
  $("forgotten").hidden = false;
  $("undelete").onclick = async () => {
    $("forgotten").hidden = true;
    place.replaceWith(item);
    item.querySelector("button").focus();
    if (key !== null) await done((await gallery("readwrite")).put(picture, key));
  };
  $("undelete").focus();
  if (key !== null) await done((await gallery("readwrite")).delete(key));
}

function show(key, picture, item) {
  const { blob, settings } = picture;
  showBlob($("shown-picture"), blob);
  $("shown-picture").alt = settings.prompt ?? "";
  $("shown-prompt").textContent = settings.prompt ?? "";
  $("shown-settings").replaceChildren(...Object.entries(settings).filter(([name]) => name !== "prompt")
    .flatMap(([name, value]) => {
      const term = document.createElement("dt"), text = document.createElement("dd");
      term.textContent = name.replaceAll("_", " ");
      text.textContent = value;
      return [term, text];
    }));
  $("download").href = $("shown-picture").src;
  $("download").download = `braid-${settings.seed ?? "picture"}.png`;
  $("reuse").onclick = () => { fillFrom(settings); $("shown").close(); };
  $("reuse-seed").onclick = () => { useSeed(settings.seed ?? ""); $("shown").close(); };
  const name = $("download").download;
  $("use-init").onclick = () => { startFrom(blob, name); $("shown").close(); };
  $("use-reference").onclick = () => { lookAt(blob, name); $("shown").close(); };
  $("forget").onclick = () => {
    $("shown").close();
    forget(key, picture, item).catch((error) => ($("error").textContent = error.message));
  };
  $("shown").showModal();
}
$("close").addEventListener("click", () => $("shown").close());

// ---- settings in a PNG

// Reads uncompressed tEXt and iTXt chunks: Braid writes no others.
async function readSettings(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const view = new DataView(bytes.buffer);
  const settings = {};
  if (bytes.length < 8 || view.getUint32(0) !== 0x89504e47) throw new Error("this is not a PNG");
  for (let at = 8; at + 12 <= bytes.length;) {
    const length = view.getUint32(at);
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const chunk = bytes.subarray(at + 8, at + 8 + length);
    const end = chunk.indexOf(0);
    if (type === "tEXt" && end > 0)
      settings[latin(chunk.subarray(0, end))] = latin(chunk.subarray(end + 1));
    if (type === "iTXt" && end > 0 && chunk[end + 1] === 0) {
      const language = chunk.indexOf(0, end + 3);
      const translated = chunk.indexOf(0, language + 1);
      settings[latin(chunk.subarray(0, end))] = new TextDecoder().decode(chunk.subarray(translated + 1));
    }
    at += 12 + length;
  }
  return settings;
}
// Other formats are read by the server; files that are not Braid's have no steps.
async function settingsOf(file) {
  if (file.type === "image/png") return readSettings(file);
  const image = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const headers = { "content-type": "application/json" };
  const answer = await ask("/sdapi/v1/png-info", { method: "POST", headers, body: JSON.stringify({ image }) });
  const { items } = await answer.json();
  return items.steps === undefined ? {} : items;
}
const isReadable = (blob) => createImageBitmap(blob).then(() => true, () => false);
const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

function fillFrom(settings) {
  const [width, height] = (settings.size ?? "").split("x");
  fill({ negative_prompt: "", true_cfg: 1, ...settings, ...(height ? { width, height } : {}) });
  remember();
  $("prompt").focus();
}

addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
addEventListener("drop", async (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  const file = event.dataTransfer.files[0];
  if (!file) return;
  const isPicture = ["image/png", "image/jpeg", "image/webp"].includes(file.type) && await isReadable(file);
  const settings = isPicture ? await settingsOf(file).catch(() => ({})) : {};
  $("error").textContent = "";
  if (settings.prompt !== undefined) fillFrom(settings);
  else if (!isPicture || !takePicture(file, file.name))
    $("error").textContent = isPicture ? "this picture has no Braid settings" : "this is not a picture";
});

loadGallery().catch((error) => ($("error").textContent = `this browser cannot show the gallery: ${error.message}`));
watchServer();

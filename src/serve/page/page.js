// The page: a form, the running job, and a gallery kept by the browser.
import { isKept, keep, openGallery, showBlob } from "./gallery.js";
import { addPictures, chooseLoras, chosenLoras, hasPictures, missing, offerPictures, takePicture } from "./pictures.js";
import { ask, eventsOf, isOver, local, reach, remember, unreachable } from "./server.js";
import { settingsOf } from "./settings.js";

const $ = (id) => document.getElementById(id);
const user = local.user ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
remember("user", user);
let capabilities = null;
let shown = null;      // the job whose progress is shown
let told = null;       // the job whose events are read
let finished = null;   // the newest picture and its caption
let anySeed = true;
const jobs = new Map();  // running, by id

// ---- the server

let spokenStatus = "ready";
let isCurrent = false;  // knows what the server offers, and the user's jobs
async function watchServer() {
  for (;;) {
    try {
      const status = await (await reach("/readyz")).json();
      $("server").textContent =
        status.status === "loading" ? "loading the model"
        : status.status !== "ready" ? "stopping"
        : status.running + status.waiting === 0 ? "idle"
        : `${status.running} running, ${status.waiting} waiting` +
          (status.seconds_until_idle ? `, ${duration(status.seconds_until_idle)} left` : "");
      sayStatus(status.status);
      showLoading(status);
      if (status.status === "ready" && !isCurrent) {
        await (capabilities ? resume() : begin());
        isCurrent = true;
        if ($("error").textContent === unreachable) $("error").textContent = "";
      }
    } catch (error) {
      isCurrent = false;
      $("loading").hidden = true;
      $("server").textContent = error.message;
      sayStatus("unreachable");
    }
    await new Promise((resolve) => setTimeout(resolve, $("loading").hidden ? 3000 : 500));
  }
}

function showLoading(status) {
  $("loading").hidden = status.status !== "loading";
  $("loading").firstChild.textContent = `Loading the model, ${Math.floor(status.loaded * 100)} %`;
  $("loaded").value = status.loaded;
}

// The line above changes with each step: only changes of state are spoken.
function sayStatus(status) {
  if (status !== spokenStatus) $("spoken").textContent = `The server is ${status}.`;
  spokenStatus = status;
}

// ---- the form

const rememberedSettings = () => JSON.parse(local.settings ?? "{}");

// Prompts stay: they may be typed while the model is loaded.
async function begin() {
  await offerModel(local.model ?? "");
  const { model, loras, prompt, negative_prompt, ...settings } = rememberedSettings();
  if (model !== capabilities.model) for (const name of ofTheModel) delete settings[name];
  fill({ ...capabilities.defaults, ...settings });
  chooseLoras(loras ?? []);
  $("settings").disabled = $("make").disabled = false;
  await followMine();
}

async function followMine() {
  for (const job of (await (await ask(`/v1/jobs?user=${user}`)).json()).jobs) follow(job);
}

// After a break: the server may offer something else, and jobs may have ended meanwhile.
async function resume() {
  const path = `/v1/capabilities?model=${encodeURIComponent(capabilities.model)}`;
  const now = await ask(path).then((response) => response.json(), () => null);
  if (JSON.stringify(now) === JSON.stringify(capabilities)) await followMine();
  else await begin();
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
  const name = $("models").value;
  remember("model", name);
  await offerModel(name).catch((error) => ($("error").textContent = error.message));
  const { steps, guidance } = capabilities.defaults;
  fill({ steps, guidance, true_cfg: 1 });
  rememberForm();
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
function rememberForm() {
  const prompts = { prompt: $("prompt").value, negative_prompt: $("negative_prompt").value };
  if (!capabilities) return remember("settings", JSON.stringify({ ...rememberedSettings(), ...prompts }));
  const settings = Object.fromEntries(remembered.map((name) => [name, $(name).value]));
  remember("settings", JSON.stringify(
    { ...settings, seed: anySeed ? "" : $("seed").value, loras: chosenLoras(), model: capabilities.model }));
}
for (const kind of ["input", "change"]) $("form").addEventListener(kind, rememberForm);

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
  rememberForm();
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
  rememberForm();
});

// ---- jobs

function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

// Also for a job that ended unobserved, if one of its pictures is not in the gallery yet.
function follow(job) {
  if (jobs.has(job.id) || (isOver(job.state) && job.pictures.every(({ url }) => isKept(url)))) return;
  const row = listJob(job);
  jobs.set(job.id, row);
  shown ??= job.id;
  showWorking();
  turn = turn.then(() => tellAll(job, row));
}

// A browser opens six connections to a server, and each stream of events holds one. A user's jobs
// run in order, so those behind the first have nothing to tell yet.
let turn = Promise.resolve();
async function tellAll(job, row) {
  if (!jobs.has(job.id)) return;  // cancelled meanwhile
  told = job.id;
  try {
    for await (const event of eventsOf(job.id)) await tell(job, row, event);
  } catch (error) {
    if ($("picture").className === "rough") showFinished();
    complain(error.message);
    isCurrent = false;  // asks for what was missed, as soon as the server answers
  }
  told = null;
  leave(job.id);
}

// The keyboard's user is not left on a button that is gone.
function leave(id) {
  const row = jobs.get(id), focused = document.activeElement;
  const hadFocus = row.contains(focused);
  jobs.delete(id);
  row.remove();
  if (shown === id) shown = jobs.keys().next().value ?? null;
  showWorking();
  if (hadFocus || (focused === $("cancel") && shown === null)) $("make").focus({ preventScroll: true });
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
  try {
    const job = await (await ask(`/v1/jobs/${id}`, { method: "DELETE" })).json();
    if (!isOver(job.state) || id === told || !jobs.has(id)) return;
    leave(id);
    $("spoken").textContent = "Cancelled.";
  } catch (error) {
    $("error").textContent = error.message;
  }
}
$("cancel").addEventListener("click", () => shown && cancelJob(shown));

// On a phone the form may be out of sight.
function complain(message) {
  $("error").textContent = message;
  $("error").scrollIntoView({ block: "nearest" });
}

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
    complain(event.message);
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

// ---- dropped files

function fillFrom(settings) {
  if (!capabilities) return complain("the model is still being loaded");
  const [width, height] = (settings.size ?? "").split("x");
  fill({ negative_prompt: "", true_cfg: 1, ...settings, ...(height ? { width, height } : {}) });
  rememberForm();
  $("prompt").focus();
}

const hasFiles = (event) => event.dataTransfer.types.includes("Files");  // text goes where it is dropped
addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
const isReadable = (blob) => createImageBitmap(blob).then(() => true, () => false);
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
addEventListener("drop", async (event) => {
  if (!hasFiles(event)) return;
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

openGallery({ all: fillFrom, seed: useSeed }).catch((error) => ($("error").textContent = `this browser cannot show the gallery: ${error.message}`));
fill(rememberedSettings());
watchServer();

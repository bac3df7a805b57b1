// The form: settings within what the server and the model take, remembered for the next visit.
import { chooseBoxes, chosenBoxes, offerBoxes, shapeBoard, whenBoxesChange } from "./boxes.js";
import { $, complain, offer } from "./dom.js";
import { chooseLoras, chosenLoras, lorasToAsk, offerLoras } from "./loras.js";
import { offerPictures } from "./pictures.js";
import { askJson } from "./server.js";
import { lostOf } from "./settings.js";
import { shapes, sizeLike, sizeOfRatio } from "./size.js";
import { local } from "./storage.js";
import { countFor } from "./tokens.js";

export const user = local.read("user") ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
local.write("user", user);

let capabilities = null;  // of the chosen model
let anySeed = true;
let isEmptyNegativeUsed = false;  // an empty negative prompt guides, too; usually an empty field gives none
export const offered = () => capabilities;

// ---- what the model takes

// A damaged text counts as none: it would stop the page at each visit.
function rememberedSettings() {
  try {
    const settings = JSON.parse(local.read("settings"));
    return settings instanceof Object ? settings : {};
  } catch (error) {
    console.debug(error);
    return {};
  }
}

// Settings that mean something else to another model.
const ofTheModel = ["steps", "layers", "sampler", "schedule", "guidance", "true_cfg", "max_sequence_length", "empty_negative"];

export const capabilitiesOf = (model) => askJson(`v1/capabilities?model=${encodeURIComponent(model)}`);

// Prompts stay: they may be typed while the model is loaded.
export async function beginForm() {
  const before = heldSettings();
  if (!await offerModel(capabilities?.model ?? local.read("model") ?? "")) return;
  const { model, loras, boxes, prompt, negative_prompt, ...settings } = before;
  if (model !== capabilities.model) for (const name of ofTheModel) delete settings[name];
  fill({ ...capabilities.defaults, empty_negative: false, ...settings });
  chooseLoras(loras ?? []);
  if (capabilities.boxes) chooseBoxes(boxes ?? []);
  $("settings").disabled = $("make").disabled = false;
}

// True if the server still offers the same.
export const isSameOffer = () => capabilitiesOf(capabilities.model)
  .then((now) => JSON.stringify(now) === JSON.stringify(capabilities), () => false);

// The capabilities of the named model, or of the first one if there is no such model.
async function findModel(name) {
  const first = await askJson("v1/capabilities");
  return name !== first.model && first.models.includes(name) ? capabilitiesOf(name) : first;
}

let newestWish = 0;

// Fits the form to the named model, or to the first one. Resolves to false if another was wished for meanwhile.
async function offerModel(name) {
  const number = ++newestWish;
  try {
    const found = await findModel(name);
    if (number !== newestWish) return false;
    capabilities = found;
  } catch (error) {
    if (number !== newestWish) return false;
    if (capabilities) $("models").value = capabilities.model;
    throw error;
  }
  showOffer();
  return true;
}

function showOffer() {
  const { limits, models } = capabilities;
  $("models").replaceChildren(...models.map((one) => new Option(one, one, false, one === capabilities.model)));
  $("models-row").hidden = models.length < 2;
  $("model").textContent = `${capabilities.model} (${capabilities.family})`;
  for (const side of ["width", "height"]) {
    $(side).step = $(side).min = limits.size_multiple;
    $(side).max = limits.largest_side;
  }
  $("steps").max = limits.steps;
  offer("layers-row", limits.layers > 0);
  $("layers").max = limits.layers;
  $("n").max = limits.pictures;
  $("max_sequence_length").max = limits.max_sequence_length;
  offerNames("sampler", capabilities.samplers);
  offerNames("schedule", capabilities.schedules);
  offer("enhance-row", capabilities.enhancer);
  offer("guidance-row", capabilities.guidance !== "none");
  offerNegative();
  offerPictures(capabilities, (width, height) => useSize(sizeLike(width, height, capabilities)));
  offerLoras(capabilities.loras ?? []);
  offerBoxes(capabilities.boxes);
  countFor(capabilities);
}

function offerNames(id, names) {
  $(id).replaceChildren(...names.map((name) => new Option(name, name)));
  $(id).value = capabilities.defaults[id];
}

// Where the negative prompt needs a scale of its own, both are rarely used and explained under "More".
function offerNegative() {
  const isRare = capabilities.guidance === "embedded_or_true";
  offer("negative-row", capabilities.negative_prompt);
  offer("true-cfg-row", isRare);
  if (isRare) $("more").querySelector("summary").after($("negative-row"));
  else $("enhance-row").after($("negative-row"));
}

async function fitTo(name) {
  if (!await offerModel(name)) return false;
  local.write("model", name);
  const { steps, layers, sampler, schedule, guidance, max_sequence_length } = capabilities.defaults;
  fill({ steps, layers, sampler, schedule, guidance, max_sequence_length, true_cfg: 1, empty_negative: false });
  rememberForm();
  return true;
}

let pending = null;  // the newest change that is not over
function changeModel(name) {
  const mine = pending = fitTo(name);
  const end = () => pending === mine && (pending = null);
  mine.then(end, end);
  return mine;
}
$("models").addEventListener("change", () => changeModel($("models").value).catch((error) => complain(error.message)));

// Resolves when the form is of the model that is chosen, to false if that one cannot be had.
export async function isModelSettled() {
  let isSettled = true;
  while (pending) isSettled = await pending.then(() => true, () => false);
  return isSettled;
}

// ---- sizes

export function useSize(size) {
  if (!size) return;
  $("width").value = size.width;
  $("height").value = size.height;
  showShape();
  rememberForm();
}

function showShape() {
  shapeBoard(Number($("width").value), Number($("height").value));
  for (const [name, ratio] of Object.entries(shapes)) {
    const size = capabilities && sizeOfRatio(ratio, capabilities);
    const isIt = size && Number($("width").value) === size.width && Number($("height").value) === size.height;
    $(`shape-${name}`).setAttribute("aria-pressed", Boolean(isIt));
  }
}
for (const [name, ratio] of Object.entries(shapes))
  $(`shape-${name}`).addEventListener("click", () => useSize(sizeOfRatio(ratio, capabilities)));
$("swap").addEventListener("click", () => useSize({ width: $("height").value, height: $("width").value }));
for (const side of ["width", "height"]) $(side).addEventListener("input", showShape);

// ---- values

const remembered = ["prompt", "negative_prompt", "width", "height", "steps", "layers", "sampler", "schedule", "guidance",
  "true_cfg", "max_sequence_length", "n"];

function fill(settings) {
  for (const name of remembered) if (settings[name] !== undefined) $(name).value = settings[name];
  if (settings.seed !== undefined) useSeed(settings.seed);
  if (settings.enhance !== undefined) $("enhance").checked = settings.enhance;
  if (settings.empty_negative !== undefined) useEmptyNegative(settings.empty_negative);
  // A name that is not offered would leave the list empty.
  if (capabilities) for (const name of ["sampler", "schedule"]) $(name).value ||= capabilities.defaults[name];
  showShape();
  // Nothing that has an effect is out of sight.
  if (hasNegative() && !$("true-cfg-row").hidden) $("more").open = true;
  if (capabilities && namesChosen().length) $("more").open = true;
}
// Names sampler and schedule where they are not the model's own.
const namesChosen = () => ["sampler", "schedule"].filter((name) =>
  $(name).value && $(name).value !== capabilities.defaults[name]);
export const fillRemembered = () => fill(rememberedSettings());

// Restores the settings of a picture's text, and says which it could not. Those without a name there take their defaults.
export async function fillFrom(text) {
  if (!capabilities) return complain("the model is still being loaded");
  if (text.model !== capabilities.model && capabilities.models.includes(text.model) &&
      !await changeModel(text.model)) return;
  const [width, height] = (text.size ?? "").split("x");
  const { sampler, schedule } = capabilities.defaults;
  fill({ negative_prompt: "", true_cfg: 1, sampler, schedule, ...text, ...(height ? { width, height } : {}),
    empty_negative: text.negative_prompt === "", enhance: false });  // a picture's prompt may have been rewritten before
  chooseLoras(lorasToAsk(text.lora ?? "", capabilities));
  chooseBoxes([]);  // a picture's prompt has them behind it
  const lost = lostOf(text, settingsOfForm(), capabilities);
  $("restored").textContent = lost.length ? `Not restored: ${lost.join(", ")}.` : "";
  rememberForm();
  countFor(capabilities);
  $("prompt").focus();
}

// Those of this tab: others may have remembered their own.
function heldSettings() {
  const prompts = { prompt: $("prompt").value, negative_prompt: $("negative_prompt").value, empty_negative: isEmptyNegativeUsed };
  if (!capabilities) return { ...rememberedSettings(), ...prompts };
  return { ...Object.fromEntries(remembered.map((name) => [name, $(name).value])), ...prompts, enhance: $("enhance").checked,
    seed: anySeed ? "" : $("seed").value, loras: chosenLoras(), boxes: chosenBoxes(), model: capabilities.model };
}
export const rememberForm = () => local.write("settings", JSON.stringify(heldSettings()));
for (const kind of ["input", "change"]) $("form").addEventListener(kind, rememberForm);
whenBoxesChange(rememberForm);
// The board shows the picture that was made last.
new MutationObserver(showShape).observe($("picture"), { attributeFilter: ["src"] });

export function useSeed(seed) {
  anySeed = seed === "";
  $("seed").value = seed;
  $("dice").setAttribute("aria-pressed", anySeed);
}
$("seed").addEventListener("input", () => useSeed($("seed").value));
$("dice").addEventListener("click", () => {
  useSeed(anySeed ? String(Math.floor(Math.random() * 2 ** 32)) : "");
  rememberForm();
});

function useEmptyNegative(isUsed) {
  isEmptyNegativeUsed = isUsed;
  $("negative_prompt").placeholder = isUsed ? "Used although it is empty" : "";
}
const hasNegative = () => $("negative_prompt").value !== "" || isEmptyNegativeUsed;

// A negative prompt does nothing without true guidance, so turn that on if it has its own scale.
$("negative_prompt").addEventListener("input", () => {
  useEmptyNegative(false);
  if ($("true_cfg").value === "1") $("true_cfg").value = 4;
});

export function settingsOfForm() {
  const settings = { prompt: $("prompt").value };
  if (capabilities.enhancer && $("enhance").checked) settings.enhance = true;
  for (const name of ["width", "height", "steps", "n"]) settings[name] = Number($(name).value);
  if (capabilities.limits.layers) settings.layers = Number($("layers").value);
  for (const name of namesChosen()) settings[name] = $(name).value;
  if (capabilities.guidance !== "none") settings.guidance = Number($("guidance").value);
  if (capabilities.negative_prompt && hasNegative()) {
    settings.negative_prompt = $("negative_prompt").value;
    if (capabilities.guidance === "embedded_or_true") settings.true_cfg = Number($("true_cfg").value);
  }
  if ($("max_sequence_length").value) settings.max_sequence_length = Number($("max_sequence_length").value);
  if (!anySeed && !["", "-1"].includes($("seed").value)) settings.seed = $("seed").value;
  if (capabilities.models.length > 1) settings.model = capabilities.model;
  const loras = chosenLoras();
  if (loras.length) settings.lora = loras;
  const boxes = chosenBoxes();
  if (boxes.length) settings.boxes = JSON.stringify(boxes);
  return settings;
}

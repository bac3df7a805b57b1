// The pictures that a new one starts from or looks at, and the LoRAs that change the model: what the
// loaded model can do, and nothing else.
import { openMask } from "./mask.js";

const $ = (id) => document.getElementById(id);
let taken = null;                 // of the capabilities
let init = null, mask = null, control = null;  // { blob, name }; of a painted mask its strokes, too
let references = [];
let onInit = () => {};

export function offerPictures(capabilities, sizeFrom) {
  taken = capabilities.pictures_in;
  onInit = sizeFrom;
  $("init-row").hidden = !taken.init;
  $("mask-row").hidden = taken.mask === "none";
  $("references-row").hidden = taken.references === 0;
  $("control-row").hidden = !taken.control;
  $("references-file").multiple = taken.references > 1;
  $("references-legend").textContent = taken.references > 1 ? `Look at (up to ${taken.references})` : "Look at";
  $("pictures-in").hidden = !(taken.init || taken.references || taken.control);
  $("use-init").hidden = !taken.init;
  $("use-reference").hidden = taken.references === 0;
  if (!taken.init) init = mask = null;
  if (!taken.control) control = null;
  references = references.slice(0, taken.references);
  useDefaultStrength();
  showAll();
  offerLoras(capabilities.loras ?? []);
}

// True where the model has use for it.
export function takePicture(blob, name) {
  if (taken?.init) setInit({ blob, name });
  else if (taken?.references) addReferences([{ blob, name }]);
  else if (taken?.control) setControl({ blob, name });
  else return false;
  return true;
}
export const startFrom = (blob, name) => setInit({ blob, name });
export const lookAt = (blob, name) => addReferences([{ blob, name }]);

// What a job's form gets; a sentence where something is missing.
export function missing() {
  if (taken?.mask === "needed" && !(init && mask)) return "This model fills pictures in: give it one to start from, and a mask.";
  if (taken?.control && !control) return "This model follows a picture of edges or depths: give it one.";
  return "";
}
export const hasPictures = () => Boolean(init || control || references.length);
export function addPictures(form) {
  if (init) {
    form.append("init", init.blob, init.name);
    form.append("strength", $("strength").value);
    if (mask) form.append("mask", mask.blob, mask.name);
  }
  for (const one of references) form.append("reference[]", one.blob, one.name);
  if (control) form.append("control", control.blob, control.name);
}

// ---- LoRAs

export const chosenLoras = () => [...$("loras").children]
  .filter((row) => row.querySelector("[type=checkbox]").checked)
  .map((row) => ({ name: row.dataset.name, scale: Number(row.querySelector("[type=number]").value) }));

function offerLoras(names) {
  const chosen = new Map(chosenLoras().map((one) => [one.name, one.scale]));
  $("loras-row").hidden = names.length === 0;
  $("loras").replaceChildren(...names.map((name) => {
    const row = document.createElement("li"), label = document.createElement("label");
    const box = document.createElement("input"), weight = document.createElement("input");
    row.dataset.name = name;
    box.type = "checkbox";
    box.checked = chosen.has(name);
    label.append(box, ` ${name}`);
    weight.type = "number";
    weight.step = "0.05";
    weight.value = chosen.get(name) ?? 1;
    weight.setAttribute("aria-label", `Weight of ${name}`);
    weight.addEventListener("input", () => (box.checked = true));
    row.append(label, weight);
    return row;
  }));
}

// ---- pictures

function setInit(picture) {
  init = picture;
  mask = null;
  useDefaultStrength();
  showAll();
  if (init) createImageBitmap(init.blob).then((bitmap) => onInit(bitmap.width, bitmap.height)).catch(() => {});
}

function setMask(picture) {
  mask = picture;
  useDefaultStrength();
  showAll();
}

function setControl(picture) {
  control = picture;
  showAll();
}

function addReferences(pictures) {
  references = [...references, ...pictures].slice(-taken.references);
  showAll();
}

function useDefaultStrength() {
  $("strength").value = mask ? taken.strength_with_mask : taken.strength;
  $("strength-shown").textContent = $("strength").value;
}

function showAll() {
  show("init", init, "the picture to start from");
  show("mask", mask, mask?.share ? `the mask, ${Math.round(100 * mask.share)} % of the picture` : "the mask");
  show("control", control, "the picture to follow");
  $("strength-row").hidden = !init;
  $("paint-mask").disabled = !init;
  $("mask-file").disabled = !init;
  $("references").replaceChildren(...references.map((picture, i) => {
    const row = document.createElement("li"), image = document.createElement("img"), remove = document.createElement("button");
    image.alt = `reference ${i + 1}: ${picture.name}`;
    image.src = URL.createObjectURL(picture.blob);
    image.onload = () => URL.revokeObjectURL(image.src);
    remove.type = "button";
    remove.textContent = "Remove";
    remove.setAttribute("aria-label", `Remove reference ${i + 1}`);
    remove.addEventListener("click", () => {
      references.splice(i, 1);
      showAll();
    });
    row.append(image, remove);
    return row;
  }));
}

function show(id, picture, text) {
  const image = $(`${id}-picture`);
  if (image.src) URL.revokeObjectURL(image.src);
  image.hidden = $(`${id}-remove`).hidden = !picture;
  image.alt = picture ? text : "";
  if (picture) image.src = URL.createObjectURL(picture.blob);
  else image.removeAttribute("src");
}

const filesOf = (input) => {
  const pictures = [...input.files].map((file) => ({ blob: file, name: file.name }));
  input.value = "";  // the same file may be chosen again
  return pictures;
};
$("init-file").addEventListener("change", (event) => setInit(filesOf(event.target)[0] ?? null));
$("mask-file").addEventListener("change", (event) => setMask(filesOf(event.target)[0] ?? null));
$("control-file").addEventListener("change", (event) => setControl(filesOf(event.target)[0] ?? null));
$("references-file").addEventListener("change", (event) => addReferences(filesOf(event.target)));
$("init-remove").addEventListener("click", () => setInit(null));
$("mask-remove").addEventListener("click", () => setMask(null));
$("control-remove").addEventListener("click", () => setControl(null));
$("strength").addEventListener("input", () => ($("strength-shown").textContent = $("strength").value));
$("paint-mask").addEventListener("click", async () => {
  const painted = await openMask(init.blob, mask?.strokes);
  if (painted !== undefined) setMask(painted ? { ...painted, name: "mask.png" } : null);
});

// The pictures that a new one starts from or looks at, and LoRAs: offers only what the loaded model
// supports.
import { openMask } from "./mask.js";

const $ = (id) => document.getElementById(id);
let taken = null;                 // from the capabilities
let init = null, mask = null;     // { blob, name }; a painted mask also has strokes
let references = [], controls = [];  // with scales; controls may also have a mode
let onInit = () => {};

export function offerPictures(capabilities, sizeFrom) {
  taken = capabilities.pictures_in;
  onInit = sizeFrom;
  $("init-row").hidden = !taken.init;
  $("mask-row").hidden = taken.mask === "none";
  $("references-row").hidden = taken.references === 0;
  $("control-row").hidden = taken.control === "none";
  $("references-file").multiple = taken.references > 1;
  $("references-legend").textContent = taken.references > 1 ? `Look at (up to ${taken.references})` : "Look at";
  $("controls-file").multiple = mostControls() > 1;
  $("controls-legend").textContent = taken.controlnets.length === 1 ? `Follow, with ${taken.controlnets[0].name}` : "Follow";
  $("controls-hint").textContent = (taken.controlnets.length < 2 ? "Edges, depths or poses."
    : `One picture for each of ${taken.controlnets.map((net) => net.name).join(", ")}, in this order.`)
    + (taken.controlnets.length ? " From and To: the part of the steps in which it is followed, 0 to 1." : "");
  $("pictures-in").hidden = !(taken.init || taken.references || taken.control !== "none");
  $("use-init").hidden = !taken.init;
  $("use-reference").hidden = taken.references === 0;
  if (!taken.init) init = mask = null;
  controls = controls.slice(0, mostControls());
  references = references.slice(0, taken.references);
  useDefaultStrength();
  showAll();
  offerLoras(capabilities.loras ?? []);
}

// A single net follows any number of pictures.
const mostControls = () => taken.control === "none" ? 0 : taken.control === "needed" ? 1
  : taken.controlnets.length === 1 ? 4 : taken.controlnets.length;
const netOf = (i) => taken.controlnets[taken.controlnets.length === 1 ? 0 : i];

// True if the model can use the picture.
export function takePicture(blob, name) {
  if (taken?.init) setInit({ blob, name });
  else if (taken?.references) addReferences([{ blob, name }]);
  else if (taken && taken.control !== "none") addControls([{ blob, name }]);
  else return false;
  return true;
}
export const startFrom = (blob, name) => setInit({ blob, name });
export const lookAt = (blob, name) => addReferences([{ blob, name }]);

// A sentence if something is missing from the job's form, else "".
export function missing() {
  if (taken?.mask === "needed" && !(init && mask)) return "This model fills pictures in: give it one to start from, and a mask.";
  if (taken?.control === "needed" && !controls.length) return "This model follows a picture of edges or depths: give it one.";
  if (controls.length && taken.controlnets.length > 1 && controls.length !== taken.controlnets.length)
    return `Each of the ${taken.controlnets.length} ControlNets follows a picture: give one for each, or none.`;
  return "";
}
export const hasPictures = () => Boolean(init || controls.length || references.length);
export function addPictures(form) {
  if (init) {
    form.append("init", init.blob, init.name);
    form.append("strength", $("strength").value);
    if (mask) {
      form.append("mask", mask.blob, mask.name);
      form.append("mask_blur", $("mask_blur").value || "0");
      if ($("padding_crop").value) form.append("padding_crop", $("padding_crop").value);
    }
  }
  for (const one of references) {
    form.append("reference[]", one.blob, one.name);
    if (taken.reference_scales) form.append("reference_scale[]", one.scale);
  }
  controls.forEach((one, i) => {
    form.append("control[]", one.blob, one.name);
    if (netOf(i)) for (const name of ["scale", "from", "to"]) form.append(`control_${name}[]`, one[name]);
    if (taken.controlnets.some((net) => net.modes)) form.append("control_mode[]", netOf(i).modes ? one.mode : 0);
  });
}

// ---- LoRAs

export const chosenLoras = () => [...$("loras").children]
  .filter((row) => row.querySelector("[type=checkbox]").checked)
  .map((row) => ({ name: row.dataset.name, scale: Number(row.querySelector("[type=number]").value) }));

export function chooseLoras(chosen) {
  for (const row of $("loras").children) {
    const one = chosen.find(({ name }) => name === row.dataset.name);
    row.querySelector("[type=checkbox]").checked = one !== undefined;
    if (one) row.querySelector("[type=number]").value = one.scale;
  }
}

function offerLoras(names) {
  const chosen = chosenLoras();
  $("loras-row").hidden = names.length === 0;
  $("loras").replaceChildren(...names.map((name) => {
    const row = document.createElement("li"), label = document.createElement("label");
    const box = document.createElement("input"), weight = document.createElement("input");
    row.dataset.name = name;
    box.type = "checkbox";
    label.append(box, ` ${name}`);
    weight.type = "number";
    weight.step = "0.05";
    weight.value = 1;
    weight.setAttribute("aria-label", `Weight of ${name}`);
    weight.addEventListener("input", () => (box.checked = true));
    row.append(label, weight);
    return row;
  }));
  chooseLoras(chosen);
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

function addControls(pictures) {
  controls = [...controls, ...pictures.map((one) => ({ scale: 1, from: 0, to: 1, mode: 0, ...one }))].slice(-mostControls());
  showAll();
}

function addReferences(pictures) {
  references = [...references, ...pictures.map((one) => ({ scale: 1, ...one }))].slice(-taken.references);
  showAll();
}

function useDefaultStrength() {
  $("strength").value = mask ? taken.strength_with_mask : taken.strength;
  $("strength-shown").textContent = $("strength").value;
}

function showAll() {
  show("init", init, "the picture to start from");
  show("mask", mask, mask?.share ? `the mask, ${Math.round(100 * mask.share)} % of the picture` : "the mask");
  $("strength-row").hidden = !init;
  $("paint-mask").disabled = !init;
  $("mask-file").disabled = !init;
  $("mask-options").hidden = !mask;
  const weight = { name: "scale", text: "Weight", step: 0.05 };
  showList("references", references, "reference", () => taken.reference_scales ? [weight] : []);
  const part = { step: 0.05, min: 0, max: 1 };
  const ofNet = [weight, { name: "from", text: "From", ...part }, { name: "to", text: "To", ...part }];
  showList("controls", controls, "picture to follow", (i) => !netOf(i) ? []
    : netOf(i).modes ? [...ofNet, { name: "mode", text: "Kind", step: 1, min: 0, max: netOf(i).modes - 1 }] : ofNet);
}

// Lists of pictures, each with its settings.
function showList(id, pictures, what, numbersOf) {
  $(id).replaceChildren(...pictures.map((picture, i) => {
    const row = document.createElement("li"), image = document.createElement("img"), remove = document.createElement("button");
    image.alt = `${what} ${i + 1}: ${picture.name}`;
    image.src = URL.createObjectURL(picture.blob);
    image.onload = () => URL.revokeObjectURL(image.src);
    remove.type = "button";
    remove.textContent = "Remove";
    remove.setAttribute("aria-label", `Remove ${what} ${i + 1}`);
    remove.addEventListener("click", () => {
      pictures.splice(i, 1);
      showAll();
    });
    row.append(image, ...numbersOf(i).map((number) => numberOf(picture, number, `${what} ${i + 1}`)), remove);
    return row;
  }));
}

function numberOf(picture, { name, text, ...range }, what) {
  const label = document.createElement("label"), input = document.createElement("input");
  label.className = "number";
  input.type = "number";
  for (const [key, value] of Object.entries(range)) input[key] = value;
  input.value = picture[name];
  input.setAttribute("aria-label", `${text} of ${what}`);
  input.addEventListener("input", () => (picture[name] = Number(input.value)));
  label.append(text, input);
  return label;
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
  input.value = "";  // allows choosing the same file again
  return pictures;
};
$("init-file").addEventListener("change", (event) => setInit(filesOf(event.target)[0] ?? null));
$("mask-file").addEventListener("change", (event) => setMask(filesOf(event.target)[0] ?? null));
$("controls-file").addEventListener("change", (event) => addControls(filesOf(event.target)));
$("references-file").addEventListener("change", (event) => addReferences(filesOf(event.target)));
$("init-remove").addEventListener("click", () => setInit(null));
$("mask-remove").addEventListener("click", () => setMask(null));
$("strength").addEventListener("input", () => ($("strength-shown").textContent = $("strength").value));
$("paint-mask").addEventListener("click", async () => {
  const painted = await openMask(init.blob, mask?.strokes).catch(() => {
    $("error").textContent = "the browser cannot show the picture to start from";
  });
  if (painted !== undefined) setMask(painted ? { ...painted, name: "mask.png" } : null);
});

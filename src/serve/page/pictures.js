// The pictures that a new one starts from, looks at or follows: offers only what the loaded model supports.
import { $, button, complain, inTurn, make, offer, showBlob } from "./dom.js";
import { draftNote, openMask } from "./mask.js";
import { fitAll, noteOf, plan, readPictureFile } from "./scaling.js";

let taken = null, limits = null;     // from the capabilities
let init = null, mask = null;        // as readPictureFile() gives them; a painted mask also has strokes
let references = [], controls = [];  // with scales; controls may also have a mode
let isStrengthChosen = false;
let onInit = () => {};               // takes over a size

export function offerPictures(capabilities, sizeFrom) {
  taken = capabilities.pictures_in;
  limits = capabilities.limits;
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
  if (!taken.init) init = null;
  if (!init || taken.mask === "none") mask = null;
  controls = controls.slice(0, mostControls());
  references = references.slice(0, taken.references);
  useDefaultStrength();
  showAll();
}

// What may be done with a picture that was made: names of actions.
export const uses = () => !taken ? []
  : [taken.init && "start", taken.init && taken.mask !== "none" && "mask", taken.references > 0 && "look",
    taken.control !== "none" && "follow"].filter(Boolean);

// A single net follows any number of pictures.
const mostControls = () => taken.control === "none" ? 0 : taken.control === "needed" ? 1
  : taken.controlnets.length === 1 ? 4 : taken.controlnets.length;
const netOf = (i) => taken.controlnets[taken.controlnets.length === 1 ? 0 : i];

export const startFrom = async (blob, name) => setInit(await readPictureFile(blob, name));
export const lookAt = async (blob, name) => sayLeftOut(addReferences([await readPictureFile(blob, name)]));
export const follow = async (blob, name) => sayLeftOut(addControls([await readPictureFile(blob, name)]));
export async function paintOn(blob, name) {
  await inTurn(() => startFrom(blob, name));
  await paintMask();
}

export const takesSeveral = () => taken !== null && (taken.references > 1 || mostControls() > 1);
export const leftOut = (names) => `left out, as there is no room for more pictures: ${names.join(", ")}`;

// Uses the files as the model can: several of them, if it looks at or follows several. Resolves to the names
// of those that are left out.
export async function takePictures(files) {
  const ofSeveral = taken.references > 1 ? "look" : "follow";
  const use = files.length > 1 && takesSeveral() ? ofSeveral : uses()[0];
  if (use === "start") await startFrom(files[0], files[0].name);
  if (use === "start") return files.slice(1).map(({ name }) => name);
  const pictures = await readAll(files);
  return use === "look" ? addReferences(pictures) : addControls(pictures);
}

// A sentence if something is missing from the job's form, else "".
export function missing() {
  if (taken?.mask === "needed" && !(init && mask)) return "This model fills pictures in: give it one to start from, and a mask.";
  if (mask && init && (mask.width !== init.width || mask.height !== init.height))
    return `The mask should have the size of the picture to start from, ${init.width} × ${init.height}; ` +
      `it has ${mask.width} × ${mask.height}.`;
  if (taken?.control === "needed" && !controls.length) return "This model follows a picture of edges or depths: give it one.";
  if (controls.length && taken.controlnets.length > 1 && controls.length !== taken.controlnets.length)
    return `Each of the ${taken.controlnets.length} ControlNets follows a picture: give one for each, or none.`;
  return "";
}

const ofRequest = () => [init, init && mask, ...references, ...controls].filter(Boolean);

// The form's fields and files: [name, value] or [name, blob, file name] each. Empty without pictures.
export async function pictureFields() {
  const all = ofRequest(), fields = [];
  const sent = await fitAll(all, limits);
  const file = (name, one) => fields.push([name, sent[all.indexOf(one)].blob, sent[all.indexOf(one)].name]);
  if (init) {
    file("init", init);
    fields.push(["strength", $("strength").value]);
    if (mask) {
      file("mask", mask);
      fields.push(["mask_blur", $("mask_blur").value || "0"]);
      if ($("padding_crop").value) fields.push(["padding_crop", $("padding_crop").value]);
    }
  }
  for (const one of references) {
    file("reference[]", one);
    if (taken.reference_scales) fields.push(["reference_scale[]", one.scale]);
  }
  controls.forEach((one, i) => {
    file("control[]", one);
    if (netOf(i)) for (const name of ["scale", "from", "to"]) fields.push([`control_${name}[]`, one[name]]);
    if (taken.controlnets.some((net) => net.modes)) fields.push(["control_mode[]", netOf(i).modes ? one.mode : 0]);
  });
  return fields;
}

// ---- changes

function setInit(picture) {
  init = picture;
  mask = null;
  useDefaultStrength();
  showAll();
  if (init) onInit(init.width, init.height);
}

function setMask(picture) {
  mask = picture;
  useDefaultStrength();
  showAll();
}

// The first of the new pictures that fit, behind the newest of the old ones that they leave room for, and the
// names of the others. A single picture is replaced without a word.
function fitted(old, added, most) {
  const first = added.slice(0, most);
  const fit = [...old.slice(Math.max(0, old.length + first.length - most)), ...first];
  const out = [...(most > 1 ? old : []), ...added].filter((one) => !fit.includes(one));
  return { fit, out: out.map(({ name }) => name) };
}
const sayLeftOut = (names) => names.length && complain(leftOut(names));

// These two return the names of the pictures that have no room.
function addControls(pictures) {
  const { fit, out } = fitted(controls, pictures.map((one) => ({ scale: 1, from: 0, to: 1, mode: 0, ...one })), mostControls());
  controls = fit;
  showAll();
  return out;
}

function addReferences(pictures) {
  const { fit, out } = fitted(references, pictures.map((one) => ({ scale: 1, ...one })), taken.references);
  references = fit;
  showAll();
  if (limits.layers && references.length) onInit(references[0].width, references[0].height);  // layers have its shape
  return out;
}

// What the user has chosen stays as long as there is a picture to start from.
function useDefaultStrength() {
  isStrengthChosen &&= init !== null;
  if (!isStrengthChosen) $("strength").value = mask ? taken.strength_with_mask : taken.strength;
  $("strength-shown").textContent = $("strength").value;
}

// ---- what is shown

let notes = new Map();  // by picture
const textOfNote = (picture) => notes.get(picture) ?? "";

function showAll() {
  const all = ofRequest(), plans = plan(all, limits);
  notes = new Map(all.map((one, i) => [one, noteOf(one, plans[i])]));
  show("init", init, "the picture to start from");
  show("mask", mask, mask?.share ? `the mask, ${Math.round(100 * mask.share)} % of the picture` : "the mask");
  offer("strength-row", init !== null);
  $("paint-mask").disabled = !init;
  $("mask-file").disabled = !init;
  offer("mask-options", mask !== null);
  const weight = { name: "scale", text: "Weight", step: "any" };
  showList("references", references, "reference", () => taken.reference_scales ? [weight] : []);
  const part = { step: "any", min: 0, max: 1 };
  const ofNet = [weight, { name: "from", text: "From", ...part }, { name: "to", text: "To", ...part }];
  showList("controls", controls, "picture to follow", (i) => !netOf(i) ? []
    : netOf(i).modes ? [...ofNet, { name: "mode", text: "Kind", step: 1, min: 0, max: netOf(i).modes - 1 }] : ofNet);
}

// Lists of pictures, each with its settings.
function showList(id, pictures, what, numbersOf) {
  $(id).replaceChildren(...pictures.map((picture, i) => {
    const image = make("img", { alt: `${what} ${i + 1}: ${picture.name}` });
    image.src = URL.createObjectURL(picture.blob);
    image.onload = () => URL.revokeObjectURL(image.src);
    const remove = button("Remove", `Remove ${what} ${i + 1}`, () => {
      pictures.splice(i, 1);
      showAll();
      $(`${id}-file`).focus();  // this button is gone
    });
    const note = make("p", { className: "hint", textContent: textOfNote(picture) });
    note.hidden = !note.textContent;
    return make("li", {}, image, ...numbersOf(i).map((number) => numberOf(picture, number, `${what} ${i + 1}`)), remove, note);
  }));
}

function numberOf(picture, { name, text, ...range }, what) {
  const input = make("input", { type: "number", required: true, ...range, value: picture[name],
    "aria-label": `${text} of ${what}` });
  input.addEventListener("input", () => input.value !== "" && (picture[name] = Number(input.value)));
  return make("label", { className: "number" }, text, input);
}

function show(id, picture, text) {
  const image = $(`${id}-picture`), note = $(`${id}-note`);
  if (!picture && document.activeElement === $(`${id}-remove`)) $(`${id}-file`).focus();
  image.hidden = $(`${id}-remove`).hidden = !picture;
  image.alt = picture ? text : "";
  showBlob(image, picture?.blob);
  note.textContent = textOfNote(picture);
  note.hidden = !note.textContent;
}

// ---- input

const attempt = (work) => work.catch((error) => complain(error.message));

async function readAll(files) {
  const pictures = [];
  for (const file of files) pictures.push(await readPictureFile(file, file.name));
  return pictures;
}
const acts = { "init-file": ([one]) => setInit(one), "mask-file": ([one]) => setMask(one),
  "controls-file": (all) => sayLeftOut(addControls(all)), "references-file": (all) => sayLeftOut(addReferences(all)) };
// Files that are chosen in a row, or dropped on it.
export const takeIn = (id, files) => attempt(inTurn(async () => {
  const most = $(id).multiple ? files.length : 1;
  if (files.length) acts[id](await readAll(files.slice(0, most)));
  sayLeftOut(files.slice(most).map(({ name }) => name));
}));
for (const id of Object.keys(acts)) $(id).addEventListener("change", ({ target }) => {
  takeIn(id, [...target.files]);
  target.value = "";  // allows choosing the same file again
});

$("init-remove").addEventListener("click", () => setInit(null));
$("mask-remove").addEventListener("click", () => setMask(null));
$("strength").addEventListener("input", () => {
  isStrengthChosen = true;
  $("strength-shown").textContent = $("strength").value;
});

// A mask of a picture that is scaled is painted in the size that is sent: canvases have limits as well.
async function paintMask() {
  const [size] = plan([init, { ...init, blob: new Blob() }], limits);
  if (size.isScaled) {
    const [small] = await fitAll([{ ...init, blob: init.blob }], { ...limits, input_pixels: size.width * size.height });
    const note = noteOf(init, size);
    init = { ...init, ...await readPictureFile(small.blob, small.name), note: note.replace(/ The result.*/, "") };
    mask = null;
    showAll();
  }
  const base = init, { width, height } = base;
  const painted = await openMask(base.blob, mask).catch(() => {
    throw new Error("the browser cannot show the picture to start from");
  });
  if (painted === undefined) return void ($("restored").textContent = draftNote(base.blob, mask));
  if (init !== base) setInit(base);  // a slow file came after the mask was begun
  setMask(painted && { ...painted, name: "mask.png", width, height, isLossy: false, note: "" });
}
$("paint-mask").addEventListener("click", () => attempt(paintMask()));

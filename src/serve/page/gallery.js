// The gallery: pictures that the browser keeps, shown by their thumbnails; search, selection, deletion.
import { fileName, saveFile } from "./actions.js";
import { $, bytesText, complain, make, shortened } from "./dom.js";
import { addCard, cardOf, isSeen, keepPicture, keysWithoutCard, readCard, readCards, readPicture, removePictures,
  restorePictures, whenReopened } from "./kept.js";
import { readSettings } from "./settings.js";
import { hear, share } from "./tabs.js";
import { openViewer } from "./viewer.js";
import { zipOf } from "./zip.js";

let cards = [];             // newest first; those that could not be kept have their blob and no key
const items = new Map();    // the list's items, by card
const selected = new Set();
let isSelecting = false, lastPressed = null;
const seenHere = new Set();  // ids, also of pictures that could not be kept

export const isKept = async (id) => seenHere.has(id) || isSeen(id).catch(() => false);
export async function blobOfCard(card) {
  const blob = card.blob ?? (await readPicture(card.key))?.blob;
  if (!blob) throw new Error("this picture was deleted in another tab");
  return blob;
}

// ---- adding

// A picture that cannot be kept is shown until the page is left. Resolves to its card, or to null if
// another tab has kept it.
export async function keep(id, blob, model) {
  if (seenHere.has(id)) return null;
  seenHere.add(id);
  const settings = await readSettings(blob);
  const card = { ...await cardOf(blob, settings, id), model };
  try {
    const kept = await keepPicture(card, blob);
    if (!kept) return null;
    add(kept);
    share("kept", { key: kept.key });
    askToStay().catch(console.debug);
    return kept;
  } catch (error) {
    complain(`this browser cannot keep more pictures: ${error?.message || error?.name}`);
    const unkept = { ...card, key: null, blob };
    add(unkept);
    return unkept;
  }
}

hear("kept", async ({ key }) => {
  const card = await readCard(key);
  if (card) add(card);
});
hear("removed", ({ keys }) => {
  for (const card of cards.filter(({ key }) => keys.includes(key))) drop(card);
});

const isNewer = (a, b) => a.made - b.made || (a.key ?? Infinity) - (b.key ?? Infinity);

function add(card) {
  if (card.key !== null && cards.some(({ key }) => key === card.key)) return;
  const found = cards.findIndex((one) => isNewer(card, one) > 0);
  const at = found < 0 ? cards.length : found;
  const before = items.get(cards[at]) ?? null;
  cards.splice(at, 0, card);
  $("gallery").insertBefore(itemOf(card), before);
  showState();
}

function drop(card) {
  cards = cards.filter((one) => one !== card);
  selected.delete(card);
  const image = items.get(card)?.querySelector("img");
  if (image) URL.revokeObjectURL(image.src);
  items.get(card)?.remove();
  items.delete(card);
  showState();
}

const thumbnailBlob = ({ thumbnail }) => new Blob([thumbnail], { type: "image/jpeg" });

function itemOf(card) {
  const name = shortened(card.settings.prompt) || "a picture without a prompt";
  // A thumbnail that is dropped on the form would pass for the picture.
  const image = make("img", { alt: name, loading: "lazy", draggable: false, src: URL.createObjectURL(thumbnailBlob(card)) });
  const button = make("button", { type: "button", title: name }, image);
  button.addEventListener("click", (event) => isSelecting ? press(card, event.shiftKey) : view(card));
  const item = make("li", {}, button);
  items.set(card, item);
  return item;
}

// ---- opening

export async function openGallery() {
  const kept = await readCards(), heard = new Set(cards.map(({ key }) => key));  // of another tab, meanwhile
  for (const card of kept) {
    if (card.id) seenHere.add(card.id);
    if (!heard.has(card.key)) cards.push(card);
  }
  cards.sort((a, b) => isNewer(b, a));
  $("gallery").replaceChildren(...cards.map(itemOf));
  showState();
  await addMissingCards();
}

// What was cleared meanwhile, or deleted by another tab, is not shown any longer; keys begin anew once all is cleared.
export async function readAgain() {
  const kept = new Map((await readCards()).map((card) => [card.key, card]));
  for (const card of cards.filter(({ key }) => key !== null)) if (kept.get(card.key)?.id !== card.id) drop(card);
  for (const card of kept.values()) add(card);
}
whenReopened(() => readAgain().catch(console.debug));

// One after the other: each picture is decoded for its thumbnail.
async function addMissingCards() {
  for (const key of await keysWithoutCard()) {
    const picture = await readPicture(key);
    if (!picture) continue;
    const card = await cardOf(picture.blob, picture.settings, null, 0).catch(() => null);
    if (!card) continue;  // not a picture any more
    await addCard({ ...card, key });
    add({ ...card, key });
  }
}

// Asks once that the browser does not clear pictures when its disk is full. Firefox asks the user.
async function askToStay() {
  if (!navigator.storage?.persist || await navigator.storage.persisted()) return;
  await navigator.storage.persist();
  await showRoom();
}

async function showRoom() {
  const sum = cards.reduce((bytes, card) => bytes + card.bytes, 0);
  const stays = await navigator.storage?.persisted?.().catch(() => false);
  $("gallery-hint").textContent = "Kept in this browser only" + (cards.length ? `: ${cards.length} ` +
    `${cards.length === 1 ? "picture" : "pictures"}, ${bytesText(sum)}` : "") +
    (cards.length && !stays ? ". It may clear them when its disk is full." : ".");
}

// ---- search

const wordsOf = (text) => text.toLocaleLowerCase().split(/\s+/).filter(Boolean);
const searched = ["prompt", "negative_prompt", "model", "seed", "size", "lora"];
const textOf = ({ settings }) => searched.map((name) => settings[name]).join(" ").toLocaleLowerCase();
const matches = (card) => wordsOf($("search").value).every((word) => textOf(card).includes(word));
const found = () => cards.filter(matches);
$("search").addEventListener("input", () => showState());

// ---- the viewer

function view(card) {
  openViewer(found(), card, { blobOf: blobOfCard, remove: (one) => remove([one]), returnTo: (one) =>
    items.get(one)?.querySelector("button").focus() });
}

// Enlarges a job's picture; false if it is not in the gallery.
export function viewPicture(id) {
  const card = cards.find((one) => one.id === id);
  if (!card) return false;
  openViewer(cards, card, { blobOf: blobOfCard, remove: (one) => remove([one]), returnTo: () => $("enlarge").focus() });
  return true;
}

// ---- selection

function press(card, isRange) {
  const all = found(), from = all.indexOf(lastPressed), to = all.indexOf(card);
  if (isRange && from >= 0) for (const one of all.slice(Math.min(from, to), Math.max(from, to) + 1)) selected.add(one);
  else if (!selected.delete(card)) selected.add(card);
  lastPressed = card;
  showState();
}

function select(isOn) {
  isSelecting = isOn;
  selected.clear();
  lastPressed = null;
  showState();
}

function showState() {
  const all = new Set(found());
  for (const [card, item] of items) {
    item.hidden = !all.has(card);
    if (item.hidden) selected.delete(card);
    const button = item.firstChild;
    if (isSelecting) button.setAttribute("aria-pressed", selected.has(card));
    else button.removeAttribute("aria-pressed");
  }
  const some = cards.length > 0;
  $("gallery-tools").hidden = !some;
  $("no-match").hidden = !some || all.size > 0;
  $("select").setAttribute("aria-pressed", isSelecting);
  $("selection").hidden = !isSelecting;
  $("selected").textContent = `${selected.size} selected`;
  $("download-selected").disabled = $("delete-selected").disabled = selected.size === 0;
  $("download-all").textContent = all.size < cards.length ? `Download ${all.size} found` : "Download all";
  $("download-all").disabled = all.size === 0;
  showRoom();
}

$("select").addEventListener("click", () => select(!isSelecting));
$("select-all").addEventListener("click", () => {
  for (const card of found()) selected.add(card);
  showState();
});
$("delete-selected").addEventListener("click", () => {
  const gone = [...selected];
  select(false);
  remove(gone);
});
$("download-selected").addEventListener("click", () => download(cards.filter((card) => selected.has(card))));
$("download-all").addEventListener("click", () => download(found()));

// One picture as it is, several as an archive.
async function download(wanted) {
  try {
    if (wanted.length === 1) return saveFile(await blobOfCard(wanted[0]), fileName(wanted[0].settings));
    let done = 0;
    const files = wanted.map((card, i) => ({
      name: `${String(wanted.length - i).padStart(4, "0")}-${fileName(card.settings)}`,
      date: new Date(card.made || Date.now()), blob: () => blobOfCard(card) }));
    const archive = await zipOf(files, () => ($("packing").textContent = `Packing ${++done} of ${wanted.length} …`));
    saveFile(archive, "braid-pictures.zip");
  } catch (error) {
    complain(`the pictures could not be packed: ${error.message}`);
  } finally {
    $("packing").textContent = "";
  }
}

// ---- deletion

// The newest deletion can be undone: pictures return to their places, but for those that another tab deleted
// before.
async function remove(gone) {
  try {
    const kept = gone.filter(({ key }) => key !== null);
    const removed = kept.length ? await removePictures(kept.map(({ key }) => key)) : [];
    for (const card of gone) drop(card);
    share("removed", { keys: kept.map(({ key }) => key) });
    const ours = gone.filter(({ key }) => key === null || removed.some(({ card }) => card.key === key));
    $("forgotten").hidden = false;
    $("undelete").hidden = ours.length === 0;
    $("forgotten-count").textContent = ours.length === 0 ? "Deleted in another tab."
      : ours.length === 1 ? "Deleted." : `${ours.length} deleted.`;
    $("undelete").onclick = () => undelete(ours, removed).catch((error) => complain(error.message));
    (ours.length ? $("undelete") : $("result")).focus();
  } catch (error) {
    complain(`the pictures could not be deleted: ${error.message}`);
  }
}

async function undelete(gone, removed) {
  $("forgotten").hidden = true;
  if (removed.length) await restorePictures(removed);
  for (const card of gone) add(card);
  for (const { card } of removed) share("kept", { key: card.key });
  items.get(gone[0])?.querySelector("button").focus();
}

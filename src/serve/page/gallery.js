// The gallery: pictures that the browser keeps.
import { local, remember } from "./server.js";
import { lookAt, startFrom } from "./pictures.js";
import { readSettings } from "./settings.js";

const $ = (id) => document.getElementById(id);
let use = {};  // what may be done with a picture's settings: all(settings), seed(text)

let database = null;
function opened() {
  database ??= new Promise((resolve, reject) => {
    const opening = indexedDB.open("braid", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("pictures", { autoIncrement: true });
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => resolve(opening.result);
  });
  return database;
}
const gallery = async (mode) => (await opened()).transaction("pictures", mode).objectStore("pictures");

// Resolves when it is stored: that there is no room is found out at the transaction's end.
const done = (request) => new Promise((resolve, reject) => {
  const { transaction } = request;
  transaction.addEventListener("complete", () => resolve(request.result));
  transaction.addEventListener("abort", () => reject(transaction.error ?? request.error));
});

// After a reload jobs report their pictures again: this finds those kept, or deleted since.
const newestKept = () => JSON.parse(local.kept ?? "[]");
const seen = new Set();  // also those that could not be kept
export const isKept = (url) => seen.has(url) || newestKept().includes(url);

// A picture that cannot be kept is shown until the page is left.
export async function keep(url, blob) {
  const settings = await readSettings(blob);
  let key = null;
  seen.add(url);
  try {
    key = await done((await gallery("readwrite")).add({ blob, settings }));
    remember("kept", JSON.stringify([...newestKept(), url].slice(-1000)));
  } catch (error) {
    $("error").textContent = `this browser cannot keep more pictures: ${error?.message || error?.name}`;
  }
  $("gallery").prepend(galleryItem(key, { blob, settings }));
}

export function showBlob(image, blob) {
  const old = image.src;
  image.src = URL.createObjectURL(blob);
  if (old.startsWith("blob:")) URL.revokeObjectURL(old);
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

export async function openGallery(uses) {
  use = uses;
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
  $("reuse").onclick = () => { use.all(settings); $("shown").close(); };
  $("reuse-seed").onclick = () => { use.seed(settings.seed ?? ""); $("shown").close(); };
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

// The database of pictures that the browser keeps: files apart from their cards, so that a gallery of
// hundreds reads only thumbnails.
//
//   pictures  key -> { bytes, settings }; version 0.2 wrote { blob, settings }, but WebKit's private
//             windows store no blobs, or wait forever
//   cards     key -> { key, id, settings, thumbnail, width, height, bytes, made, model }; the last is the name that
//             the server gives its model, which may be another than the one in the settings
//   seen      id -> when: a job's pictures that were kept, also those deleted since
//
// An id is "JOB/NUMBER". All tabs write here; a picture and its id are stored in one transaction, so
// that no two tabs store it.
const kThumbnailSide = 320;            // pixels
const kForgetSeenAfter = 24 * 3600e3;  // milliseconds; servers keep jobs for minutes

let database = null, onReopened = () => {};
export const whenReopened = (act) => (onReopened = act);

// A browser closes the database when its data is cleared, or as it likes: WebKit does so in the background.
let wasOpen = false;
function opened() {
  return database ??= open();
}

// The next use opens it again.
const forget = (lost) => database === lost && (database = null);

function open() {
  const mine = new Promise((resolve, reject) => {
    const opening = indexedDB.open("braid", 2);
    opening.onupgradeneeded = () => {
      const { result } = opening, has = (name) => result.objectStoreNames.contains(name);
      if (!has("pictures")) result.createObjectStore("pictures", { autoIncrement: true });
      if (!has("cards")) result.createObjectStore("cards", { keyPath: "key" });
      if (!has("seen")) result.createObjectStore("seen");
    };
    opening.onblocked = () => reject(new Error("another tab shows an older version of this page: close it"));
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const { result } = opening;
      result.onclose = () => forget(mine);
      result.onversionchange = () => {
        result.close();
        forget(mine);
      };
      resolve(result);
      if (wasOpen) onReopened();
      wasOpen = true;
    };
  });
  mine.catch(() => forget(mine));
  return mine;
}

const resultOf = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

// Resolves to what `work` returns once it is stored: that there is no room is found out at the end.
async function transact(stores, mode, work) {
  const transaction = (await opened()).transaction(stores, mode);
  const ended = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error ?? new Error("it was interrupted"));
  });
  ended.catch(() => {});
  const result = await work(...stores.map((name) => transaction.objectStore(name)));
  await ended;
  return result;
}

export async function thumbnailOf(blob) {
  const bitmap = await createImageBitmap(blob);
  const { width, height } = bitmap;
  const scale = Math.min(1, kThumbnailSide / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.fillStyle = "white";  // JPEG has no transparency: what is transparent would be black
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const thumbnail = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.85));
  return { thumbnail: await thumbnail.arrayBuffer(), width, height };
}

export const cardOf = async (blob, settings, id, made = Date.now()) =>
  ({ id, settings, bytes: blob.size, made, ...await thumbnailOf(blob) });

// Stores a job's picture unless it is, or was, stored: then null. Resolves to its card.
export async function keepPicture(card, blob) {
  const bytes = await blob.arrayBuffer();
  return transact(["pictures", "cards", "seen"], "readwrite", async (pictures, cards, seen) => {
    if (await resultOf(seen.getKey(card.id))) return null;
    seen.put(Date.now(), card.id);
    const key = await resultOf(pictures.add({ bytes, settings: card.settings }));
    const whole = { ...card, key };
    cards.add(whole);
    return whole;
  });
}

export const isSeen = (id) => transact(["seen"], "readonly", (seen) => resultOf(seen.getKey(id)))
  .then((key) => key !== undefined);

export const readCard = (key) => transact(["cards"], "readonly", (cards) => resultOf(cards.get(key)));
export async function readPicture(key) {
  const picture = await transact(["pictures"], "readonly", (pictures) => resultOf(pictures.get(key)));
  return picture && { blob: picture.blob ?? new Blob([picture.bytes], { type: "image/png" }), settings: picture.settings };
}

// All cards, oldest first.
export async function readCards() {
  forgetOldIds().catch(console.debug);
  return transact(["cards"], "readonly", (cards) => resultOf(cards.getAll()));
}

// Keys of pictures without a card: those of version 0.2.
export const keysWithoutCard = () => transact(["pictures", "cards"], "readonly", async (pictures, cards) => {
  const [all, known] = await Promise.all([resultOf(pictures.getAllKeys()), resultOf(cards.getAllKeys())]);
  const has = new Set(known);
  return all.filter((key) => !has.has(key));
});
export const addCard = (card) => transact(["cards"], "readwrite", (cards) => resultOf(cards.put(card)));

// Resolves to what restorePictures() takes.
export const removePictures = (keys) => transact(["pictures", "cards"], "readwrite", async (pictures, cards) => {
  const removed = [];
  for (const key of keys) {
    const [picture, card] = await Promise.all([resultOf(pictures.get(key)), resultOf(cards.get(key))]);
    if (!picture || !card) continue;  // another tab was first
    removed.push({ picture, card });
    pictures.delete(key);
    cards.delete(key);
  }
  return removed;
});
export const restorePictures = (removed) => transact(["pictures", "cards"], "readwrite", async (pictures, cards) => {
  for (const { picture, card } of removed) {
    pictures.put(picture, card.key);
    cards.put(card);
  }
});

const forgetOldIds = () => transact(["seen"], "readwrite", async (seen) => {
  const [ids, times] = await Promise.all([resultOf(seen.getAllKeys()), resultOf(seen.getAll())]);
  ids.forEach((id, i) => times[i] < Date.now() - kForgetSeenAfter && seen.delete(id));
});

// Brings pictures that a browser shows into a form that the server takes: PNG, JPEG or WebP, within its
// limits of pixels and bytes per request. What is taken as it is keeps its bytes.
import { isShownOtherwise } from "./orientation.js";

const kRestOfBody = 1 << 17;           // bytes for what a form holds beside pictures
export const kBodyBytes = 32 << 20;    // where the server does not say
const kQualities = [0.95, 0.85, 0.7];  // tried in this order, of pictures that are too many bytes

const has = (bytes, at, text) => [...text].every((c, i) => bytes[at + i] === c.charCodeAt(0));

function isAnimatedPng(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 8; at + 12 <= bytes.length; at += 12 + view.getUint32(at)) {
    if (has(bytes, at + 4, "acTL")) return true;
    if (has(bytes, at + 4, "IDAT")) return false;
  }
  return false;
}

// "png", "jpeg" or "webp" for files that the server reads, else "": it takes no animations.
export function serverFormat(bytes) {
  if (has(bytes, 0, "\x89PNG\r\n\x1a\n")) return isAnimatedPng(bytes) ? "" : "png";
  if (has(bytes, 0, "\xff\xd8\xff")) return "jpeg";
  if (!has(bytes, 0, "RIFF") || !has(bytes, 8, "WEBP")) return "";
  return has(bytes, 12, "VP8X") && bytes[20] & 2 ? "" : "webp";
}

// An image that can be drawn on a canvas. createImageBitmap knows fewer kinds than <img>.
async function drawable(blob) {
  try {
    return await createImageBitmap(blob);
  } catch (error) {
    console.debug(error);
  }
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  try {
    await image.decode();
    return await createImageBitmap(image);
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

async function redrawn(blob, width, height, type, quality) {
  const bitmap = await drawable(blob);
  const canvas = document.createElement("canvas");
  canvas.width = width ?? bitmap.width;
  canvas.height = height ?? bitmap.height;
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  if (type === "image/jpeg") {  // the server, too, lays pictures over white
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
  }
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const result = await new Promise((resolve) => canvas.toBlob(resolve, type, quality));
  canvas.width = canvas.height = 0;  // frees its memory at once
  if (!result) throw new Error(`this browser has no memory for a picture of ${width} × ${height}`);
  return result;
}

const stem = (name) => name.replace(/\.[^.]*$/, "") || "picture";

// Resolves to { blob, name, width, height, isLossy, note }, or fails if the browser cannot show it.
export async function readPictureFile(blob, name) {
  const bitmap = await drawable(blob).catch(() => {
    throw new Error(`this browser cannot read ${name || "this file"} as a picture`);
  });
  const { width, height } = bitmap;
  bitmap.close();
  const bytesOf = async (part) => new Uint8Array(await part.arrayBuffer());
  const format = serverFormat(await bytesOf(blob.slice(0, 1 << 16)));
  const isTurned = format && isShownOtherwise(await bytesOf(blob), format, { width, height });
  const isLossy = ["jpeg", "webp"].includes(format);
  if (format && !isTurned) return { blob, name: name || `picture.${format}`, width, height, isLossy, note: "" };
  const kind = (blob.type.split("/")[1] ?? "").replace(/\+.*/, "").toUpperCase();
  return {
    blob: await redrawn(blob, width, height, "image/png"), name: `${stem(name)}.png`, width, height, isLossy,
    note: isTurned ? "Converted to PNG in this browser, as it is shown here: the server would turn it."
      : `Converted to PNG in this browser${kind && kind !== "PNG" ? ` from ${kind}` : ", its first picture"}.`,
  };
}

// The largest cap so that the sum of min(amount, cap) stays within the limit.
export function capFor(amounts, limit) {
  let rest = limit, left = amounts.length;
  for (const amount of [...amounts].sort((a, b) => a - b)) {
    if (amount > rest / left) return Math.floor(rest / left);
    rest -= amount;
    --left;
  }
  return Infinity;
}

// How each picture of a request is sent: { width, height, isChanged }. Pictures of one size, such as a
// picture and its mask, keep one size.
export function plan(pictures, limits) {
  const pixels = pictures.map(({ width, height }) => width * height);
  const pixelCap = capFor(pixels, limits.input_pixels);
  const byteCap = capFor(pictures.map(({ blob }) => blob.size), (limits.body_bytes ?? kBodyBytes) - kRestOfBody);
  return pictures.map(({ width, height, blob }, i) => {
    const scale = Math.min(1, Math.sqrt(pixelCap / pixels[i]));
    const size = scale === 1 ? { width, height }
      : { width: Math.max(1, Math.floor(width * scale)), height: Math.max(1, Math.floor(height * scale)) };
    return { ...size, isScaled: scale < 1, isChanged: scale < 1 || blob.size > byteCap, byteCap };
  });
}

// What is said of a picture that is not sent as it is.
export function noteOf({ width, height, note }, planned) {
  if (planned?.isScaled) return `Scaled in this browser from ${width} × ${height} to ${planned.width} × ` +
    `${planned.height}: the server takes no more. ${different}`;
  if (planned?.isChanged) return `Compressed in this browser: the server does not take so many bytes. ${different}`;
  return note ? `${note} ${different}` : "";
}
const different = "The result has other bytes than generate gives for the file.";

const fits = new WeakMap();  // by picture: { plan, file } of the last request, as each takes time and memory

async function fitted(picture, planned) {
  if (!planned.isChanged) return picture;
  const plan = JSON.stringify(planned), last = fits.get(picture);
  if (last?.plan === plan) return last.file;
  const file = await fitNow(picture, planned);
  fits.set(picture, { plan, file });
  return file;
}

async function fitNow(picture, { width, height, byteCap }) {
  const sized = `${stem(picture.name)}-${width}x${height}`;
  if (!picture.isLossy) {
    const blob = await redrawn(picture.blob, width, height, "image/png");
    if (blob.size <= byteCap) return { blob, name: `${sized}.png` };
  }
  let blob = null;
  for (const quality of kQualities) {
    blob = await redrawn(picture.blob, width, height, "image/jpeg", quality);
    if (blob.size <= byteCap) break;
  }
  return { blob, name: `${sized}.jpg` };
}

// The pictures as they are sent: { blob, name } each. One after the other, as each takes memory.
export async function fitAll(pictures, limits) {
  const plans = plan(pictures, limits), all = [];
  for (const [i, picture] of pictures.entries()) all.push(await fitted(picture, plans[i]));
  return all;
}

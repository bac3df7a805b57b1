// The settings in a picture's file.
import { ask } from "./server.js";

// Of a PNG: reads uncompressed tEXt and iTXt chunks, because Braid writes no others.
export async function readSettings(blob) {
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
export async function settingsOf(file) {
  if (file.type === "image/png") return readSettings(file);
  const image = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const headers = { "content-type": "application/json" };
  const answer = await ask("sdapi/v1/png-info", { method: "POST", headers, body: JSON.stringify({ image }) });
  const { items } = await answer.json();
  return items.steps === undefined ? {} : items;
}

const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

// The settings in a picture's file.
import { givesLoras } from "./loras.js";
import { kBodyBytes, serverFormat } from "./scaling.js";
import { ask } from "./server.js";

const kFirst = 64;      // bytes that tell the format
const kHead = 1 << 17;  // bytes of a JPEG: its EXIF data, 64 KiB at most, stand at its beginning

// Reads the settings of a PNG, in uncompressed tEXt and iTXt chunks, because Braid writes no others.
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
  if (isOfBraid(settings)) delete settings.parameters;  // the same, as other programs read it
  return settings;
}

// Braid signs its text. Other programs use some of the same names with other meanings: ComfyUI keeps its graph
// of nodes as "prompt", and "guidance", which the server makes of their "CFG scale", is Forge's true guidance.
const isOfBraid = ({ software }) => software?.startsWith("braid ") ?? false;

// Empty for pictures that Braid did not make. `limits` are the server's.
export async function settingsOf(file, limits) {
  const format = serverFormat(new Uint8Array(await file.slice(0, kFirst).arrayBuffer()));
  const settings = file.type === "image/png" || format === "png" ? await readSettings(file)
    : await settingsByServer(file, format, limits?.body_bytes ?? kBodyBytes);
  return isOfBraid(settings) ? settings : {};
}

// The server reads JPEG and WebP: of the first the head will do, the second is left alone where it does not fit.
async function settingsByServer(whole, format, most) {
  const file = format === "jpeg" ? whole.slice(0, kHead) : whole;
  const isTaken = format && Math.ceil(file.size / 3) * 4 + 100 <= most;  // in base64, with what is around it
  if (!isTaken) return {};
  const image = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const headers = { "content-type": "application/json" };
  const answer = await ask("sdapi/v1/png-info", { method: "POST", headers, body: JSON.stringify({ image }) });
  return (await answer.json()).items;
}

// What the text tells of the server and of the picture: no request has such fields.
const informational = new Set(["software", "layer", "original_prompt", "guidance_kind", "dp", "cfg", "pp", "ring",
  "ulysses", "tp", "shares", "collectives", "dtype", "quantize", "quantize_text", "quantize_skip", "cache",
  "cache_limit", "cache_polynomial", "components", "text_encoder_file", "vae_file", "vae_tiling", "redux",
  "lora_mode"]);

// True for what a request asks for. Names of another form were added by other programs.
export const isSetting = (name) =>
  /^[a-z][a-z0-9_]*$/.test(name) && !informational.has(name) && !/_sha256$|^control_\d+_net$/.test(name);

// Numbers, lists and switches as texts have them.
function isEqual(value, text) {
  if (typeof value === "boolean") return text === (value ? "on" : "off");
  if (typeof value === "number") return value === Number(text);
  if (Array.isArray(value)) return value.join() === text.split(",").map(Number).join();
  return String(value).replace(/\r\n?/g, "\n") === text.replace(/\r\n?/g, "\n");
}

// Names of a text's settings that a job's request for `settings` would not have: all but the seed.
export function lostOf(text, { width, height, lora = [], ...settings }, capabilities) {
  const ordered = { ...capabilities.defaults, model: capabilities.model, ...settings,
    ...(width && { size: `${width}x${height}` }) };
  const isOpen = (name) => name === "seed" || (name === "guidance" && capabilities.guidance === "none");
  const has = (name, value) => isOpen(name) || (name === "lora" ? givesLoras(value, lora, capabilities)
    : name in ordered && isEqual(ordered[name], value));
  return Object.keys(text).filter((name) => isSetting(name) && !has(name, String(text[name])));
}

const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

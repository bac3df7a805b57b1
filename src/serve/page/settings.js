// The settings in a picture's file.
import { ask } from "./server.js";

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
  return settings;
}

// Braid signs its text. Other programs use some of the same names with other meanings: ComfyUI keeps its graph
// of nodes as "prompt", and the web UI's "CFG scale", which is "guidance" here, is Forge's true guidance.
const isOfBraid = ({ software }) => software?.startsWith("braid ") ?? false;

// Empty for pictures that Braid did not make.
export async function settingsOf(file) {
  const settings = file.type === "image/png" ? await readSettings(file) : await settingsByServer(file);
  return isOfBraid(settings) ? settings : {};
}

// The server reads formats other than PNG.
async function settingsByServer(file) {
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
const informational = new Set(["software", "layer", "original_prompt", "dp", "cfg", "pp", "ring", "ulysses", "tp", "shares",
  "collectives", "dtype", "quantize", "quantize_text", "quantize_skip", "cache", "cache_limit", "cache_polynomial",
  "components", "text_encoder_file", "vae_file", "vae_tiling", "redux", "lora_mode"]);

// True for what a request asks for. Names of another form were added by other programs.
export const isSetting = (name) =>
  /^[a-z][a-z0-9_]*$/.test(name) && !informational.has(name) && !/_sha256$|^control_\d+_net$/.test(name);

const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

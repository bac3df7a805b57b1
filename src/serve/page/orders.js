// Orders jobs, and makes a picture again with another seed.
import { $, shortened } from "./dom.js";
import { capabilitiesOf, offered, user } from "./form.js";
import { lorasToAsk } from "./loras.js";
import { askJson, post } from "./server.js";
import { lostOf } from "./settings.js";

const sent = new Map();  // by job: what was ordered in this visit, with the pictures that it brought

// Pictures are sent as files; the browser sets the content type.
function formOf(settings, fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(settings))
    form.append(name, typeof value === "object" ? JSON.stringify(value) : value);
  for (const field of fields) form.append(...field);
  return form;
}

// `fields` are those of pictureFields(). Resolves to the job. While a prompt is rewritten there is none, and
// who gives up the request ends it.
export async function order(settings, fields) {
  const whole = { ...settings, user, previews: true };
  const { signal } = settings.enhance ? beginEnhancing() : {};
  try {
    const job = fields.length ? await askJson("v1/jobs", { method: "POST", body: formOf(whole, fields), signal })
      : await post("v1/jobs", whole, signal);
    sent.set(job.id, { settings, fields });
    return job;
  } catch (error) {
    throw signal?.aborted ? new Error("Cancelled.") : error;
  } finally {
    $("enhancing").hidden = true;
  }
}

let enhancing = new AbortController();
function beginEnhancing() {
  $("enhancing").hidden = false;
  return (enhancing = new AbortController());
}
$("stop-enhancing").addEventListener("click", () => enhancing.abort());

const numbers = ["steps", "shift", "guidance", "max_sequence_length", "true_cfg", "guidance_rescale", "cfg_norm_cap",
  "cfg_until", "layers", "frames"];
const texts = ["prompt_2", "negative_prompt_2", "sampler", "schedule"];
const isPicture = (name) => /^(init|mask|(reference|control)(_\d+)?)$/.test(name);

// What to order for the settings in a picture's text.
export function settingsOfText(text, capabilities) {
  const [width, height] = (text.size ?? "").split("x").map(Number);
  const settings = { prompt: text.prompt ?? "", ...(height && { width, height }) };
  for (const name of texts) if (text[name]) settings[name] = text[name];
  if (text.negative_prompt !== undefined) settings.negative_prompt = text.negative_prompt;  // empty ones guide, too
  if (text.cfg_normalize) settings.cfg_normalize = text.cfg_normalize === "on";
  for (const name of numbers) if (text[name] !== undefined) settings[name] = Number(text[name]);
  for (const name of ["sigmas", "base_sigmas"]) if (text[name]) settings[name] = text[name].split(",").map(Number);
  if (capabilities.guidance === "none") delete settings.guidance;
  if (capabilities.models.length > 1) settings.model = capabilities.model;
  const loras = lorasToAsk(text.lora ?? "", capabilities).filter(({ name }) => capabilities.loras?.includes(name));
  if (loras.length) settings.lora = loras;
  return settings;
}

// Of the model that made the picture, where the server has it.
async function capabilitiesFor({ model }) {
  const chosen = offered();
  if (!chosen) throw new Error("the model is still being loaded");
  return model !== chosen.model && chosen.models.includes(model) ? capabilitiesOf(model) : chosen;
}

// Another picture in its place would be a surprise.
function refuseOthers(text, names) {
  if (names.length === 0) return;
  const what = names.map((name) => `${name.replaceAll("_", " ")} “${shortened(String(text[name]))}”`).join(", ");
  throw new Error(`this picture cannot be made again here: this server does not offer its ${what}`);
}

// The same again, with a seed of the server's choice. `id` is "JOB/NUMBER".
export async function orderAgain(id, text) {
  const known = sent.get(id?.split("/")[0]);
  const capabilities = await capabilitiesFor(text);
  if (known) {
    if (text.model && text.model !== capabilities.model) refuseOthers(text, ["model"]);  // the server was restarted
    const { seed, ...settings } = known.settings;
    return order({ ...settings, n: 1 }, known.fields);
  }
  if (Object.keys(text).some(isPicture))
    throw new Error("this picture was made from others that the page no longer has: give them again, and use its settings");
  const settings = settingsOfText(text, capabilities);
  refuseOthers(text, lostOf(text, settings, capabilities));
  return order({ ...settings, n: 1 }, []);
}

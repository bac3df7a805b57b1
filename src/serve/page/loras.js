// LoRAs that a request may name, with weights.
import { $, make } from "./dom.js";

const checkbox = (row) => row.querySelector("[type=checkbox]");
const weight = (row) => row.querySelector("[type=number]");

export const chosenLoras = () => [...$("loras").children].filter((row) => checkbox(row).checked)
  .map((row) => ({ name: row.dataset.name, scale: weight(row).valueAsNumber }));  // NaN, null in JSON, if it is empty

export function chooseLoras(chosen) {
  for (const row of $("loras").children) {
    const one = chosen.find(({ name }) => name === row.dataset.name);
    checkbox(row).checked = weight(row).required = one !== undefined;
    if (one) weight(row).value = one.scale;
  }
}

// Of a picture's text: "ink.safetensors=0.8, red, blue.safetensors=1". Names may hold commas and equals signs.
export const lorasOfText = (text) => [...text.matchAll(/(.+?)=(-?[\d.]+(?:e[+-]?\d+)?)(?:, |$)/gs)]
  .map(([, name, scale]) => ({ name: name.replace(/\.safetensors$/, ""), scale: Number(scale) }));

const isSame = (one, other) => one.name === other.name && one.scale === other.scale;

// Those of a picture's text that are not the server's own, which it applies to all pictures.
export const lorasToAsk = (text, capabilities) => lorasOfText(text)
  .filter((one) => !capabilities.adapters?.some((own) => isSame(one, own)));

// True if a request for `asked` gives all of the text's.
export function givesLoras(text, asked, capabilities) {
  const wanted = lorasOfText(text);
  return wanted.length > 0 && lorasToAsk(text, capabilities).every((one) => asked.some((other) => isSame(one, other)));
}

export function offerLoras(names) {
  const chosen = chosenLoras();
  $("loras-row").hidden = names.length === 0;
  $("loras").replaceChildren(...names.map((name) => {
    const box = make("input", { type: "checkbox" });
    const scale = make("input", { type: "number", step: "any", value: 1, "aria-label": `Weight of ${name}` });
    box.addEventListener("change", () => (scale.required = box.checked));
    scale.addEventListener("input", () => (box.checked = scale.required = box.checked || scale.value !== ""));
    const row = make("li", {}, make("label", {}, box, ` ${name}`), scale);
    row.dataset.name = name;
    return row;
  }));
  chooseLoras(chosen);
}

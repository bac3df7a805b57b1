// LoRAs that a request may name, with weights.
import { $, make } from "./dom.js";

const checkbox = (row) => row.querySelector("[type=checkbox]");
const weight = (row) => row.querySelector("[type=number]");

export const chosenLoras = () => [...$("loras").children].filter((row) => checkbox(row).checked)
  .map((row) => ({ name: row.dataset.name, scale: Number(weight(row).value) }));

export function chooseLoras(chosen) {
  for (const row of $("loras").children) {
    const one = chosen.find(({ name }) => name === row.dataset.name);
    checkbox(row).checked = one !== undefined;
    if (one) weight(row).value = one.scale;
  }
}

// Of a picture's text: "ink.safetensors=0.8, paper.safetensors=1".
export const lorasOfText = (text) => text.split(", ").filter(Boolean).map((one) => {
  const at = one.lastIndexOf("=");
  return { name: one.slice(0, at).replace(/\.safetensors$/, ""), scale: Number(one.slice(at + 1)) };
});

export function offerLoras(names) {
  const chosen = chosenLoras();
  $("loras-row").hidden = names.length === 0;
  $("loras").replaceChildren(...names.map((name) => {
    const box = make("input", { type: "checkbox" });
    const scale = make("input", { type: "number", step: "0.05", value: 1, "aria-label": `Weight of ${name}` });
    scale.addEventListener("input", () => (box.checked = true));
    const row = make("li", {}, make("label", {}, box, ` ${name}`), scale);
    row.dataset.name = name;
    return row;
  }));
  chooseLoras(chosen);
}

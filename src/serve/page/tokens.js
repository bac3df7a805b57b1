// How many tokens the prompts have, and what of them the model will not read. The server counts.
import { $, make } from "./dom.js";
import { post } from "./server.js";

const kWait = 400;  // milliseconds after the last key

let model = null, timer = 0, newest = 0, isOffered = true;

export function countFor(capabilities) {
  model = capabilities.model;
  isOffered = true;  // the one before may have been taken away
  countSoon();
}

function countSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => countAll().catch(console.debug), kWait);
}

async function countAll() {
  if (!model || !isOffered) return;
  const number = ++newest;
  const counted = await post("v1/tokens", {
    model, prompt: $("prompt").value, negative_prompt: $("negative_prompt").value,
    ...($("max_sequence_length").value && { max_sequence_length: Number($("max_sequence_length").value) }),
  }).catch((error) => {
    if (error.status === 404) isOffered = false;  // an older server
    if (number === newest) showRefusal(error);
    throw error;
  });
  if (number !== newest) return;
  show("tokens", counted.prompt);
  show("negative-tokens", $("negative_prompt").value ? counted.negative_prompt : []);
}

// What was counted before is not said of another prompt.
function showRefusal({ param, message }) {
  $("tokens").textContent = param === "prompt" ? message : "";
  $("negative-tokens").textContent = param === "negative_prompt" ? message : "";
}

function show(id, readers) {
  const several = readers.length > 1;
  const counts = readers.map(({ encoder, tokens, limit }) =>
    `${several ? `${encoder} ` : ""}${tokens} of ${limit} tokens`).join(", ");
  const cuts = readers.filter(({ cut }) => cut).map(({ encoder, limit, cut }) =>
    make("span", { className: "cut" }, `${several ? encoder : "The model"} reads the first ${limit} tokens, and not: `,
      make("q", { className: "clamped", dir: "auto", textContent: cut.trim() })));
  $(id).replaceChildren(...(counts ? [counts] : []), ...cuts);
}

for (const id of ["prompt", "negative_prompt", "max_sequence_length"]) $(id).addEventListener("input", countSoon);

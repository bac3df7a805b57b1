// What may be done with a picture from where it appears: buttons with data-act in a toolbar.
import { $, clearMessages, complain, inTurn, isNarrow, say } from "./dom.js";
import { fillFrom, useSeed } from "./form.js";
import { follow, lookAt, paintOn, startFrom, uses } from "./pictures.js";
import { orderAgain } from "./orders.js";

export function saveFile(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60e3);
}

const kNameCharacters = 40;

// Marks stay with their letters: without them, words of Hindi, Thai or Hebrew are others.
function wordsOf(prompt) {
  const words = (prompt.normalize("NFC").match(/[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu) ?? []).join("-");
  let first = "";
  for (const { segment } of new Intl.Segmenter().segment(words)) {
    if ([...first, ...segment].length > kNameCharacters) break;
    first += segment;
  }
  return first.replace(/-$/, "");
}

export const fileName = ({ seed, prompt }) =>
  `braid-${[seed ?? "picture", wordsOf(prompt ?? "")].filter(Boolean).join("-")}.png`;

const showInputs = () => $("pictures-in").scrollIntoView({ block: "nearest" });
let onOrder = () => {};

// The file names the model's folder; a server may give it another name.
const textOf = ({ settings, model }) => model ? { ...settings, model } : settings;

const acts = {
  download: ({ blob, settings }) => saveFile(blob, fileName(settings)),
  start: ({ blob, settings }) => inTurn(() => startFrom(blob, fileName(settings))).then(showInputs),
  look: ({ blob, settings }) => inTurn(() => lookAt(blob, fileName(settings))).then(showInputs),
  follow: ({ blob, settings }) => inTurn(() => follow(blob, fileName(settings))).then(showInputs),
  mask: ({ blob, settings }) => paintOn(blob, fileName(settings)),
  again: async (picture) => {
    onOrder(await orderAgain(picture.id, textOf(picture)));
    say("Ordered again, with another seed.");
    if (isNarrow()) $("result").scrollIntoView();
  },
  settings: (picture) => fillFrom(textOf(picture)),
  seed: ({ settings }) => useSeed(settings.seed ?? ""),
};

// `current` resolves to { id, blob, settings, model }; `before` is called first, with the act's name or "complain". A double
// click acts once, and so do clicks while an act is under way.
export function offerActions(toolbar, current, before = () => {}) {
  let isActing = false;
  toolbar.addEventListener("click", async (event) => {
    const act = event.target.closest("[data-act]")?.dataset.act;
    if (!act || isActing || event.detail > 1) return;
    isActing = true;
    try {
      const picture = await current();
      if (!picture) return;
      before(act);
      clearMessages();
      await acts[act](picture);
    } catch (error) {
      before("complain");  // which is to be seen
      complain(error.message);
    } finally {
      isActing = false;
    }
  });
}

export const whenOrdered = (act) => (onOrder = act);

// Hides what the loaded model cannot do.
export function fitActions() {
  const able = uses();
  for (const one of document.querySelectorAll("[data-act]"))
    if (["start", "look", "follow", "mask"].includes(one.dataset.act)) one.hidden = !able.includes(one.dataset.act);
}

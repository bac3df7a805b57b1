// What may be done with a picture from where it appears: buttons with data-act in a toolbar.
import { clearMessages, complain, isNarrow, say } from "./dom.js";
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

export const fileName = ({ seed, prompt }) => {
  const words = (prompt ?? "").normalize("NFKD").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  return `braid-${seed ?? "picture"}${words && `-${[...words].slice(0, 40).join("").replace(/-$/, "")}`}.png`;
};

const showInputs = () => $("pictures-in").scrollIntoView({ block: "nearest" });
let onOrder = () => {};

const acts = {
  download: ({ blob, settings }) => saveFile(blob, fileName(settings)),
  start: ({ blob, settings }) => startFrom(blob, fileName(settings)).then(showInputs),
  look: ({ blob, settings }) => lookAt(blob, fileName(settings)).then(showInputs),
  follow: ({ blob, settings }) => follow(blob, fileName(settings)).then(showInputs),
  mask: ({ blob, settings }) => paintOn(blob, fileName(settings)),
  again: async ({ id, settings }) => {
    onOrder(await orderAgain(id, settings));
    say("Ordered again, with another seed.");
    if (isNarrow()) $("result").scrollIntoView();
  },
  settings: ({ settings }) => fillFrom(settings),
  seed: ({ settings }) => useSeed(settings.seed ?? ""),
};

// `current` resolves to { id, blob, settings }; `before` is called with the act's name first. A double
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
      before(act);
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

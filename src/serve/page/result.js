// The picture that is being made, or was made last, in the middle of the page.
import { offerActions } from "./actions.js";
import { $, shortened, showBlob } from "./dom.js";
import { viewPicture } from "./gallery.js";
import { readSettings } from "./settings.js";

let finished = null;  // the newest picture: { id, blob, settings, model }

function showPicture(blob, prompt, isRough) {
  // The keyboard's user is not left on a button that a preview disables or hides.
  const isHeld = [$("enlarge"), $("picture-actions")].some((one) => one.contains(document.activeElement));
  if (isRough && isHeld) $("result").focus({ preventScroll: true });
  showBlob($("picture"), blob);
  $("picture").alt = isRough ? `Preview of: ${shortened(prompt)}` : shortened(prompt) || "a picture without a prompt";
  $("picture").className = isRough ? "rough" : "";
  $("picture").draggable = !isRough;
  $("picture").hidden = false;
  $("enlarge").disabled = isRough;
  $("empty").hidden = true;
  $("picture-actions").hidden = isRough;
}

export function showPreview(blob, prompt) {
  showPicture(blob, prompt, true);
  caption(prompt);
}

function caption(text) {
  $("caption").textContent = text;
  $("caption").title = text;
}

// Replaces a preview that did not become a picture.
export function showFinished() {
  if (finished) showPicture(finished.blob, finished.settings.prompt, false);
  else $("picture").hidden = $("picture-actions").hidden = $("enlarge").disabled = true;
  $("empty").hidden = finished !== null;
  caption(finished ? `${finished.settings.prompt} (seed ${finished.settings.seed})` : "");
}
export const isRough = () => $("picture").className === "rough";

export async function showMade(picture, prompt, seed) {
  const settings = await readSettings(picture.blob).catch(() => ({}));
  finished = { ...picture, settings: { prompt, seed, ...settings } };
  showFinished();
}

// ---- what the server says of the job

export function showNotices(texts) {
  $("notices").replaceChildren(...texts.map((text) => {
    const item = document.createElement("li");
    item.textContent = `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
    return item;
  }));
}

$("enlarge").addEventListener("click", () => finished && viewPicture(finished.id));
offerActions($("picture-actions"), () => finished);

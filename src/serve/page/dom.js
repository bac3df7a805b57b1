// Elements by id, and new ones.
export const $ = (id) => document.getElementById(id);

// make("button", { textContent: "Remove" }, child, ...): properties that elements lack become attributes.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export const button = (text, label, act) => {
  const one = make("button", { type: "button", textContent: text });
  if (label) one.setAttribute("aria-label", label);
  one.addEventListener("click", act);
  return one;
};

// Shows a blob and lets go of the one before; without a blob the image is empty.
export function showBlob(image, blob) {
  const old = image.src;
  if (blob) image.src = URL.createObjectURL(blob);
  else image.removeAttribute("src");
  if (old.startsWith("blob:")) URL.revokeObjectURL(old);
}

// What changes without the keyboard's focus moving there is spoken.
export const say = (text) => ($("spoken").textContent = text);

// On a phone the form may be out of sight.
export function complain(message) {
  $("error").textContent = message;
  $("error").scrollIntoView({ block: "nearest" });
}

// Takes back what was said of the last act.
export const clearMessages = () => ($("error").textContent = $("restored").textContent = "");

// A row that is not offered holds no order back: its fields count neither as missing nor as wrong.
export function offer(id, isOffered) {
  $(id).hidden = !isOffered;
  for (const field of $(id).querySelectorAll("input, textarea, select")) field.disabled = !isOffered;
}

// Opens what is folded around an element.
export function unfold(element) {
  for (let one = element.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
}

const kShort = 60;  // characters

// A prompt as a name or a tooltip, which are read out and shown whole.
export function shortened(text) {
  const first = [...(text ?? "").slice(0, 2 * kShort + 2)];
  return first.length > kShort ? `${first.slice(0, kShort).join("")} …` : first.join("");
}

// Runs works one after the other: a slow file does not overtake those that come later.
let turn = Promise.resolve();
export function inTurn(work) {
  const mine = turn.then(work);
  turn = mine.catch(() => {});
  return mine;
}

export const isNarrow = () => matchMedia("(max-width: 48rem)").matches;

export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s`
    : `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
}

export function bytesText(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB`
    : `${(bytes / 1e9).toFixed(1)} GB`;
}

// The page: a form, the picture that is being made, and a gallery kept by the browser.
import { fitActions, whenOrdered } from "./actions.js";
import { $, clearMessages, complain, duration, inTurn, isNarrow, say, unfold } from "./dom.js";
import { beginForm, fillFrom, fillRemembered, isModelSettled, isSameOffer, offered, rememberForm,
  settingsOfForm } from "./form.js";
import { openGallery, readAgain } from "./gallery.js";
import { begin, followMine, refreshPlaces, whenLost } from "./jobs.js";
import { order } from "./orders.js";
import { leftOut, missing, pictureFields, takeIn, takePictures, takesSeveral, uses } from "./pictures.js";
import { keyNeeded, readStatus, unreachable } from "./server.js";
import { settingsOf } from "./settings.js";

// ---- the server

let spokenStatus = "ready";
let isCurrent = false;  // knows what the server offers, and the user's jobs
async function watchServer() {
  for (;;) {
    try {
      const status = await readStatus();
      $("server").textContent = wordsOf(status);
      sayStatus(status.status);
      showLoading(status);
      if (status.status === "ready") await catchUp();
    } catch (error) {
      isCurrent = false;
      $("loading").hidden = true;
      $("server").textContent = error.message;
      sayStatus(error.message === keyNeeded ? "waiting for its key" : "unreachable");
    }
    await new Promise((resolve) => setTimeout(resolve, $("loading").hidden ? 3000 : 500));
  }
}

const wordsOf = ({ status, running, waiting, seconds_until_idle }) =>
  status === "loading" ? "loading the model" : status !== "ready" ? "stopping"
  : running + waiting === 0 ? "idle"
  : `${running} running, ${waiting} waiting${seconds_until_idle ? `, ${duration(seconds_until_idle)} left` : ""}`;

// After a break the server may offer something else, and jobs may have ended meanwhile.
async function catchUp() {
  if (isCurrent) return refreshPlaces();
  if (!offered() || !await isSameOffer()) {
    await beginForm();
    fitActions();
  }
  await followMine();
  isCurrent = true;
  if ($("error").textContent === unreachable) $("error").textContent = "";
}
whenLost(() => (isCurrent = false));
// A page to which Back leads slept, and heard nothing of what other tabs ordered, kept and deleted.
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return;
  isCurrent = false;
  readAgain().catch(console.debug);
});

function showLoading(status) {
  $("loading").hidden = status.status !== "loading";
  $("loading").firstChild.textContent = `Loading the model, ${Math.floor(status.loaded * 100)} %`;
  $("loaded").value = status.loaded;
}

// The line above changes with each step: only changes of state are spoken.
function sayStatus(status) {
  if (status !== spokenStatus) say(`The server is ${status}.`);
  spokenStatus = status;
}

// ---- orders

// The button is not disabled meanwhile: it would lose the keyboard's focus.
let isOrdering = false;
function setOrdering(isOn) {
  isOrdering = isOn;
  $("make").setAttribute("aria-disabled", isOn);
}

$("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (isOrdering || !offered()) return;
  setOrdering(true);
  try {
    if (!await isModelSettled()) return;
    const settings = settingsOfForm();
    rememberForm();
    if (missing()) throw new Error(missing());
    await begin(await order(settings, await pictureFields()));
    if (isNarrow()) $("result").scrollIntoView();
  } catch (error) {
    if (error.message === unreachable) isCurrent = false;  // the job may have been taken
    complain(error.message);
    focusField(error.param);
  } finally {
    setOrdering(false);
  }
});
whenOrdered(begin);

// Before the browser looks at the fields: what it refuses is not sent, and says so itself.
$("make").addEventListener("click", () => isOrdering || clearMessages());

// A field that the browser cannot show would hold the order back without a word.
$("form").addEventListener("invalid", ({ target }) => {
  unfold(target);
  const name = target.labels?.[0]?.textContent.trim() ?? target.id;
  if (target.checkVisibility?.() === false) complain(`${name}: ${target.validationMessage}`);
}, true);

// The field that the server complains of, in sight.
function focusField(param) {
  const { elements } = $("form");
  const field = elements[param] ?? elements[`${param}-file`] ?? elements[`${param}s-file`] ??
    ($(param) ?? $(`${param}s`))?.querySelector("input");
  if (!field) return;
  unfold(field);
  field.focus();
}

// What has the focus is not below the bars that stay in sight.
const kRoom = 8;  // CSS pixels, for the focus ring
const sticky = new ResizeObserver(() => {
  const bar = Math.max($("send").offsetHeight, $("working").offsetHeight);
  Object.assign(document.documentElement.style,
    { scrollPaddingBottom: `${bar + kRoom}px`, scrollPaddingTop: `${$("selection").offsetHeight + kRoom}px` });
});
for (const id of ["send", "working", "selection"]) sticky.observe($(id));

$("form").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !event.target.matches("input, textarea")) return;
  event.preventDefault();
  $("make").click();
});

// ---- dropped and pasted files

// Restores the settings of a picture that Braid made; else the model uses the picture, if it can. Several
// pictures are used, if the model can use several. What is left out is said.
async function takeFiles(files) {
  clearMessages();
  const pictures = files.filter(({ type }) => type.startsWith("image/"));
  const left = files.filter((file) => !pictures.includes(file)).map(({ name }) => `${name || "this"} is not a picture`);
  try {
    const settings = pictures.length && !(pictures.length > 1 && takesSeveral())
      ? await settingsOf(pictures[0], offered()?.limits).catch(() => ({})) : {};
    let names = pictures.slice(1).map(({ name }) => name);
    if (settings.prompt !== undefined) await fillFrom(settings);
    else if (pictures.length && !uses().length) left.push("this picture has no Braid settings");
    else if (pictures.length) names = await takePictures(pictures);
    if (names.length) left.push(leftOut(names));
    if (left.length) complain(left.join("; "));
  } catch (error) {
    complain(error.message);
  }
}

const takeInTurn = (files) => inTurn(() => takeFiles(files));
// What is dropped on a row of the form is meant for it.
function takeDropped(files, input) {
  if (!input) return takeInTurn(files);
  clearMessages();
  if (input.disabled) return complain("A mask belongs to a picture to start from: give that one first.");
  return takeIn(input.id, files);
}
const hasFiles = (event) => event.dataTransfer.types.includes("Files");  // text goes where it is dropped
const isBehindDialog = () => document.querySelector("dialog[open]") !== null;
addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  if (isBehindDialog()) return void (event.dataTransfer.dropEffect = "none");
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.body.classList.remove("dropping");
  const files = [...event.dataTransfer.files], { target } = event;
  const element = target.closest ? target : target.parentElement;  // Firefox also names texts
  if (files.length && !isBehindDialog()) takeDropped(files, element?.closest(".picture-in")?.querySelector("[type=file]"));
});
// Office programs put a picture of the text beside it: in a field the text is meant.
addEventListener("paste", (event) => {
  const files = [...event.clipboardData.files].filter(({ type }) => type.startsWith("image/"));
  const isText = event.target.matches?.("input, textarea") && event.clipboardData.types.includes("text/plain");
  if (!files.length || isText || isBehindDialog()) return;
  event.preventDefault();
  takeInTurn(files);
});

openGallery().catch((error) => complain(`this browser cannot show the gallery: ${error.message}`));
fillRemembered();
watchServer();

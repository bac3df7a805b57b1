// The user's jobs: their list with place and time, the events of the first, and its pictures.
import { $, button, complain, duration, make, say, shortened } from "./dom.js";
import { user } from "./form.js";
import { isKept, keep } from "./gallery.js";
import { isRough, showFinished, showMade, showNotices, showPreview } from "./result.js";
import { askFile, askJson, eventsOf, isOver } from "./server.js";
import { alone, hear, share } from "./tabs.js";
import { showTitle } from "./title.js";

const jobs = new Map();  // not over, by id: { job, row, told, notices }
let shown = null;        // the one whose progress is shown
let onLost = () => {};
export const whenLost = (act) => (onLost = act);

// ---- following

export async function followMine() {
  const mine = (await askJson(`v1/jobs?user=${encodeURIComponent(user)}`)).jobs;
  for (const job of mine) await follow(job);
  for (const job of mine) if (jobs.has(job.id)) showState(jobs.get(job.id), job);
}

// As long as jobs wait, their places change without events of their own.
export async function refreshPlaces() {
  if ([...jobs.values()].some(({ job }) => job.state === "queued")) await followMine();
}

export function begin(job) {
  share("job", { id: job.id });
  return follow(job);
}
hear("job", () => followMine().catch(console.debug));

const idsOf = (job) => job.pictures.map((_, number) => `${job.id}/${number}`);

// A list has the beginnings of prompts. Nothing of a job that was forgotten meanwhile.
const wholeOf = ({ id }) => askJson(`v1/jobs/${id}`).catch((error) => {
  if (error.status !== 404) throw error;
});

// Also for a job that ended unobserved, if one of its pictures was not in the gallery yet.
async function follow(job) {
  if (jobs.has(job.id)) return;
  if (isOver(job.state) && (await Promise.all(idsOf(job).map(isKept))).every(Boolean)) return;
  if (job.prompts_cut) job = await wholeOf(job);
  if (!job || jobs.has(job.id)) return;
  const one = { job, row: rowOf(job), told: null, notices: new Set(job.warnings) };
  jobs.set(job.id, one);
  $("jobs").append(one.row);
  shown ??= job.id;
  showState(one, job);
  turn = turn.then(() => tellAll(one));
}

// A browser opens six connections to a server, and each stream of events holds one. A user's jobs run in
// order, so those behind the first have nothing to tell yet; and one tab reads for all.
let turn = Promise.resolve();
async function tellAll(one) {
  const { id } = one.job;
  try {
    await alone(`job ${id}`, async (isUnderWay) => {
      if (!jobs.has(id)) return;  // cancelled, or told by another tab
      one.told = true;
      for await (const event of eventsOf(id, isUnderWay)) {
        share("event", { id, event });
        await tell(one, event);
      }
    });
  } catch (error) {
    if (isRough()) showFinished();
    complain(error.message);
    onLost();  // asks for what was missed, as soon as the server answers
  }
  leave(id);
}

hear("event", ({ id, event }) => {
  const one = jobs.get(id);
  if (!one || one.told) return;
  // What was heard first is told first; meanwhile this tab may have begun to read by itself, or be done.
  const isOurs = () => jobs.get(id) === one && !one.told;
  one.heard = (one.heard ?? Promise.resolve()).then(() => isOurs() && tell(one, event))
    .catch((error) => complain(error.message)).then(() => isOver(event.name) && isOurs() && leave(id));
});

// The keyboard's user is not left on a button that is gone.
function leave(id) {
  const one = jobs.get(id), focused = document.activeElement;
  if (!one) return;
  const hadFocus = one.row.contains(focused);
  jobs.delete(id);
  one.row.remove();
  if (shown === id) shown = jobs.keys().next().value ?? null;
  showWorking();
  if (hadFocus || (focused === $("cancel") && shown === null)) $("make").focus({ preventScroll: true });
}

// ---- the list

function rowOf(job) {
  const prompt = job.request.prompt || "(no prompt)";
  return make("li", {}, make("span", { className: "clamped", dir: "auto", textContent: prompt, title: prompt }),
    make("small"), button("Cancel", `Cancel ${shortened(prompt)}`, () => cancelJob(job.id)));
}

// "waiting, 2 jobs before it, begins in about 40 s"
function placeOf({ jobs_before, seconds_until_start }) {
  if (!jobs_before) return "begins now";
  return `${jobs_before} before it` +
    (seconds_until_start == null ? "" : `, begins in about ${duration(seconds_until_start)}`);
}

function showState(one, job) {
  one.job = { ...one.job, ...job, request: one.job.request };  // which a list may have cut
  one.state = job.cancelling ? "cancelling" : job.state === "queued" ? `waiting, ${placeOf(job)}`
    : job.state === "running" ? one.state?.startsWith("step") ? one.state : "running" : job.state;
  showWorking();
}

function showWorking() {
  for (const { row, state } of jobs.values()) row.querySelector("small").textContent = state ?? "";
  $("working").hidden = shown === null;
  $("jobs-section").hidden = jobs.size === 0;
  const first = jobs.get(shown);
  if (first && first.part === undefined) {  // what is shown may be of the job before
    $("phase").textContent = first.state;
    $("progress").removeAttribute("value");
  }
  showTitle(first && { part: first.part, text: first.job.state === "queued" ? first.state : first.left, count: jobs.size });
}

async function cancelJob(id) {
  const one = jobs.get(id);
  if (!one) return;
  one.state = "cancelling";
  showWorking();
  if (id === shown) $("phase").textContent = "cancelling …";
  try {
    const job = await askJson(`v1/jobs/${id}`, { method: "DELETE" });
    if (!isOver(job.state) || one.told) return;
    share("event", { id, event: { name: job.state } });
    leave(id);
    say("Cancelled.");
  } catch (error) {
    complain(error.message);
  }
}
$("cancel").addEventListener("click", () => shown && cancelJob(shown));

// ---- events

const byName = {
  started: (one) => {
    shown = one.job.id;
    showNotices([...one.notices]);
    showState(one, { state: "running" });
    $("progress").value = 0;
    $("phase").textContent = "begins …";
  },
  progress: (one, event) => showProgress(one, event),
  preview: (one, event) => {
    if (shown === one.job.id) showPreview(blobOf(event.b64_json), one.job.request.prompt);
  },
  picture: async (one, event) => {
    const id = `${one.job.id}/${event.picture}`;
    const blob = await askFile(`v1/jobs/${one.job.id}/pictures/${event.picture}`);
    const kept = keep(id, blob, one.job.model);
    await showMade({ id, blob, model: one.job.model }, one.job.request.prompt, event.seed);
    await kept;
  },
  failed: (one, event) => {
    showFinished();
    complain(event.message);
  },
  cancelled: (one) => end(one, "Cancelled."),
  done: (one) => end(one, "The picture is ready."),
};

async function tell(one, event) {
  for (const warning of event.warnings ?? (event.name === "warning" ? [event.message] : [])) one.notices.add(warning);
  await byName[event.name]?.(one, event);
}

async function end(one, words) {
  if (isRough()) showFinished();
  say(words);
  showTitle(null, words === "Cancelled." ? "" : words);
  // What the engine warned of while it drew.
  const job = await askJson(`v1/jobs/${one.job.id}`).catch(() => ({}));
  for (const warning of job.warnings ?? []) one.notices.add(warning);
  showNotices([...one.notices]);
}

let spokenTenth = 0;
function showProgress(one, event) {
  one.part = Math.min(1, (event.picture + event.step / Math.max(1, event.steps)) / event.pictures);
  one.left = event.eta === null ? "" : `${duration(event.eta)} left`;
  const picture = event.pictures > 1 ? `picture ${Math.min(event.picture + 1, event.pictures)} of ${event.pictures}, ` : "";
  one.job.state = "running";
  const isCancelling = one.state === "cancelling";
  const text = event.phase === "load" ? "loading the model"
    : event.phase === "denoise" ? `${picture}step ${event.step} of ${event.steps}${one.left && `, ${one.left}`}`
    : event.phase === "text" ? "reading the prompt" : `${picture}decoding`;
  if (!isCancelling) one.state = text;
  if (shown === one.job.id) {
    $("progress").value = one.part;
    if (!isCancelling) $("phase").textContent = text;
    const tenth = Math.floor(one.part * 10);
    if (tenth !== spokenTenth) say(`${tenth * 10} percent`);
    spokenTenth = tenth;
  }
  showWorking();
}

function blobOf(base64) {
  return new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type: "image/png" });
}

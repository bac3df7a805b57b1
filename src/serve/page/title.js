// The tab's title says how far the picture is, for those who look at another tab.
const name = document.title;
let news = "";  // until the tab is looked at

// `job`: { part, text, count } of the one that is shown, or null; `ended` is said until somebody looks.
export function showTitle(job, ended = "") {
  if (ended && document.hidden) news = ended.replace(/\.$/, "");
  const part = job?.part === undefined ? "" : `${Math.floor(job.part * 100)} %`;
  const count = job?.count > 1 ? `${job.count} jobs` : "";
  const words = job ? [part, job.text, count].filter(Boolean) : [news].filter(Boolean);
  document.title = [...words, name].join(" · ");
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !news) return;
  news = "";
  if (!/%|waiting/.test(document.title)) document.title = name;
});

// Back, a gesture on phones, closes a dialog that fills the page instead of leaving the page.
//
// An open dialog has an entry of the history, above the page's own. Back removes it; so does whatever
// else closes the dialog.
let open = null;        // the dialog that has the entry
let isLeaving = false;  // the entry is being removed, which takes a moment

const isOurs = () => history.state?.isDialog === true;

// Removing an entry must not scroll: what closed the dialog may have scrolled to its effect.
function enter() {
  history.scrollRestoration = "manual";
  history.pushState({ isDialog: true }, "");
}

export function showDialog(dialog) {
  dialog.showModal();
  const hasEntry = open !== null || isLeaving;
  open = dialog;
  if (!hasEntry) enter();
}

export function closeOnBack(dialog) {
  dialog.addEventListener("close", () => {
    if (open !== dialog) return;
    open = null;
    if (isLeaving || !isOurs()) return;  // an entry that is being removed is not removed twice
    isLeaving = true;
    history.back();
  });
}

addEventListener("popstate", () => {
  if (isLeaving) {
    isLeaving = false;
    if (open) return enter();  // another one was opened meanwhile
  }
  history.scrollRestoration = "auto";
  const dialog = open;
  open = null;
  dialog?.close();
});

// A page that is loaded again has the entry, but no dialog. It becomes one more of the page's own: to
// go back would load the page again in WebKit.
if (isOurs()) history.replaceState(null, "");

// What the page of lab 12 does in the browser besides showing widgets: it names things for assistive technology, and
// says when its kernel is gone. Everything else happens in Python (digits/page).
"use strict";
(() => {
  const SILENT = 20000; // ms without a beat of the kernel, which comes every 2 s, after which it counts as gone

  // Voilà calls these.
  window.voila_heartbeat = () => {};
  window.voila_process = () => {};
  window.cellLoaded = true;
  window.voila_finish = () => {};

  // The token is in a cookie from now on; it need not stand in the history and in screenshots.
  if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname);

  let beat = 0;

  function lost() {
    const box = document.getElementById("lost");
    if (!box.hidden) return;
    box.hidden = false;
    box.textContent = "The page has lost its kernel. Nothing is lost: datasets and runs are kept, and training goes on. ";
    const again = document.createElement("button");
    again.textContent = "Reload the page";
    again.className = "jupyter-button";
    again.addEventListener("click", () => location.reload());
    box.append(again);
  }

  function found() {
    const box = document.getElementById("lost");
    box.hidden = true;
    box.replaceChildren();
  }

  function name(root) {
    for (const steps of root.querySelectorAll(".digits-steps")) {
      steps.setAttribute("role", "navigation");
      steps.setAttribute("aria-label", "Steps");
      for (const step of steps.querySelectorAll("button")) {
        if (step.classList.contains("digits-open")) step.setAttribute("aria-current", "step");
        else step.removeAttribute("aria-current");
      }
    }
    for (const progress of root.querySelectorAll(".widget-hprogress")) {
      const bar = progress.querySelector(".progress-bar");
      const label = progress.querySelector("label");
      if (!bar || bar.getAttribute("role") === "progressbar") continue;
      bar.setAttribute("role", "progressbar");
      if (label) bar.setAttribute("aria-label", label.textContent);
    }
  }

  function see(changes) {
    for (const change of changes) {
      const node = change.target.nodeType === 1 ? change.target : change.target.parentElement;
      if (node && node.closest(".digits-pulse")) beat = Date.now();
    }
    if (beat) {
      document.getElementById("loading")?.remove();
      found();
    }
    name(document);
  }

  document.addEventListener("DOMContentLoaded", () => {
    new MutationObserver(see).observe(document.body, {
      subtree: true, childList: true, attributes: true, attributeFilter: ["class"],
    });
    // A tab in the background gets few timers; its beats are late with them, hence the check on coming back, too.
    setInterval(() => { if (beat && Date.now() - beat > SILENT) lost(); }, 2000);
    if (document.querySelector(".digits-output .digits-error")) document.getElementById("loading")?.remove();
  });
})();

// What the page of lab 12 does in the browser besides showing widgets: it shows at once the panel whose tab was pressed,
// says that a press is being worked on, names things for assistive technology, and says when its kernel is gone.
// Everything else happens in Python (digits/page).
"use strict";
(() => {
  // ms without a beat of the kernel, which comes every 2 s, after which the server is asked whether it is there, and
  // after which it counts as gone even so: a kernel that computes sends none.
  const SILENT = 12000, PATIENCE = 120000;

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
    box.textContent = "The page does not hear from its kernel any more. Datasets and runs are kept, and training goes on. ";
    const again = document.createElement("button");
    again.textContent = "Reload the page";
    again.className = "jupyter-button";
    again.addEventListener("click", () => location.reload());
    box.append(again);
  }

  async function listen() {
    if (!beat || Date.now() - beat < SILENT) return;
    const page = JSON.parse(document.getElementById("jupyter-config-data").textContent);
    const patient = {signal: AbortSignal.timeout(SILENT)};  // a server that was stopped does not answer
    const answer = await fetch(`${page.baseUrl}api/kernels/${page.kernelId}`, patient).catch(() => null);
    const dead = !answer?.ok || (await answer.json()).execution_state == "dead";
    if (dead || Date.now() - beat > PATIENCE) lost();
    else document.getElementById("working").hidden = Date.now() - beat < SILENT;
  }

  function found() {
    const box = document.getElementById("lost");
    if (box.hidden) return;
    box.hidden = true;
    box.replaceChildren();
  }

  // The kernel opens a panel, too, but it may be busy for seconds. `pressed`: the tab that it has not opened yet.
  let pressed = -1;

  function press(event) {
    const button = event.target.closest(".digits-page .jupyter-button");
    if (!button || button.disabled) return;
    document.getElementById("working").hidden = false;
    const steps = button.closest(".digits-steps");
    if (!steps) return;
    pressed = [...steps.querySelectorAll("button")].indexOf(button);
    show();
    name();
  }

  function show() {
    const page = document.querySelector(".digits-page");
    const opened = [...page.querySelectorAll(".digits-steps button")].findIndex(tab => tab.classList.contains("digits-open"));
    if (pressed == opened) pressed = -1;
    page.toggleAttribute("data-pressed", pressed >= 0);
    for (const panel of page.querySelectorAll(".digits-panel"))
      panel.toggleAttribute("data-shown", panel.classList.contains(`digits-panel-${pressed}`));
  }

  // The buttons that open the panels are tabs: one stop of the Tab key, arrow keys between them, Enter opens.
  function name() {
    const steps = document.querySelector(".digits-steps");
    if (!steps) return;
    const tabs = [...steps.querySelectorAll("button")];
    if (steps.getAttribute("role") != "tablist") {
      steps.setAttribute("role", "tablist");
      steps.setAttribute("aria-label", "Steps");
      steps.addEventListener("keydown", move);
      steps.addEventListener("focusin", name);
      steps.addEventListener("focusout", () => setTimeout(name));
    }
    const isOpen = tab => pressed >= 0 ? tab === tabs[pressed] : tab.classList.contains("digits-open");
    const stop = tabs.find(tab => tab === document.activeElement) || tabs.find(isOpen);
    const panels = [...document.querySelectorAll(".digits-panel")];
    for (const tab of tabs) {
      const open = isOpen(tab);
      tab.id ||= `digits-tab-${tabs.indexOf(tab)}`;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-selected", String(open));
      tab.tabIndex = tab === stop ? 0 : -1;
      const panel = open && panels.find(one => pressed >= 0 ? one.hasAttribute("data-shown") : one.style.display != "none");
      if (!panel) continue;
      panel.id ||= `${tab.id}-panel`;
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      tab.setAttribute("aria-controls", panel.id);
    }
  }

  function move(event) {
    const tabs = [...event.currentTarget.querySelectorAll("button")], at = tabs.indexOf(document.activeElement);
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1}[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    next.focus();
  }

  function see(changes) {
    const beats = changes.some(change => {
      const node = change.target.nodeType === 1 ? change.target : change.target.parentElement;
      return node && node.closest(".digits-pulse");
    });
    if (beats) {
      beat = Date.now();
      document.getElementById("working").hidden = true;
      document.getElementById("loading")?.remove();
      found();
    }
    if (pressed >= 0) show();
    name();
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.addEventListener("click", press, true);
    new MutationObserver(see).observe(document.body, {
      subtree: true, childList: true, attributes: true, attributeFilter: ["class", "style"],
    });
    // A tab in the background gets few timers; its beats are late with them, hence the check on coming back, too.
    setInterval(listen, 2000);
    if (document.querySelector(".digits-output .digits-error")) document.getElementById("loading")?.remove();
  });
})();

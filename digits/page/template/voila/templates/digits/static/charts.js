// What charts do in the browser: they tell the values at a place, and zoom along their x axis. The pointer moves and
// drags; with the focus on a chart, arrows, Home and End move, + and - zoom, Escape shows all. What a chart holds is in
// its attribute data-chart (digits/page/charts.py); a chart that is drawn anew, with new points, goes on where it was.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const states = new Map(); // by title: {from, to, at}
  let focused = "";

  function make(parent, kind, attributes) {
    const made = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return parent.appendChild(made);
  }

  function ticks(low, high) {
    const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(one => one * power).find(one => one >= rough * (1 - 1e-9));
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) found.push(+(at * step).toPrecision(12));
    return found;
  }

  function enliven(figure) {
    const svg = figure.querySelector("svg[data-chart]");
    if (!svg || svg.hasAttribute("tabindex")) return;
    const told = JSON.parse(svg.dataset.chart), title = figure.querySelector("figcaption").textContent;
    const [left, top, right, bottom] = told.box, [least, most] = told.x;
    const state = states.get(title) || {from: null, to: null, at: null};
    states.set(title, state);
    const places = [...new Set(told.lines.flatMap(line => line.x))].sort((a, b) => a - b);
    const paths = [...svg.querySelectorAll(".digits-lines > g")].map(group => {
      const whole = group.querySelector("path:not([data-at])");
      return {whole, d: whole.getAttribute("d"), marks: [...group.querySelectorAll("[data-at]")]};
    });
    const xs = new Map(); // of marks, before any zoom
    for (const path of paths) for (const mark of path.marks) xs.set(mark, mark.getAttribute("transform").match(/[-\d.]+/g).map(Number));
    const columns = svg.querySelector(".digits-x"), all = columns.innerHTML;
    const cross = make(svg, "path", {class: "digits-cross", d: ""}), chosen = make(svg, "rect", {class: "digits-chosen", y: top, height: bottom - top, width: 0});
    const read = figure.appendChild(document.createElement("p")), reset = document.createElement("button");
    read.className = "digits-read";
    read.setAttribute("aria-live", "polite");
    reset.textContent = "Show all";
    svg.after(read);
    read.after(reset);
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight Home End + - Escape");

    const from = () => state.from ?? least, to = () => state.to ?? most;
    const across = x => left + (x - from()) / (to() - from()) * (right - left);
    const moved = x => across(least + (x - left) / (right - left) * (most - least)); // of a place in the picture as it came
    const seen = () => places.filter(x => x >= from() && x <= to());

    function draw() {
      const zoomed = state.from !== null;
      figure.classList.toggle("digits-zoomed", zoomed);
      reset.hidden = !zoomed;
      for (const path of paths) {
        path.whole.setAttribute("d", zoomed ? path.d.replace(/([ML])([-\d.]+)/g, (_, pen, x) => pen + moved(+x).toFixed(1)) : path.d);
        for (const mark of path.marks) {
          const [x, y] = xs.get(mark);
          mark.setAttribute("transform", `translate(${zoomed ? (moved(x + 12) - 12).toFixed(1) : x} ${y})`);
        }
      }
      columns.innerHTML = all;
      if (zoomed) {
        columns.replaceChildren();
        for (const x of ticks(from(), to())) {
          make(columns, "path", {d: `M${across(x).toFixed(1)} ${top}V${bottom}`});
          make(columns, "text", {x: across(x).toFixed(1), y: bottom + 13, "text-anchor": "middle"}).textContent = x;
        }
      }
      tell();
    }

    function tell() {
      const shown = seen();
      if (state.at === null || !shown.length) {
        cross.setAttribute("d", "");
        read.textContent = "";
        return;
      }
      state.at = shown.reduce((best, x) => Math.abs(x - state.at) < Math.abs(best - state.at) ? x : best);
      cross.setAttribute("d", `M${across(state.at).toFixed(1)} ${top}V${bottom}`);
      const values = told.lines.map(line => {
        const near = line.x.reduce((best, x, i) => Math.abs(x - state.at) < Math.abs(line.x[best] - state.at) ? i : best, 0);
        const y = line.y[near], value = y === null ? "no number" : told.percent ? `${(100 * y).toFixed(1)} %` : +y.toPrecision(4);
        return `${line.name || title} ${value}${line.x[near] === state.at ? "" : ` (at ${+line.x[near].toPrecision(4)})`}`;
      });
      read.textContent = `${told.title} ${+state.at.toPrecision(4)}: ${values.join(", ")}`;
    }

    function zoom(low, high) {
      [low, high] = [Math.max(Math.min(low, high), least), Math.min(Math.max(low, high), most)];
      if (places.filter(x => x >= low && x <= high).length < 2) return; // nothing would be left to see
      [state.from, state.to] = low === least && high === most ? [null, null] : [low, high];
      draw();
    }

    function whole() {
      state.from = state.to = null;
      draw();
    }

    const inside = event => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      return from() + (Math.min(Math.max(x, left), right) - left) / (right - left) * (to() - from());
    };
    let began = null;
    svg.addEventListener("pointerdown", event => { began = inside(event); svg.setPointerCapture(event.pointerId); });
    svg.addEventListener("pointermove", event => {
      state.at = inside(event);
      tell();
      const ends = began === null ? [0, 0] : [across(began), across(inside(event))].sort((a, b) => a - b);
      chosen.setAttribute("x", ends[0]);
      chosen.setAttribute("width", ends[1] - ends[0]);
    });
    svg.addEventListener("pointerup", event => {
      const start = began;
      began = null;
      chosen.setAttribute("width", 0);
      if (start !== null && Math.abs(across(inside(event)) - across(start)) > 8) zoom(start, inside(event));
    });
    svg.addEventListener("pointercancel", () => { began = null; chosen.setAttribute("width", 0); });
    svg.addEventListener("pointerleave", () => { if (document.activeElement !== svg) { state.at = null; tell(); } });
    svg.addEventListener("dblclick", whole);
    reset.addEventListener("click", () => { whole(); svg.focus(); });
    svg.addEventListener("keydown", event => {
      const shown = seen(), at = shown.indexOf(state.at), span = to() - from(), middle = state.at ?? (from() + to()) / 2;
      const moves = {ArrowRight: at + 1, ArrowLeft: at < 0 ? shown.length - 1 : at - 1, Home: 0, End: shown.length - 1};
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in moves) { state.at = shown[Math.min(Math.max(moves[event.key], 0), shown.length - 1)] ?? null; tell(); }
      else if (event.key === "+" || event.key === "=") zoom(middle - span / 4, middle + span / 4);
      else if (event.key === "-") zoom(middle - span, middle + span);
      else if (event.key === "Escape") { state.at = null; whole(); }
      else return;
      event.preventDefault();
    });
    draw();
    if (focused === title && document.activeElement === document.body) svg.focus({preventScroll: true});
  }

  // Which chart has the focus, also while it is replaced, which takes the focus away without giving it to anybody.
  for (const kind of ["focusin", "pointerdown"]) document.addEventListener(kind, event => {
    const svg = event.target.closest?.("svg[data-chart]");
    focused = svg ? svg.closest("figure").querySelector("figcaption").textContent : "";
  });
  document.addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
    document.querySelectorAll(".digits-chart").forEach(enliven);
  }).observe(document.body, {subtree: true, childList: true}));
})();

// The script of every page: theme, drawings, search. It loads nothing and sends nothing.
"use strict";
(() => {
  const root = document.documentElement;
  const MEMORY = "sluice-theme";
  const PRINT_WIDTH = 680;
  const night = window.matchMedia("(prefers-color-scheme: dark)");

  // -- theme: the system's, or the one that the reader chose ------------------------------------
  function remembered() {
    try { return localStorage.getItem(MEMORY); } catch { return null; } // storage can be forbidden
  }
  function remember(theme) {
    try { localStorage.setItem(MEMORY, theme); } catch { /* then it lasts for this visit */ }
  }
  const chosen = remembered();
  if (chosen === "dark" || chosen === "light") { root.dataset.theme = chosen; }
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : night.matches);

  function name(button) {
    button.textContent = dark() ? "light" : "dark";
    button.setAttribute("aria-label", `Show the page ${button.textContent}`);
  }

  // -- drawings --------------------------------------------------------------------------------
  const NAMED = /^var\((--[a-z-]+)\)$/;
  let styles = null;
  const colour = (variable) => styles.getPropertyValue(variable).trim();

  function times({first, unit, packed, steps}) {
    let after = steps;
    if (packed !== undefined) {
      const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
      const view = new DataView(bytes.buffer);
      after = Array.from({length: bytes.length / 4}, (_, at) => view.getUint32(4 * at, true));
    }
    return after.map((step) => new Date(first + unit * step).toISOString().slice(0, -1));
  }

  function read(value) {
    if (Array.isArray(value)) { return value.map(read); }
    if (value && typeof value === "object") {
      if ("packed" in value || "steps" in value) { return times(value); }
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, read(each)]));
    }
    const variable = typeof value === "string" && NAMED.exec(value);
    return variable ? colour(variable[1]) : value;
  }

  function template() {
    const axis = {gridcolor: colour("--grid"), zerolinecolor: colour("--line"), linecolor: colour("--line"),
                  tickcolor: colour("--line"), automargin: true};
    return {layout: {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: ["--level", "--actuator", "--flow"].map(colour),
      font: {family: "system-ui, sans-serif", size: 12, color: colour("--ink")},
      hoverlabel: {bgcolor: colour("--paper"), bordercolor: colour("--line"), font: {color: colour("--ink")}},
      modebar: {color: colour("--soft"), activecolor: colour("--accent"), bgcolor: "rgba(0,0,0,0)"},
      xaxis: axis, yaxis: axis, legend: {font: {color: colour("--ink")}},
    }};
  }

  // Only these buttons: Plotly's own choice includes one that uploads the drawing to another server.
  const CONFIG = {responsive: true, displaylogo: false, plotlyServerURL: "", showSendToCloud: false,
                  modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]]};

  function shrink(layout) { // for a phone: smaller margins, few upright labels of time
    if (layout.margin) { layout.margin = {...layout.margin, l: Math.min(layout.margin.l ?? 40, 40), r: 8}; }
    for (const [key, axis] of Object.entries(layout)) {
      if (key.startsWith("xaxis") && axis.type === "date") { layout[key] = {...axis, nticks: 3, tickangle: 0}; }
    }
  }

  const shown = new Set(); // plots that are drawn
  const ranges = new Map(); // by link: the range of time that its plots show
  let following = false;

  function shades() { // one rectangle for each attack; they are on the page once
    const times = document.getElementById("shaded");
    return times ? JSON.parse(times.textContent).map(([x0, x1]) => ({
      type: "rect", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, fillcolor: colour("--attack"),
      line: {width: 1, color: colour("--attack")}, layer: "below", // an attack of one row has no width
    })) : [];
  }

  function draw(plot, width) {
    styles = getComputedStyle(root);
    const figure = read(JSON.parse(plot.parentNode.querySelector(".figure-data").textContent));
    const layout = {...figure.layout, template: template(), uirevision: "kept", autosize: true};
    if (width) { layout.width = width; layout.autosize = false; }
    const narrow = plot.clientWidth > 0 && plot.clientWidth < 480;
    if (narrow) { shrink(layout); }
    if ("shaded" in plot.dataset) { layout.shapes = [...(layout.shapes ?? []), ...shades()]; }
    const range = ranges.get(plot.dataset.link);
    if (range) {
      for (const axis of Object.keys(layout).filter((key) => key.startsWith("xaxis"))) {
        layout[axis] = {...layout[axis], range};
      }
    }
    if (!shown.has(plot)) { plot.textContent = ""; }
    const config = {...CONFIG, displayModeBar: "tools" in plot.dataset && !narrow ? "hover" : false};
    Plotly.react(plot, figure.data, layout, config);
    if (!shown.has(plot)) {
      shown.add(plot);
      if (plot.dataset.link) { plot.on("plotly_relayout", (change) => follow(plot, change)); }
    }
  }

  function follow(plot, change) {
    if (following) { return; }
    const from = Object.keys(change).find((key) => /^xaxis\d*\.range\[0\]$/.test(key));
    const reset = Object.keys(change).some((key) => /^xaxis\d*\.autorange$/.test(key));
    if (!from && !reset) { return; }
    const link = plot.dataset.link;
    if (reset) { ranges.delete(link); } else {
      ranges.set(link, [change[from], change[from.replace("[0]", "[1]")]]);
    }
    following = true;
    for (const other of shown) {
      if (other === plot || other.dataset.link !== link || !other.isConnected) { continue; }
      const range = ranges.get(link);
      const axes = Object.keys(other.layout).filter((key) => key.startsWith("xaxis"));
      Plotly.relayout(other, Object.fromEntries(axes.map(
        (axis) => (range ? [`${axis}.range`, range] : [`${axis}.autorange`, true]))));
    }
    following = false;
  }

  const near = "IntersectionObserver" in window ? new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
    }
  }, {rootMargin: "500px"}) : null;

  function find(inside) {
    if (typeof Plotly === "undefined") { return; }
    for (const plot of shown) { if (!plot.isConnected) { shown.delete(plot); } }
    for (const plot of inside.querySelectorAll(".plot")) {
      if (near) { near.observe(plot); } else { draw(plot); }
    }
  }

  function redraw() {
    for (const plot of shown) { if (plot.isConnected) { draw(plot); } }
  }

  // -- search over tags ------------------------------------------------------------------------
  function search() {
    const box = document.getElementById("search");
    if (!box) { return; }
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const tagged = [...document.querySelectorAll("[data-tags]")];
    const matches = (each) => words.every((word) => each.dataset.tags.includes(word));
    for (const each of tagged) { each.hidden = !matches(each); }
    for (const section of document.querySelectorAll("main section")) {
      const own = [...section.querySelectorAll("[data-tags]")];
      section.querySelector(".nothing").hidden = !own.length || own.some((each) => !each.hidden);
    }
    const left = tagged.filter((each) => !each.hidden).length;
    document.getElementById("found").textContent = words.length ? `${left} of ${tagged.length}` : "";
  }

  // -- printing: light, everything open, every drawing there ---------------------------------------
  let before = null;
  function print() {
    before = {theme: root.dataset.theme, open: [...document.querySelectorAll("details[open]")]};
    root.dataset.theme = "light";
    for (const each of document.querySelectorAll("details")) { each.open = true; }
    if (typeof Plotly === "undefined") { return; }
    for (const plot of document.querySelectorAll(".plot")) {
      if (!plot.closest("[hidden]")) { draw(plot, PRINT_WIDTH); }
    }
  }
  function printed() {
    if (!before) { return; }
    if (before.theme) { root.dataset.theme = before.theme; } else { delete root.dataset.theme; }
    for (const each of document.querySelectorAll("details")) { each.open = before.open.includes(each); }
    before = null;
    redraw();
  }

  function mark(links) {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const link = links.get(entry.target.id);
        if (link && entry.isIntersecting) {
          for (const each of links.values()) { each.removeAttribute("aria-current"); }
          link.setAttribute("aria-current", "true");
        }
      }
    }, {rootMargin: "-15% 0px -75% 0px"});
    for (const id of links.keys()) {
      const section = document.getElementById(id);
      if (section) { seen.observe(section); }
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    button.hidden = false;
    name(button);
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      remember(root.dataset.theme);
      name(button);
      redraw();
    });
    night.addEventListener("change", () => { name(button); redraw(); });
    const box = document.getElementById("search");
    if (box) {
      box.addEventListener("input", search);
      document.addEventListener("keydown", (event) => {
        if (event.key === "/" && !/^(input|textarea)$/i.test(event.target.tagName)) { event.preventDefault(); box.focus(); }
      });
    }
    if (near) {
      mark(new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link])));
    }
    find(document);
    window.addEventListener("beforeprint", print);
    window.addEventListener("afterprint", printed);
  });
  window.sluicePage = {refresh: (inside) => { find(inside); search(); }};
})();

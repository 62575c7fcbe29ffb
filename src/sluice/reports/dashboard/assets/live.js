// Reloads the page's content whenever the coordinator's folder has changed.
"use strict";

const BLUE = "#1b5f8c", RED = "#b3261e", GREY = "#5a6472";
const LAYOUT = {
  margin: {t: 8, r: 12, b: 96, l: 56}, height: 310, font: {family: "system-ui, sans-serif", size: 13},
  legend: {orientation: "h", x: 0, y: -0.28, yanchor: "top"}, showlegend: true,
};
const CONFIG = {displayModeBar: false, responsive: true};

function axis(text) {
  return {title: {text}, rangemode: "tozero", zeroline: false};
}

function line(x, y, name, color) {
  return {x, y, name, mode: "lines+markers", line: {color}, marker: {size: 6}};
}

function draw() {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const rounds = {title: {text: "round"}, dtick: figures.rounds.length < 15 ? 1 : null};
  Plotly.react("chart-members", [
    {x: figures.rounds, y: figures.members, type: "bar", name: "took part", marker: {color: BLUE}},
    {x: figures.rounds, y: figures.excluded, type: "bar", name: "left out", marker: {color: RED}},
  ], {...LAYOUT, barmode: "stack", xaxis: rounds, yaxis: axis("plants")}, CONFIG);
  const quality = document.getElementById("chart-quality");
  if (quality && figures.measured.length) {
    const traces = [
      line(figures.measured, figures.error, "mean error, clean reference", BLUE),
      line(figures.measured, figures.threshold, "alarm threshold", GREY),
    ];
    if (figures.auc_pr.some((value) => value !== null)) {
      traces.push({...line(figures.measured, figures.auc_pr, "AUC-PR, labelled record", RED), yaxis: "y2"});
    }
    Plotly.react(quality, traces, {
      ...LAYOUT, margin: {...LAYOUT.margin, r: 48}, xaxis: rounds, yaxis: axis("error"),
      yaxis2: {overlaying: "y", side: "right", range: [0, 1.05], tickvals: [0, 0.5, 1], showgrid: false},
    }, CONFIG);
  }
}

let shown = document.getElementById("now").dataset.state;

async function refresh(state) {
  const answer = await fetch("/now");
  if (!answer.ok) { return; }
  document.getElementById("now").innerHTML = await answer.text();
  document.title = document.getElementById("title").textContent;
  shown = state;
  draw();
}

draw();
const changes = new EventSource("/events");
changes.onmessage = (event) => { if (event.data !== shown) { refresh(event.data); } };
changes.onerror = () => { document.getElementById("live").textContent = "not connected"; };
changes.onopen = () => { document.getElementById("live").textContent = "live"; };

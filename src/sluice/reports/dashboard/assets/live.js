// Loads the page's content again whenever the coordinator's folder has changed.
"use strict";

const main = document.querySelector("main");
let shown = main.dataset.state;

async function refresh(state) {
  const answer = await fetch("/now");
  if (!answer.ok) { return; }
  main.innerHTML = await answer.text();
  document.title = document.getElementById("title").textContent;
  document.querySelector("h1").textContent = document.title;
  shown = state;
  window.sluicePage.refresh(main);
}

const changes = new EventSource("/events");
changes.onmessage = (event) => { if (event.data !== shown) { refresh(event.data); } };
changes.onerror = () => { document.getElementById("live").textContent = "not connected"; };
changes.onopen = () => { document.getElementById("live").textContent = "live"; };

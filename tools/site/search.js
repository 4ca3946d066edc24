"use strict";
// Finds the sections that have all words, those with a word in the heading first. The index is fetched when it is needed.
(() => {
  const root = document.currentScript.dataset.root;
  const box = document.querySelector(".search");
  const [input, list] = [box.querySelector("input"), box.querySelector("ol")];
  box.hidden = false;

  const load = () => {
    if (document.getElementById("index")) return;
    const script = document.createElement("script");
    script.id = "index";
    script.src = root + "search-index.js";
    script.onload = show;
    document.head.append(script);
  };

  const rank = (section, words) => {
    const [page, heading, text] = [section.p, section.h, section.x].map((t) => t.toLowerCase());
    let points = 0;
    for (const word of words) {
      if (!page.includes(word) && !heading.includes(word) && !text.includes(word)) return 0;
      points += 1 + (heading.includes(word) ? 10 : 0) + (page.includes(word) ? 5 : 0);
    }
    return points;
  };

  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.replaceChildren();
    if (!words.length || !window.sections) return;
    const found = window.sections.map((s) => [rank(s, words), s]).filter(([points]) => points > 0);
    found.sort((a, b) => b[0] - a[0]);
    for (const [, section] of found.slice(0, 12)) {
      const at = Math.max(0, section.x.toLowerCase().indexOf(words[0]) - 40);
      const [link, excerpt] = [document.createElement("a"), document.createElement("small")];
      link.href = root + section.u;
      link.textContent = section.h === section.p ? section.p : section.p + ": " + section.h;
      excerpt.textContent = section.x.slice(at, at + 140);
      const item = document.createElement("li");
      item.append(link, excerpt);
      list.append(item);
    }
    if (!found.length) list.append(Object.assign(document.createElement("li"), {textContent: "Nothing has all of these words."}));
  };

  input.addEventListener("focus", load);
  input.addEventListener("input", show);
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && document.activeElement === document.body) {
      e.preventDefault();
      input.focus();
    } else if (e.key === "Escape") {
      input.value = "";
      list.replaceChildren();
    }
  });
})();

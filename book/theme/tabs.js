// Makes tabs of the groups that `book/src/tabs.rs` has marked. The chosen language holds for all pages, and is remembered.
(() => {
  const KEY = "flatwater-language";
  const remembered = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // Storage is off: the choice holds for this page.
    }
  };
  const groups = [...document.querySelectorAll(".languages")].map((group) => {
    const panels = [...group.querySelectorAll(":scope > .language")];
    const bar = document.createElement("div");
    bar.className = "language-bar";
    bar.setAttribute("role", "tablist");
    const tabs = panels.map((panel) => {
      const tab = document.createElement("button");
      tab.type = "button";
      tab.textContent = panel.dataset.language;
      tab.setAttribute("role", "tab");
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-label", panel.dataset.language);
      tab.addEventListener("click", () => choose(panel.dataset.language, tab));
      tab.addEventListener("keydown", ({ key }) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
        if (step) {
          const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
          next.click();
          next.focus();
        }
      });
      return tab;
    });
    bar.append(...tabs);
    group.prepend(bar);
    return { panels, tabs };
  });
  const show = (language) => {
    for (const { panels, tabs } of groups) {
      const at = Math.max(
        0,
        panels.findIndex((panel) => panel.dataset.language === language),
      );
      panels.forEach((panel, i) => (panel.hidden = i !== at));
      tabs.forEach((tab, i) => {
        tab.setAttribute("aria-selected", String(i === at));
        tab.tabIndex = i === at ? 0 : -1;
      });
    }
  };
  const choose = (language, tab) => {
    // The page above gets longer or shorter: what was clicked stays where it is.
    const before = tab.getBoundingClientRect().top;
    show(language);
    scrollBy(0, tab.getBoundingClientRect().top - before);
    try {
      localStorage.setItem(KEY, language);
    } catch {
      // As above.
    }
  };
  show(remembered());
})();

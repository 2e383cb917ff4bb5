// Adds what needs a script: sorting, search, copying, enlarging, and the numbers of a bin. Without it all is visible.
(function () {
  "use strict";
  var status = document.getElementById("status");
  function tell(text) { status.textContent = text; }
  function each(selector, act, root) { Array.prototype.forEach.call((root || document).querySelectorAll(selector), act); }
  function button(text, act) {
    var one = document.createElement("button");
    one.type = "button";
    one.textContent = text;
    one.addEventListener("click", act);
    return one;
  }

  // Copying: the clipboard where the browser allows it, else a hidden text field.
  function copy(text, what) {
    function done() { tell(what + " copied."); }
    function fallback() {
      var field = document.createElement("textarea");
      field.value = text;
      field.setAttribute("aria-hidden", "true");
      field.className = "status";
      var focused = document.activeElement;
      (document.querySelector("dialog[open]") || document.body).appendChild(field);
      field.select();
      var copied = false;
      try { copied = document.execCommand("copy"); } catch (refused) { /* the browser forbids it */ }
      field.remove();
      if (focused) focused.focus();
      if (copied) done(); else tell("The browser does not allow copying.");
    }
    if (navigator.clipboard && navigator.clipboard.writeText) navigator.clipboard.writeText(text).then(done, fallback);
    else fallback();
  }
  function plain(text) { return text.replace(/[\u2068\u2069]/g, "").replace(/[\s\u00a0]+/g, " ").trim(); }
  function cellText(cell) { return plain(cell.textContent); }
  function tsv(table, view) {
    var rows = [];
    Array.prototype.forEach.call(table.rows, function (row, i) {
      if (i > 0 && (row.hidden || (view && cellText(row.cells[0]) !== plain(view)))) return;
      var cells = Array.prototype.filter.call(row.cells, function (cell) { return !/\b(strip|curves)\b/.test(cell.className); });
      rows.push(cells.map(cellText).join("\t"));
    });
    return rows.join("\n") + "\n";
  }
  function svgText(picture) {
    var image = picture.querySelector("img");
    if (image) {
      var bytes = atob(image.src.split(",")[1]);
      return decodeURIComponent(Array.prototype.map.call(bytes, function (c) {
        return "%" + ("0" + c.charCodeAt(0).toString(16)).slice(-2);
      }).join(""));
    }
    var svg = picture.querySelector("svg"), copied = svg.cloneNode(true);
    var names = ["fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "font-size", "font-family"];
    var from = [svg].concat(Array.prototype.slice.call(svg.querySelectorAll("*")));
    var to = [copied].concat(Array.prototype.slice.call(copied.querySelectorAll("*")));
    from.forEach(function (element, i) {
      var style = getComputedStyle(element);
      names.forEach(function (name) { to[i].setAttribute(name, style.getPropertyValue(name)); });
      to[i].removeAttribute("class");
      to[i].removeAttribute("tabindex");
      if (element.classList.contains("hit")) to[i].remove(); // the area of the pointer, which nobody sees
    });
    var paper = document.createElementNS(svg.namespaceURI, "rect");
    [["width", "100%"], ["height", "100%"], ["fill", getComputedStyle(document.body).backgroundColor]].forEach(function (pair) {
      paper.setAttribute(pair[0], pair[1]);
    });
    copied.insertBefore(paper, copied.firstChild);
    return new XMLSerializer().serializeToString(copied) + "\n";
  }

  // Tables: a heading sorts its column, first descending for numbers; a search box filters by the first column.
  function sortKey(text) {
    var number = text.replace(/\u2212/g, "-").replace(/,(?=\d{3})/g, "").match(/-?\d+(\.\d+)?(e-?\d+)?/i);
    return number ? parseFloat(number[0]) : NaN;
  }
  function sortBy(table, column, heading) {
    var descending = heading.getAttribute("aria-sort") ? heading.getAttribute("aria-sort") === "ascending"
      : !heading.classList.contains("l");
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    var isText = heading.classList.contains("l");
    var keyed = rows.map(function (row) {
      var text = cellText(row.cells[column]);
      return { row: row, key: isText ? text : sortKey(text) };
    });
    keyed.sort(function (a, b) {
      if (isText) return (descending ? -1 : 1) * a.key.localeCompare(b.key, undefined, { numeric: true });
      if (isNaN(a.key) || isNaN(b.key)) return isNaN(a.key) - isNaN(b.key); // missing numbers come last
      return descending ? b.key - a.key : a.key - b.key;
    });
    each("th[aria-sort]", function (th) { th.removeAttribute("aria-sort"); }, table);
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    keyed.forEach(function (one) { table.tBodies[0].appendChild(one.row); });
    tell("Sorted by " + cellText(heading) + ", " + (descending ? "descending." : "ascending."));
  }
  function filterRows(table, text) {
    var query = text.trim().toLowerCase(), shown = 0;
    Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
      row.hidden = query !== "" && cellText(row.cells[0]).toLowerCase().indexOf(query) < 0;
      shown += !row.hidden;
      var link = row.querySelector(".row");
      if (link) link.tabIndex = shown === 1 && !row.hidden ? 0 : -1;
    });
    return shown;
  }
  each("[data-tools]", function (tools) {
    var table = document.getElementById(tools.dataset.tools);
    each("thead th", function (th) {
      if (th.classList.contains("strip") || th.classList.contains("curves") || !th.textContent.trim()) return;
      if (table.tBodies[0].rows.length < 2) return;
      var sorter = button(th.textContent, function () { sortBy(table, th.cellIndex, th); });
      sorter.className = "sort";
      th.textContent = "";
      th.appendChild(sorter);
    }, table);
    var link = tools.firstChild;
    tools.insertBefore(button("Copy table", function () { copy(tsv(table), "Table"); }), link);
    if (tools.dataset.filter === undefined || table.tBodies[0].rows.length < 6) return;
    var label = document.createElement("label"), field = document.createElement("input"), count = document.createElement("span");
    field.type = "search";
    field.autocomplete = "off";
    label.append("Search " + tools.dataset.filter + " ", field);
    count.className = "quiet";
    field.addEventListener("input", function () {
      var total = table.tBodies[0].rows.length, shown = filterRows(table, field.value);
      count.textContent = field.value ? shown.toLocaleString("en") + " of " + total.toLocaleString("en") : "";
    });
    link.before(label, count);
  });
  // A search above several tables is written into the search of each table that has one, so that the two agree.
  function searchTable(table, text) {
    var field = document.querySelector('[data-tools="' + table.id + '"] input');
    if (!field) { filterRows(table, text); return; }
    field.value = text;
    field.dispatchEvent(new Event("input"));
  }
  each("[data-copy]", function (tools) {
    tools.appendChild(button("Copy text", function () { copy(document.getElementById(tools.dataset.copy).innerText, "Text"); }));
  });

  // Pictures: enlarged in a dialog, which Escape closes; copied as SVG, or as the rows of their table.
  var dialog = document.createElement("dialog"), opener = null;
  dialog.setAttribute("aria-label", "Enlarged diagram");
  document.body.appendChild(dialog);
  // The event comes some time after the browser has closed the dialog and returned the focus, which may have moved on.
  dialog.addEventListener("close", function () {
    if (dialog.open) return;
    dialog.textContent = "";
    if (opener && document.activeElement === document.body) opener.focus();
  });
  function enlarge(picture, from) {
    opener = from;
    dialog.textContent = "";
    var copied = picture.cloneNode(true);
    each(".tools", function (tools) { tools.remove(); }, copied);
    dialog.append(button("Close", function () { dialog.close(); }), copied);
    dialog.showModal();
  }
  each(".picture", function (picture) {
    var tools = document.createElement("div"), table = document.getElementById(picture.dataset.table || "");
    tools.className = "tools";
    if (window.HTMLDialogElement) tools.appendChild(button("Enlarge", function (event) { enlarge(picture, event.currentTarget); }));
    tools.appendChild(button("Copy SVG", function () { copy(svgText(picture), "Picture"); }));
    if (table) tools.appendChild(button("Copy data", function () { copy(tsv(table, picture.dataset.view), "Data"); }));
    picture.appendChild(tools);
  });

  // Bins: the pointer or the focus shows their numbers below the picture; arrow keys move from bin to bin.
  function show(event) {
    var bin = event.target.closest && event.target.closest(".bin");
    if (!bin) return;
    var readout = bin.closest(".picture").querySelector(".readout");
    readout.hidden = false;
    readout.textContent = bin.getAttribute("aria-label");
  }
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);

  // One stop of the Tab key for all bins of a picture, and for all rows of a table: arrow keys move within them.
  function move(event, all, steps) {
    var i = all.indexOf(event.target), last = all.length - 1;
    var next = event.key === "Home" ? 0 : event.key === "End" ? last : i + steps[event.key];
    if (isNaN(next)) return;
    event.preventDefault();
    next = Math.max(0, Math.min(last, next));
    all.forEach(function (one, k) { one.setAttribute("tabindex", k === next ? "0" : "-1"); });
    all[next].focus();
  }
  document.addEventListener("keydown", function (event) {
    if (!event.target.matches || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches(".bin")) {
      var bins = event.target.parentNode.querySelectorAll(".bin");
      move(event, Array.prototype.slice.call(bins), { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 });
    } else if (event.target.matches(".row")) {
      var rows = event.target.closest("table, dl").querySelectorAll(".row");
      var shown = Array.prototype.filter.call(rows, function (row) { return row.getClientRects().length > 0; });
      move(event, shown, { ArrowDown: 1, ArrowUp: -1 });
    }
  });

  // The first cell of a row links to the row, so that a single number can be pointed to.
  each("main table, main dl.facts", function (list) {
    each("tbody tr[id], div[id]", function (row) {
      var cell = row.querySelector("td, dt"), link = document.createElement("a");
      link.className = "row";
      link.href = "#" + row.id;
      link.title = "Link to this row";
      link.tabIndex = row.parentNode.firstElementChild === row ? 0 : -1;
      link.append.apply(link, Array.prototype.slice.call(cell.childNodes));
      cell.appendChild(link);
    }, list);
  });
  each(".picture .readout", function (readout) {
    readout.hidden = false;
    if (!readout.parentNode.dataset.view) readout.textContent = "Point at a bin, or use the arrow keys, for its numbers.";
  });

  // Selecting a lens hides the other diagrams; the class search filters panels and all tables of classes.
  var bar = document.getElementById("choose");
  if (!bar || !bar.querySelector("select, input")) return;
  var lens = document.getElementById("lens"), search = document.getElementById("class");
  function chooseLens() {
    each("#where figure[data-lens]", function (figure) {
      figure.hidden = !!(lens && lens.value) && lens.value !== "=" + figure.dataset.lens;
    });
  }
  function searchClasses() {
    if (!search) return;
    var query = search.value.trim().toLowerCase();
    each("#where .picture[data-view]", function (picture) {
      picture.hidden = query !== "" && plain(picture.dataset.view).toLowerCase().indexOf(query) < 0;
    });
    each("#where table", function (table) {
      if (/^(class|label)$/.test(cellText(table.rows[0].cells[0]))) searchTable(table, search.value);
    });
    var classes = document.getElementById("table-classes");
    if (classes) searchTable(classes, search.value);
  }
  bar.hidden = false;
  if (lens) lens.addEventListener("input", chooseLens);
  if (search) search.addEventListener("input", searchClasses);
  chooseLens(); // browsers keep a selection on reload
  searchClasses();
})();

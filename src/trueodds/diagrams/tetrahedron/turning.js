// Rotates every tetrahedron of the page by dragging, arrow keys or buttons; without this script they are static.
(function () {
  "use strict";
  var NAMES = "http://www.w3.org/2000/svg";
  var still = window.matchMedia && window.matchMedia("(prefers-reduced-motion: reduce)");

  function setup(figure) {
    var island = figure.querySelector("script[type='application/json']");
    var svg = figure.querySelector("svg");
    if (!island || !svg || figure.dataset.ready) return;
    figure.dataset.ready = "yes";
    var data = JSON.parse(island.textContent);
    var azimuth = data.azimuth, elevation = data.elevation, frame = 0, held = null;
    var marks = svg.querySelector("g");
    var status = figure.querySelector("[aria-live]");

    // The same three directions as in the static picture: right, up, toward the reader.
    function turned() {
      var a = azimuth * Math.PI / 180, e = elevation * Math.PI / 180;
      var right = [Math.cos(a), Math.sin(a), 0], ahead = [-Math.sin(a), Math.cos(a), 0];
      var up = [Math.sin(e) * ahead[0], Math.sin(e) * ahead[1], Math.cos(e)];
      var near = [-Math.cos(e) * ahead[0], -Math.cos(e) * ahead[1], Math.sin(e)];
      return data.corners.map(function (c) {
        return [right, up, near].map(function (d) { return c[0] * d[0] + c[1] * d[1] + c[2] * d[2]; });
      });
    }
    function at(p, projected) {
      return [0, 1, 2].map(function (d) {
        return p[0] * projected[0][d] + p[1] * projected[1][d] + p[2] * projected[2][d] + p[3] * projected[3][d];
      });
    }
    function away(projected, corner) { // whether the face opposite a corner faces away
      var side = [0, 1, 2, 3].filter(function (k) { return k !== corner; }).map(function (k) { return projected[k]; });
      var u = [0, 1, 2].map(function (d) { return side[1][d] - side[0][d]; });
      var v = [0, 1, 2].map(function (d) { return side[2][d] - side[0][d]; });
      var n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
      var out = [0, 1, 2].reduce(function (s, d) { return s + n[d] * (projected[corner][d] - side[0][d]); }, 0);
      return (out < 0 ? n[2] : -n[2]) < -1e-9;
    }
    function px(x) { return (data.scale * x).toFixed(2); }
    function put(name, values) {
      var one = document.createElementNS(NAMES, name);
      Object.keys(values).forEach(function (key) { one.setAttribute(key, values[key]); });
      marks.appendChild(one);
      return one;
    }
    function arrow(tail, head, cell, strength) {
      var dx = head[0] - tail[0], dy = head[1] - tail[1], long = Math.hypot(dx, dy) * data.scale;
      var width = cell.beyond ? 2.6 : 1.1, tip = Math.min(4.2 * width, long);
      var group = put("path", {
        "class": cell.beyond ? "beyond" : "faded", fill: cell.beyond ? data.beyond : data.faded,
        stroke: "none", "fill-opacity": strength.toFixed(3)
      });
      var title = document.createElementNS(NAMES, "title");
      title.textContent = cell.title;
      group.appendChild(title);
      if (!(long > 1e-6)) { group.setAttribute("d", ""); return; }
      var ux = dx * data.scale / long, uy = -dy * data.scale / long;
      var x = data.scale * tail[0], y = -data.scale * tail[1];
      var neck = long - tip, w = width / 2, h = 1.8 * width * tip / (4.2 * width);
      var corners = [[0, w], [neck, w], [neck, h], [long, 0], [neck, -h], [neck, -w], [0, -w]];
      group.setAttribute("d", "M" + corners.map(function (c) {
        return (x + c[0] * ux - c[1] * uy).toFixed(2) + " " + (y + c[0] * uy + c[1] * ux).toFixed(2);
      }).join("L") + "Z");
    }
    function render() {
      var projected = turned(), hides = [0, 1, 2, 3].map(function (k) { return away(projected, k); });
      while (marks.firstChild) marks.removeChild(marks.firstChild);
      data.edges.forEach(function (edge) {
        var a = projected[edge[0]], b = projected[edge[1]];
        var behind = [0, 1, 2, 3].every(function (k) { return edge.indexOf(k) >= 0 || hides[k]; });
        put("line", {
          "class": "edge", x1: px(a[0]), y1: px(-a[1]), x2: px(b[0]), y2: px(-b[1]), stroke: "#7a7a7a",
          "stroke-width": behind ? 1 : 1.5, "stroke-dasharray": behind ? "5 4" : "none"
        });
      });
      var placed = data.cells.map(function (cell) {
        return { cell: cell, tail: at(cell.predicted, projected), head: at(cell.observed, projected) };
      });
      placed.sort(function (a, b) { return a.tail[2] - b.tail[2]; });
      placed.forEach(function (each) {
        put("circle", {
          "class": "cell", cx: px(each.tail[0]), cy: px(-each.tail[1]), r: each.cell.radius,
          fill: each.cell.color, stroke: "#53616e", "stroke-width": 0.8
        });
      });
      [false, true].forEach(function (beyond) { // significant cells are drawn last, so that they are never covered
        placed.forEach(function (each) {
          if (each.cell.beyond !== beyond) return;
          arrow(each.tail, each.head, each.cell, each.cell.opacity * (0.4 + 0.6 * (each.tail[2] / data.radius + 1) / 2));
        });
      });
      data.names.forEach(function (name, k) {
        var out = Math.hypot(projected[k][0], projected[k][1]);
        var dx = out > 0.05 ? projected[k][0] / out : 0, dy = out > 0.05 ? projected[k][1] / out : 1;
        put("text", {
          x: (data.scale * projected[k][0] + 9 * dx).toFixed(2), y: (-data.scale * projected[k][1] - 9 * dy + 5).toFixed(2),
          "text-anchor": dx > 0.5 ? "start" : dx < -0.5 ? "end" : "middle", "font-size": 15, "font-weight": "bold",
          fill: "currentColor", "fill-opacity": projected[k][2] > -0.5 * data.radius ? 1 : 0.65
        }).textContent = name;
      });
      svg.dataset.azimuth = azimuth.toFixed(2);
      svg.dataset.elevation = elevation.toFixed(2);
    }
    function tell() {
      if (status) status.textContent = "Viewed from azimuth " + Math.round(azimuth) + "°, elevation " + Math.round(elevation) + "°.";
    }
    function wrap(angle) { return ((angle + 180) % 360 + 360) % 360 - 180; }
    function set(a, e) {
      azimuth = wrap(a);
      elevation = Math.max(-90, Math.min(90, e));
      render();
    }
    function turn(a, e) { // animated, unless the user prefers reduced motion
      clearTimeout(frame);
      e = Math.max(-90, Math.min(90, e));
      if (!still || still.matches) { set(a, e); tell(); return; }
      var from = [azimuth, elevation], by = [wrap(a - azimuth), e - elevation], start = null;
      goal = [from[0] + by[0], e];
      (function step() {
        var now = Date.now();
        if (start === null) start = now;
        var part = Math.min((now - start) / 140, 1);
        set(from[0] + by[0] * part, from[1] + by[1] * part);
        if (part < 1) { frame = setTimeout(step, 16); } else { goal = null; tell(); }
      })();
    }
    var goal = null; // where the current rotation will end: a second key press continues from there
    function by(a, e) {
      var from = goal || [azimuth, elevation];
      turn(from[0] + a, from[1] + e);
    }
    function home() { turn(data.azimuth, data.elevation); }

    var keys = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, 10], ArrowDown: [0, -10] };
    svg.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Home") home();
      else if (keys[event.key]) by(keys[event.key][0], keys[event.key][1]);
      else return;
      event.preventDefault();
    });
    svg.addEventListener("pointerdown", function (event) {
      clearTimeout(frame);
      goal = null;
      held = { id: event.pointerId, x: event.clientX, y: event.clientY, a: azimuth, e: elevation };
      if (svg.setPointerCapture) try { svg.setPointerCapture(event.pointerId); } catch (gone) { /* the pointer is gone */ }
    });
    svg.addEventListener("pointermove", function (event) {
      if (!held || held.id !== event.pointerId) return;
      set(held.a - 0.5 * (event.clientX - held.x), held.e + 0.5 * (event.clientY - held.y));
    });
    ["pointerup", "pointercancel"].forEach(function (kind) {
      svg.addEventListener(kind, function () { if (held) { held = null; tell(); } });
    });
    svg.style.touchAction = "pan-y pinch-zoom"; // vertical swipes still scroll the page
    svg.style.cursor = "grab";
    var bar = figure.querySelector("[data-buttons]");
    if (bar) {
      [["rotate left", "◀", -15, 0], ["rotate right", "▶", 15, 0], ["tilt up", "▲", 0, 15], ["tilt down", "▼", 0, -15]]
        .forEach(function (each) {
          var button = document.createElement("button");
          button.type = "button";
          button.textContent = each[1];
          button.setAttribute("aria-label", each[0]);
          button.addEventListener("click", function () { by(each[2], each[3]); });
          bar.appendChild(button);
        });
      var back = document.createElement("button");
      back.type = "button";
      back.textContent = "reset view";
      back.addEventListener("click", home);
      bar.appendChild(back);
    }
    render();
  }
  function all() { document.querySelectorAll("figure[data-turning]").forEach(setup); }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();

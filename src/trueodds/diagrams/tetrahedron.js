// Rotates every tetrahedron of the page by dragging, arrow keys or buttons; without this script they are static.
(function () {
  "use strict";
  var SVG_NAMESPACE = "http://www.w3.org/2000/svg";
  var reducedMotion = window.matchMedia && window.matchMedia("(prefers-reduced-motion: reduce)");

  function setUpFigure(figure) {
    var dataElement = figure.querySelector("script[type='application/json']");
    var svg = figure.querySelector("svg");
    if (!dataElement || !svg || figure.dataset.ready) return;
    figure.dataset.ready = "yes";
    var data = JSON.parse(dataElement.textContent);
    var azimuth = data.azimuth, elevation = data.elevation, frame = 0, drag = null;
    var marks = svg.querySelector("g");
    var status = figure.querySelector("[aria-live]");

    // The same three directions as in the static picture: right, up, toward the reader.
    function projectCorners() {
      var a = azimuth * Math.PI / 180, e = elevation * Math.PI / 180;
      var right = [Math.cos(a), Math.sin(a), 0], ahead = [-Math.sin(a), Math.cos(a), 0];
      var up = [Math.sin(e) * ahead[0], Math.sin(e) * ahead[1], Math.cos(e)];
      var near = [-Math.cos(e) * ahead[0], -Math.cos(e) * ahead[1], Math.sin(e)];
      return data.corners.map(function (c) {
        return [right, up, near].map(function (d) { return c[0] * d[0] + c[1] * d[1] + c[2] * d[2]; });
      });
    }
    function project(p, projected) { // the point with four probabilities p, from the projected corners
      return [0, 1, 2].map(function (d) {
        return p[0] * projected[0][d] + p[1] * projected[1][d] + p[2] * projected[2][d] + p[3] * projected[3][d];
      });
    }
    function facesAway(projected, corner) { // whether the face opposite a corner faces away
      var side = [0, 1, 2, 3].filter(function (k) { return k !== corner; }).map(function (k) { return projected[k]; });
      var u = [0, 1, 2].map(function (d) { return side[1][d] - side[0][d]; });
      var v = [0, 1, 2].map(function (d) { return side[2][d] - side[0][d]; });
      var n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
      var out = [0, 1, 2].reduce(function (s, d) { return s + n[d] * (projected[corner][d] - side[0][d]); }, 0);
      return (out < 0 ? n[2] : -n[2]) < -1e-9;
    }
    function toSvgLength(x) { return (data.scale * x).toFixed(2); } // from sides of the tetrahedron
    function appendElement(name, values) {
      var element = document.createElementNS(SVG_NAMESPACE, name);
      Object.keys(values).forEach(function (key) { element.setAttribute(key, values[key]); });
      marks.appendChild(element);
      return element;
    }
    function drawArrow(tail, head, cell, opacity) {
      var dx = head[0] - tail[0], dy = head[1] - tail[1], long = Math.hypot(dx, dy) * data.scale;
      var width = cell.beyond ? 2.6 : 1.1, tip = Math.min(4.2 * width, long);
      var path = appendElement("path", {
        "class": cell.beyond ? "beyond" : "faded", fill: cell.beyond ? data.beyond : data.faded,
        stroke: "none", "fill-opacity": opacity.toFixed(3)
      });
      var title = document.createElementNS(SVG_NAMESPACE, "title");
      title.textContent = cell.title;
      path.appendChild(title);
      if (!(long > 1e-6)) { path.setAttribute("d", ""); return; }
      var ux = dx * data.scale / long, uy = -dy * data.scale / long;
      var x = data.scale * tail[0], y = -data.scale * tail[1];
      var neck = long - tip, w = width / 2, h = 1.8 * width * tip / (4.2 * width);
      var corners = [[0, w], [neck, w], [neck, h], [long, 0], [neck, -h], [neck, -w], [0, -w]];
      path.setAttribute("d", "M" + corners.map(function (c) {
        return (x + c[0] * ux - c[1] * uy).toFixed(2) + " " + (y + c[0] * uy + c[1] * ux).toFixed(2);
      }).join("L") + "Z");
    }
    function render() {
      var projected = projectCorners(), hiddenFaces = [0, 1, 2, 3].map(function (k) { return facesAway(projected, k); });
      while (marks.firstChild) marks.removeChild(marks.firstChild);
      data.edges.forEach(function (edge) {
        var a = projected[edge[0]], b = projected[edge[1]];
        var behind = [0, 1, 2, 3].every(function (k) { return edge.indexOf(k) >= 0 || hiddenFaces[k]; });
        appendElement("line", {
          "class": "edge", x1: toSvgLength(a[0]), y1: toSvgLength(-a[1]), x2: toSvgLength(b[0]), y2: toSvgLength(-b[1]),
          stroke: "#7a7a7a", "stroke-width": behind ? 1 : 1.5, "stroke-dasharray": behind ? "5 4" : "none"
        });
      });
      var projectedCells = data.cells.map(function (cell) {
        return { cell: cell, tail: project(cell.predicted, projected), head: project(cell.observed, projected) };
      });
      projectedCells.sort(function (a, b) { return a.tail[2] - b.tail[2]; });
      projectedCells.forEach(function (projectedCell) {
        appendElement("circle", {
          "class": "cell", cx: toSvgLength(projectedCell.tail[0]), cy: toSvgLength(-projectedCell.tail[1]), r: projectedCell.cell.radius,
          fill: projectedCell.cell.color, stroke: "#53616e", "stroke-width": 0.8
        });
      });
      [false, true].forEach(function (beyond) { // significant cells are drawn last, so that they are never covered
        projectedCells.forEach(function (projectedCell) {
          if (projectedCell.cell.beyond !== beyond) return;
          var nearness = (projectedCell.tail[2] / data.radius + 1) / 2; // from 0 to 1: far cells are paler
          drawArrow(projectedCell.tail, projectedCell.head, projectedCell.cell, projectedCell.cell.opacity * (0.4 + 0.6 * nearness));
        });
      });
      data.names.forEach(function (name, k) {
        var out = Math.hypot(projected[k][0], projected[k][1]);
        var dx = out > 0.05 ? projected[k][0] / out : 0, dy = out > 0.05 ? projected[k][1] / out : 1;
        appendElement("text", {
          x: (data.scale * projected[k][0] + 9 * dx).toFixed(2), y: (-data.scale * projected[k][1] - 9 * dy + 5).toFixed(2),
          "text-anchor": dx > 0.5 ? "start" : dx < -0.5 ? "end" : "middle", "font-size": 15, "font-weight": "bold",
          fill: "currentColor", "fill-opacity": projected[k][2] > -0.5 * data.radius ? 1 : 0.65
        }).textContent = name;
      });
      svg.dataset.azimuth = azimuth.toFixed(2);
      svg.dataset.elevation = elevation.toFixed(2);
    }
    function announceView() {
      if (status) status.textContent = "Viewed from azimuth " + Math.round(azimuth) + "°, elevation " + Math.round(elevation) + "°.";
    }
    function wrapDegrees(angle) { return ((angle + 180) % 360 + 360) % 360 - 180; } // to [-180, 180)
    function setView(a, e) {
      azimuth = wrapDegrees(a);
      elevation = Math.max(-90, Math.min(90, e));
      render();
    }
    function rotateTo(a, e) { // to an azimuth and an elevation; animated, unless the user prefers reduced motion
      clearTimeout(frame);
      e = Math.max(-90, Math.min(90, e));
      if (!reducedMotion || reducedMotion.matches) { setView(a, e); announceView(); return; }
      var from = [azimuth, elevation], by = [wrapDegrees(a - azimuth), e - elevation], start = null;
      goal = [from[0] + by[0], e];
      (function step() {
        var now = Date.now();
        if (start === null) start = now;
        var part = Math.min((now - start) / 140, 1);
        setView(from[0] + by[0] * part, from[1] + by[1] * part);
        if (part < 1) { frame = setTimeout(step, 16); } else { goal = null; announceView(); }
      })();
    }
    var goal = null; // where the current rotation will end: a second key press continues from there
    function rotateBy(a, e) {
      var from = goal || [azimuth, elevation];
      rotateTo(from[0] + a, from[1] + e);
    }
    function resetView() { rotateTo(data.azimuth, data.elevation); }

    var keys = { ArrowLeft: [-10, 0], ArrowRight: [10, 0], ArrowUp: [0, 10], ArrowDown: [0, -10] };
    svg.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Home") resetView();
      else if (keys[event.key]) rotateBy(keys[event.key][0], keys[event.key][1]);
      else return;
      event.preventDefault();
    });
    svg.addEventListener("pointerdown", function (event) {
      clearTimeout(frame);
      goal = null;
      drag = { id: event.pointerId, x: event.clientX, y: event.clientY, a: azimuth, e: elevation };
      if (svg.setPointerCapture) try { svg.setPointerCapture(event.pointerId); } catch (gone) { /* the pointer is gone */ }
    });
    svg.addEventListener("pointermove", function (event) {
      if (!drag || drag.id !== event.pointerId) return;
      setView(drag.a - 0.5 * (event.clientX - drag.x), drag.e + 0.5 * (event.clientY - drag.y));
    });
    ["pointerup", "pointercancel"].forEach(function (kind) {
      svg.addEventListener(kind, function () { if (drag) { drag = null; announceView(); } });
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
          button.addEventListener("click", function () { rotateBy(each[2], each[3]); });
          bar.appendChild(button);
        });
      var back = document.createElement("button");
      back.type = "button";
      back.textContent = "reset view";
      back.addEventListener("click", resetView);
      bar.appendChild(back);
    }
    render();
  }
  function setUpAllFigures() { document.querySelectorAll("figure[data-turning]").forEach(setUpFigure); }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", setUpAllFigures);
  else setUpAllFigures();
})();

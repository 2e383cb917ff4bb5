// Selecting a lens or a class hides the others. Without this script everything is visible.
(function () {
  "use strict";
  var bar = document.getElementById("choose");
  if (!bar || !bar.querySelector("select")) return;
  var lens = document.getElementById("lens");
  var kind = document.getElementById("class");
  function show() {
    var figures = document.querySelectorAll("#where figure[data-lens]");
    for (var i = 0; i < figures.length; i++) {
      figures[i].hidden = !!(lens && lens.value) && lens.value !== "=" + figures[i].dataset.lens;
    }
    var rows = document.querySelectorAll("tr[data-class]");
    for (var j = 0; j < rows.length; j++) {
      rows[j].hidden = !!(kind && kind.value) && kind.value !== "=" + rows[j].dataset.class;
    }
  }
  bar.hidden = false;
  bar.addEventListener("change", show);
  show(); // browsers keep a selection on reload
})();

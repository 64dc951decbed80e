(function () {
  "use strict";
  var input = document.getElementById("find"), count = document.getElementById("found");
  var list = document.getElementById("all");
  document.documentElement.classList.add("js");
  addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (d) { d.open = true; });
  });
  if (!input || !list)
    return;
  var rows = Array.prototype.slice.call(list.querySelectorAll("tbody tr"));
  var texts = rows.map(function (row) { return row.textContent.toLowerCase(); });
  function find() {
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean), n = 0;
    rows.forEach(function (row, i) {
      var shown = words.every(function (word) { return texts[i].indexOf(word) >= 0; });
      row.hidden = !shown;
      n += shown;
    });
    if (words.length)
      list.open = true;
    count.textContent = words.length ? n + " of " + rows.length + " lines" : "";
  }
  input.addEventListener("input", find);
  input.addEventListener("keydown", function (event) {
    if (event.key === "Escape") {
      input.value = "";
      find();
    }
  });
})();

"use strict";
// A cursor over the charts of load: a line at a moment, and what was measured there; buttons that copy a table;
// and links that save a chart. The page says everything without them. Neither "less than" nor an ampersand stands here, so that the
// page is also well-formed XML.
(function () {
  function show(number) {
    return number.toLocaleString("en", { maximumSignificantDigits: 4 });
  }
  function attach(figure, svg) {
    var data = JSON.parse(figure.querySelector("script").textContent);
    var out = figure.querySelector("output");
    var box = svg.viewBox.baseVal;
    var left = Number(svg.dataset.left);
    var right = Number(svg.dataset.right);
    var length = data.to - data.from;
    var at = data.from;
    var line = document.createElementNS(svg.namespaceURI, "line");
    line.setAttribute("class", "cursor");
    line.setAttribute("y1", "0");
    line.setAttribute("y2", String(box.height - 54));
    line.setAttribute("stroke", "currentColor");
    line.setAttribute("stroke-width", "1");
    line.setAttribute("visibility", "hidden");
    line.setAttribute("pointer-events", "none");
    svg.appendChild(line);
    svg.setAttribute("tabindex", "0");
    figure.querySelector(".script").style.display = "block";
    function move(to) {
      at = Math.min(data.to, Math.max(data.from, to));
      var share = (at - data.from) / length;
      var x = String(left + share * (right - left));
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      line.setAttribute("visibility", "visible");
      var parts = [show(at) + " s"];
      data.runs.forEach(function (run) {
        if (at >= run[0]) {
          if (run[1] >= at) {
            parts[1] = run[2];
          }
        }
      });
      data.names.forEach(function (name, i) {
        var list = data.values[i];
        var place = Math.min(list.length - 1, Math.floor(share * list.length));
        parts.push(name[0] + " " + show(list[place]) + " " + name[1]);
      });
      out.textContent = parts.filter(Boolean).join(" · ");
    }
    function point(event) {
      var seen = svg.getBoundingClientRect();
      var x = (event.clientX - seen.left) / seen.width * box.width;
      move(data.from + (x - left) / (right - left) * length);
    }
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("keydown", function (event) {
      var step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
      if (step) {
        event.preventDefault();
        move(at + step * length / 200);
      }
    });
  }
  document.querySelectorAll("figure[data-cursor]").forEach(function (figure) {
    figure.querySelectorAll("svg").forEach(function (svg) { attach(figure, svg); });
  });
  function rows(table) {
    return Array.from(table.rows).map(function (row) {
      return Array.from(row.cells).map(function (cell) {
        return cell.textContent.trim().replace(/\s+/g, " ");
      });
    });
  }
  function markdown(table) {
    var all = rows(table).map(function (row) {
      return "| " + row.map(function (text) { return text.replace(/([|\\])/g, "\\$1"); }).join(" | ") + " |";
    });
    var rule = Array.from(table.rows[0].cells).map(function (cell) {
      return cell.className === "n" ? "---:" : "---";
    });
    all.splice(1, 0, "| " + rule.join(" | ") + " |");
    return all.join("\n") + "\n";
  }
  function csv(table) {
    return rows(table).map(function (row) {
      return row.map(function (text) {
        // A spreadsheet takes these for formulas.
        var plain = /^[=+\-@]/.test(text) ? "'" + text : text;
        return /[",;\n]/.test(plain) ? '"' + plain.replace(/"/g, '""') + '"' : plain;
      }).join(",");
    }).join("\r\n") + "\r\n";
  }
  function button(box, table, label, format) {
    var one = document.createElement("button");
    one.type = "button";
    one.textContent = label;
    one.addEventListener("click", function () {
      var text = format(table);
      var shown = box.querySelector("pre") || box.appendChild(document.createElement("pre"));
      // Shown as well: a browser may forbid a page from a file to copy.
      shown.textContent = text;
      if (navigator.clipboard) {
        navigator.clipboard.writeText(text).then(function () { one.textContent = box.dataset.done; }, function () {});
      }
    });
    box.appendChild(one);
  }
  document.querySelectorAll("div[data-md]").forEach(function (box) {
    var table = box.querySelector("table");
    button(box, table, box.dataset.md, markdown);
    button(box, table, box.dataset.csv, csv);
  });
  // A chart as a document of its own: on white, with its name above it, and with colours for the page's variables.
  function standalone(svg) {
    var head = 44;
    var box = svg.viewBox.baseVal;
    var colours = document.styleSheets[0].cssRules[0].style;
    var name = svg.querySelector("title").textContent;
    var copy = svg.cloneNode(true);
    copy.querySelectorAll(".cursor").forEach(function (line) { line.remove(); });
    ["class", "tabindex", "data-left", "data-right"].forEach(function (key) { copy.removeAttribute(key); });
    function set(one, values) {
      Object.keys(values).forEach(function (key) { one.setAttribute(key, String(values[key])); });
      return one;
    }
    var height = box.height + head;
    set(copy, {
      viewBox: [0, -head, box.width, height].join(" "), width: box.width, height: height,
      "font-family": getComputedStyle(svg).fontFamily
    });
    var paper = set(document.createElementNS(svg.namespaceURI, "rect"), {
      x: 0, y: -head, width: box.width, height: height, fill: "var(--paper)"
    });
    // Full-width characters take two places.
    var places = name.replace(/[\u2e80-\uffff]/g, "xx").length;
    var title = set(document.createElementNS(svg.namespaceURI, "text"), {
      x: 16, y: -16, fill: "currentColor", "font-size": Math.min(20, (box.width - 32) / places / 0.6)
    });
    title.textContent = name;
    copy.insertBefore(title, copy.firstChild);
    copy.insertBefore(paper, title);
    var text = new XMLSerializer().serializeToString(copy);
    return text.replace(/currentColor/g, "var(--ink)").replace(/var\((--[a-z]+)\)/g, function (all, key) {
      return colours.getPropertyValue(key).trim();
    });
  }
  function asSvg(svg, done) {
    done(new Blob([standalone(svg)], { type: "image/svg+xml" }));
  }
  function asPng(svg, done) {
    var image = new Image();
    image.addEventListener("load", function () {
      var canvas = document.createElement("canvas");
      canvas.width = 2 * image.width;
      canvas.height = 2 * image.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    });
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(standalone(svg));
  }
  function save(figure, label, make) {
    var one = document.createElement("a");
    one.href = "#";
    one.textContent = label;
    one.download = figure.dataset.name + "." + label.toLowerCase();
    one.addEventListener("click", function (event) {
      // The second time it is there.
      if (one.protocol !== "blob:") {
        event.preventDefault();
        make(figure.querySelector("svg.large"), function (blob) {
          one.href = URL.createObjectURL(blob);
          // Not within the click that asked for it, which would be ignored.
          setTimeout(function () { one.click(); }, 0);
        });
      }
    });
    return one;
  }
  document.querySelectorAll("figure[data-name]").forEach(function (figure) {
    var line = document.createElement("p");
    line.className = "save";
    line.append(figure.dataset.save, save(figure, "SVG", asSvg), save(figure, "PNG", asPng));
    figure.insertBefore(line, figure.querySelector("figcaption"));
  });
  // Paper cannot be clicked on.
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (one) { one.open = true; });
  });
}());

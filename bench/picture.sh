#!/usr/bin/env bash
# Makes the picture of a report that docs/report.md shows, from a folder of results.
#
#   bench/picture.sh RESULT [PICTURE]
#
# PICTURE is docs/images/report.png unless another is named: the top of the page, light, 1100 by 1500
# pixels. Needs a browser of chromium's family, which sees no network and keeps nothing.
#
# HAKOBU names the program (default: target/release/hakobu), BROWSER the browser, LANG_OF the language
# (en, ja), HEIGHT how much of the page is shown.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

[[ $# -ge 1 && $1 != --help ]] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
result=$1 picture=${2:-$here/../docs/images/report.png}

browser=${BROWSER:-}
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  [[ -n $browser ]] || browser=$(type -P "$name" || true)
done
[[ -n $browser ]] || { echo "picture.sh: there is no chromium; BROWSER names one" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${HAKOBU:-$here/../target/release/hakobu}" report "$result" --lang "${LANG_OF:-en}" -o "$work/report.html"
"$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions \
  --no-first-run --user-data-dir="$work/profile" --hide-scrollbars --force-color-profile=srgb \
  --window-size="1100,${HEIGHT:-1500}" --screenshot="$work/report.png" "file://$work/report.html" \
  >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
[[ -s $work/report.png ]] || { cat "$work/log" >&2; echo "picture.sh: there is no picture" >&2; exit 1; }
mkdir -p "$(dirname "$picture")"
mv "$work/report.png" "$picture"

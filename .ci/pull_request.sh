#!/usr/bin/env bash
# The report of a pull request: pull_request.sh FOLDER writes page, JSON, picture and comment.md there, and the exit status of
# the gates to $GITHUB_OUTPUT. The environment has PREDICTIONS, and optionally BASELINE, OPTIONS and GATES (one per line).
set -euo pipefail

folder=$1
mkdir -p "$folder"
# Quoted as on a command line, but nothing is expanded or run.
words=$(python -c 'import os, shlex; print(*shlex.split(os.environ.get("OPTIONS", "")), sep="\n")') || exit 2
options=()
while IFS= read -r word; do
  [ -z "$word" ] || options+=("$word")
done <<<"$words"
gates=()
while IFS= read -r gate; do
  [ -z "$gate" ] || gates+=(--fail-on "$gate")
done <<<"${GATES:-}"

if [ -n "${BASELINE:-}" ]; then
  command=(trueodds compare "$PREDICTIONS" "$BASELINE" "${options[@]}")
else
  command=(trueodds audit "$PREDICTIONS" --brief "${options[@]}")
fi
code=0
"${command[@]}" --html "$folder/report.html" --json "$folder/report.json" "${gates[@]}" >"$folder/report.txt" 2>"$folder/messages.txt" || code=$?

# GitHub shows no pictures of a private run in a comment, so the reliability diagram is drawn by Mermaid, too.
draw=(trueodds draw "$PREDICTIONS" --diagram reliability --set bins=10)
if [ "$code" -ne 2 ] && [ -z "${BASELINE:-}" ] && "${draw[@]}" "${options[@]}" --out "$folder/reliability.png" >&2 &&
  "${draw[@]}" "${options[@]}" --out "$folder/reliability.csv" >&2; then
  python - "$folder/reliability.csv" >"$folder/chart.txt" <<'EOF'
import csv
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
rows = [row for row in rows if row["view"] == rows[0]["view"] and float(row["n"] or 0) > 0]
predicted, observed = ([f"{float(row[name]):.3f}" for row in rows] for name in ("mean_prediction", "outcome_rate"))
print("```mermaid\nxychart-beta\n    title \"Reliability: observed (bars) and predicted (line)\"")
print(f"    x-axis \"mean prediction of the bin\" [{', '.join(predicted)}]")
print(f"    y-axis \"rate\" 0 --> 1\n    bar [{', '.join(observed)}]\n    line [{', '.join(predicted)}]\n```")
EOF
fi

case $code in
  0) verdict="Calibration: no gate failed" ;;
  1) verdict="Calibration: a gate failed" ;;
  *) verdict="Calibration: the check could not be made" ;;
esac
{
  printf '### %s\n\n' "$verdict"
  printf '```text\n'
  # A fence inside the report would end the block.
  cat "$folder/report.txt" "$folder/messages.txt" | tr -d '`'
  printf '```\n\n'
  [ ! -f "$folder/chart.txt" ] || cat "$folder/chart.txt"
  if [ -n "${GITHUB_RUN_ID:-}" ]; then
    printf '\nPage and picture: artifact `calibration-report` of [this run](%s).\n' \
      "${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_REPOSITORY:-}/actions/runs/$GITHUB_RUN_ID"
  fi
} >"$folder/comment.md"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$folder/comment.md" >>"$GITHUB_STEP_SUMMARY"
[ -z "${GITHUB_OUTPUT:-}" ] || printf 'code=%s\n' "$code" >>"$GITHUB_OUTPUT"
cat "$folder/comment.md"

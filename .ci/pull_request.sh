#!/usr/bin/env bash
# The report of a pull request. `pull_request.sh report NAME` writes page, JSON, picture and comment.md to the folder NAME, and
# the exit status of the gates to $GITHUB_OUTPUT. The environment has PREDICTIONS, and optionally BASELINE, OPTIONS and GATES (one
# per line). `pull_request.sh comment NAME` writes the comment to the pull request NUMBER, or edits the one of an earlier run.
set -euo pipefail

folder=$2
# GitHub does not show it. It tells our comments from others of the same author, and several reports from each other.
marker="<!-- trueodds: ${folder##*/} -->"

if [ "$1" = comment ]; then
  comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
  # Tokens of workflows and apps may not ask REST who they are, but GraphQL.
  author=$(gh api graphql --field query='{viewer{login}}' --jq .data.viewer.login)
  found=$(gh api --paginate "$comments" --jq '.[] | {id, author: .user.login, body}')
  id=$(MARKER=$marker AUTHOR=$author python -c '
import json, os, sys
comments = map(json.loads, filter(str.strip, sys.stdin.buffer.read().decode("utf-8").split("\n")))
by_us = lambda comment: comment["author"].removesuffix("[bot]") == os.environ["AUTHOR"].removesuffix("[bot]")
print(next((c["id"] for c in comments if by_us(c) and os.environ["MARKER"] in c["body"]), ""))' <<<"$found")
  if [ -n "$id" ]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field "body=@$folder/comment.md"
  else
    gh api --silent --method POST "$comments" --field "body=@$folder/comment.md"
  fi
  exit
fi

mkdir -p "$folder"
# Quoted as on a command line, but nothing is expanded or run.
words=$(python -c 'import os, shlex; print(*shlex.split(os.environ.get("OPTIONS", "")), sep="\n")') || exit 2
# An empty array is unset in bash 3.2, the one of macOS: "${options[@]}" alone would end the script.
options=()
while IFS= read -r word; do
  [ -z "$word" ] || options+=("$word")
done <<<"$words"
gates=()
while IFS= read -r gate; do
  [ -z "$gate" ] || gates+=(--fail-on "$gate")
done <<<"${GATES:-}"

if [ -n "${BASELINE:-}" ]; then
  command=(trueodds compare "$PREDICTIONS" "$BASELINE" ${options[@]+"${options[@]}"})
else
  command=(trueodds audit "$PREDICTIONS" --brief ${options[@]+"${options[@]}"})
fi
code=0
"${command[@]}" --html "$folder/report.html" --json "$folder/report.json" ${gates[@]+"${gates[@]}"} >"$folder/report.txt" 2>"$folder/messages.txt" || code=$?

# GitHub shows no pictures of a private run in a comment, so the reliability diagram is drawn by Mermaid, too.
draw=(trueodds draw "$PREDICTIONS" --diagram reliability --set bins=10)
if [ "$code" -ne 2 ] && [ -z "${BASELINE:-}" ] && "${draw[@]}" ${options[@]+"${options[@]}"} --out "$folder/reliability.png" >&2 &&
  "${draw[@]}" ${options[@]+"${options[@]}"} --out "$folder/reliability.csv" >&2; then
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
    printf '\nPage and picture: artifact `%s` of [this run](%s).\n' "${folder##*/}" \
      "${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_REPOSITORY:-}/actions/runs/$GITHUB_RUN_ID"
  fi
  printf '\n%s\n' "$marker"
} >"$folder/comment.md"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$folder/comment.md" >>"$GITHUB_STEP_SUMMARY"
[ -z "${GITHUB_OUTPUT:-}" ] || printf 'code=%s\n' "$code" >>"$GITHUB_OUTPUT"
cat "$folder/comment.md"

#!/usr/bin/env bash
# Put a built site into the folder of its version on the branch gh-pages: publish_docs.sh VERSION SITE ADDRESS
# Another run may publish at the same time: then the push is refused, and this one starts again from the new branch.
set -euo pipefail

version=${1:?version, such as 1.2.0 or dev}
site=$(realpath "${2:?folder of the built site}")
address=${3:?address of the published site}
versions=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../docs/_ext/trueodds_docs/versions.py")
pages=$(mktemp -d)/pages

for attempt in 1 2 3 4 5; do
  if git fetch --quiet origin gh-pages; then
    git worktree add --quiet --force --detach "$pages" FETCH_HEAD
  else
    git worktree add --quiet --force --detach --no-checkout "$pages" HEAD
    git -C "$pages" checkout --quiet --orphan gh-pages
    git -C "$pages" rm --quiet -rf .
  fi
  rm -rf "${pages:?}/$version"
  cp -R "$site" "$pages/$version"
  python3 "$versions" "$pages" "$address"
  git -C "$pages" add --all
  if git -C "$pages" diff --cached --quiet; then
    echo "The documentation of $version is already published."
    exit
  fi
  git -C "$pages" commit --quiet --message "Publish the documentation of $version"
  if git -C "$pages" push --quiet origin HEAD:gh-pages; then
    exit
  fi
  git worktree remove --force "$pages"
  git branch --quiet --delete --force gh-pages 2>/dev/null || true
  sleep $((attempt * ${RETRY_SECONDS:-5}))
done
echo "The branch gh-pages could not be pushed." >&2
exit 1

#!/usr/bin/env bash
# Known vulnerabilities and licences of all dependencies. What could not be checked is printed, and fails nothing.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
failed=0 unchecked=()

if [ ! -x build/audit/bin/pip-audit ]; then
  "$python" -m venv build/audit
  build/audit/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt || exit 1
fi
for lock in runtime network lab dev; do
  echo "pip-audit requirements/$lock.txt"
  output=$(build/audit/bin/pip-audit --disable-pip --require-hashes --progress-spinner off -r "requirements/$lock.txt" 2>&1)
  code=$?
  if [ $code -ne 0 ] && ! grep -q "known vulnerabilit" <<<"$output"; then
    unchecked+=("vulnerabilities of requirements/$lock.txt: no advisory service answered")
  else
    skipped=$(grep -c "could not be audited" <<<"$output")
    hidden="could not be audited\|^Name \|^---"
    [ "$skipped" -eq 0 ] || hidden="$hidden\|^No known vulnerabilities"  # that would claim too much
    grep -v "$hidden" <<<"$output"
    [ "$skipped" -eq 0 ] || unchecked+=("$skipped packages of requirements/$lock.txt: the package index gives no advisories for them")
    [ $code -eq 0 ] || failed=1
  fi
done

if [ ! -x build/tools/bin/cargo-deny ]; then
  cargo install --quiet --locked --root build/tools cargo-deny@0.20.2 || exit 1
fi
export PATH="$PWD/build/tools/bin:$PATH"
echo "cargo deny check bans licenses sources"
cargo deny --offline check bans licenses sources || failed=1
echo "cargo deny check advisories"
output=$(cargo deny check advisories 2>&1)
code=$?
if [ $code -ne 0 ] && grep -qE "failed to (fetch|load|clone)|unable to|advisory database" <<<"$output" && ! grep -q "RUSTSEC" <<<"$output"; then
  unchecked+=("advisories of Rust crates: the advisory database cannot be fetched from here")
else
  echo "$output"
  [ $code -eq 0 ] || failed=1
fi

for what in "${unchecked[@]}"; do echo "NOT CHECKED: $what"; done
exit $failed

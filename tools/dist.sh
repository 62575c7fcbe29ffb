#!/usr/bin/env bash
# Build wheel and sdist, check both in clean environments, write SBOMs and SHA256SUMS into dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3} bin=${BIN:-$PWD/.venv/bin}
rm -rf dist build/dist
mkdir -p dist build/dist
root=$PWD
export PATH="$bin:$PATH"
# Run a command and show its output only if it fails.
logged() { "$@" >"$root/build/dist/log" 2>&1 || { cat "$root/build/dist/log" >&2; return 1; }; }

echo "building the sdist and the wheel"
logged "$bin/maturin" sdist --out dist
logged "$bin/maturin" build --release --locked --strip --out dist

echo "checking the wheel in an environment with the locked runtime alone"
"$python" -m venv build/dist/wheel
build/dist/wheel/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt
build/dist/wheel/bin/pip install --quiet --disable-pip-version-check --no-deps --no-index dist/*.whl
"$bin/sluice" data make line --days 8 --out build/dist/plant.csv --quiet >/dev/null
(
  cd build/dist
  wheel/bin/sluice --version
  wheel/bin/sluice mine plant.csv --fit 0.4 --calibrate 0.4 --out rules.json --quiet >/dev/null
  wheel/bin/sluice check plant.csv --rows 9300:10300 --rules rules.json --prove proven --quiet
  wheel/bin/sluice attest verify proven/proof.json --keys proven/keys --commit proven/commit.json
  if wheel/bin/python -c 'import numba' 2>/dev/null; then echo "the runtime brings the lab's packages" >&2; exit 1; fi
  { wheel/bin/sluice demo --fast 2>&1 || true; } | grep -q "sluice-fl\[lab\]"
)

echo "checking that the sdist builds the same modules"
mkdir build/dist/sdist
tar -xzf dist/sluice_fl-*.tar.gz -C build/dist/sdist --strip-components 1
(cd build/dist/sdist && CARGO_TARGET_DIR="$root/target" logged "$bin/maturin" build --release --locked --strip --out ../from-sdist)
names() { "$python" -m zipfile -l "$1" | awk '{print $1}' | grep '^sluice/' | sort; }
diff <(names dist/*.whl) <(names build/dist/from-sdist/*.whl)

echo "writing the bills of material (CycloneDX)"
"$python" -m venv build/dist/release
build/dist/release/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
build/dist/release/bin/cyclonedx-py environment --output-reproducible --of JSON -o dist/sbom-python.cdx.json build/dist/wheel/bin/python
if [ ! -x build/tools/bin/cargo-cyclonedx ]; then
  cargo install --quiet --locked --root build/tools cargo-cyclonedx@0.5.9
fi
PATH="$PWD/build/tools/bin:$PATH" cargo cyclonedx --quiet --format json --override-filename sbom-rust.cdx --manifest-path rust/attest-py/Cargo.toml
mv rust/attest-py/sbom-rust.cdx.json dist/
find rust -name 'sbom-rust.cdx.json' -delete

(cd dist && sha256sum -- * > SHA256SUMS)
cat dist/SHA256SUMS

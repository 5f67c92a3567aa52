#!/usr/bin/env bash
# `make binder-check`: build Binder's environment as repo2docker does, from what is committed, and run the quickstart in it.
# Takes minutes and a gigabyte of disk. Node is kept out of sight, as Binder's image has none.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${PYTHON:-python3}"
wanted="$(sed 's/^python-//' "$root/binder/runtime.txt")"
has="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
[ "$wanted" = "$has" ] || echo "binder/runtime.txt asks for Python $wanted; checking with $has"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/repo"
git -C "$root" archive HEAD | tar -x -C "$work/repo"
"$python" -m venv "$work/env"
# Where pip's settings are, and the system's tools without Node.
mkdir "$work/bin"
for tool in bash cat env git gzip ls mkdir rm sed sh tar uname; do
  found="$(command -v "$tool" || true)"; [ -z "$found" ] || ln -s "$found" "$work/bin/$tool"
done
export PATH="$work/env/bin:$work/bin" HOME="$work/home" JUPYTER_DATA_DIR="$work/jupyter"
mkdir -p "$HOME"
cd "$work/repo"
pip install --quiet --disable-pip-version-check --no-cache-dir -r binder/requirements.txt
./binder/postBuild
python -m jupyterlab --version
python examples/run_demo.py --into "$work/demo"
echo "Binder's environment: OK"

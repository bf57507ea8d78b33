#!/usr/bin/env bash
# Installs what the Makefile's targets need and this machine lacks; does nothing on repeat.
#   rust      nothing: says when there is no Rust, or an older one than is needed
#   browser   a Chromium, from Debian's packages, when there is none and we may (apt-get, and root or sudo without a password)
#   browsers  both kinds that the tests drive: the full Chromium and chromium-headless-shell
#   display   Xvfb, from Debian's packages, for tests of a visible browser
#   tools     cargo-nextest and cargo-deny
#   clients   the real MCP clients and the conformance suite, into target/clients
#   docs      documentation pages of several makers, from Debian's packages, into target/docs
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:/opt/cargo-tools/bin:$PATH"

say() { printf 'setup: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }
# Root, or whom sudo lets in without a password: nobody is asked for one in the middle of a build.
sudo=
[ "$(id -u)" = 0 ] || sudo="sudo -n"
may_apt() { has apt-get && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }

apt_install() {
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2 ||
    { $sudo apt-get update >&2 && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >&2; }
}

# Said before anything is installed; an older cargo cannot even read Cargo.toml.
rust() {
  local wanted has_version
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  has cargo || { say "Rust is missing: install $wanted or newer from https://rustup.rs"; exit 1; }
  has_version=$(cargo --version | cut -d' ' -f2)
  [ "$(printf '%s\n' "$wanted" "$has_version" | sort -V | head -1)" = "$wanted" ] ||
    { say "this is Rust $has_version, and $wanted or newer is needed: install it from https://rustup.rs"; exit 1; }
}

browser() {
  if [ -n "${TABMUX_BROWSER:-}" ] || has chromium || has chromium-headless-shell || has google-chrome || has chromium-browser || has microsoft-edge; then return; fi
  if may_apt; then
    say "no browser here: installing Debian's chromium and chromium-headless-shell"
    apt_install chromium chromium-headless-shell || say "the packages could not be installed; tabmux says what it found"
  else
    say "no browser here, and only root may install one: sudo apt-get install chromium chromium-headless-shell (or name one: TABMUX_BROWSER=/path make run)"
  fi
}

browsers() {
  if has chromium && has chromium-headless-shell; then return; fi
  if may_apt; then apt_install chromium chromium-headless-shell; else say "the tests need both: sudo apt-get install chromium chromium-headless-shell"; exit 1; fi
}

display() {
  if has Xvfb; then return; fi
  if may_apt; then apt_install xvfb; else say "Xvfb is missing: sudo apt-get install xvfb"; exit 1; fi
}

tools() {
  has cargo-nextest || { say "installing cargo-nextest"; cargo install --locked cargo-nextest; }
  has cargo-deny || { say "installing cargo-deny"; cargo install --locked cargo-deny; }
}

# The suite and the inspector want Node 22.19 or newer; Debian has an older one, so npm brings it.
modern_node() {
  local system
  system=$(command -v node || true)
  if [ -n "$system" ] && "$system" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 19) ? 0 : 1)'; then
    ln -sf "$system" "$1/node"
    return
  fi
  local arch=x64
  [ "$(uname -m)" = aarch64 ] && arch=arm64
  npm install --prefix "$1/runtime" --no-audit --no-fund --silent "node-linux-$arch@22.23.3"
  ln -sf "$PWD/$1/runtime/node_modules/node-linux-$arch/bin/node" "$1/node"
}

clients() {
  local home=target/clients wanted
  wanted=$(cat scripts/setup.sh tests/clients/package.json tests/clients/requirements.txt | sha256sum | cut -d' ' -f1)
  if [ "$(cat "$home/stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  has npm || { say "npm is missing: install Node 20 or newer"; exit 1; }
  has python3 || { may_apt && apt_install python3; }
  say "installing the MCP clients and the conformance suite into $home"
  rm -rf "$home" && mkdir -p "$home"
  modern_node "$home"
  cp tests/clients/package.json "$home/package.json"
  npm install --prefix "$home" --no-audit --no-fund --silent
  if ! python3 -m venv "$home/python" 2>/dev/null; then
    say "python3 has no venv: installing Debian's python3-venv"
    may_apt || { say "only root may: sudo apt-get install python3-venv"; exit 1; }
    apt_install python3-venv
    rm -rf "$home/python" && python3 -m venv "$home/python"
  fi
  "$home/python/bin/pip" install --quiet --disable-pip-version-check -r tests/clients/requirements.txt
  printf '%s\n' "$wanted" > "$home/stamp"
}

# Sphinx, DocBook, gtk-doc, exim's own and written by hand. Only unpacked: many images leave /usr/share/doc out when they install.
docs() {
  local home=target/docs packages="python-attr-doc docbook-xsl-doc-html libcairo2-doc exim4-doc-html libogg-dev" package
  if [ "$(cat "$home/stamp" 2>/dev/null)" = "$packages" ]; then return; fi
  has apt-get && has dpkg-deb || { say "the documentation pages come from Debian's packages: apt-get and dpkg-deb are missing"; exit 1; }
  say "unpacking documentation pages into $home"
  rm -rf "$home" && mkdir -p "$home/packages"
  # shellcheck disable=SC2086
  (cd "$home/packages" && { apt-get download $packages >&2 || { apt-get update >&2 && apt-get download $packages >&2; }; }) ||
    { say "they could not be downloaded; try: sudo apt-get update, then scripts/setup.sh docs"; exit 1; }
  for package in "$home"/packages/*.deb; do dpkg-deb -x "$package" "$home"; done
  rm -rf "$home/packages"
  printf '%s\n' "$packages" > "$home/stamp"
}

for part in "$@"; do
  case "$part" in
    rust | browser | browsers | display | tools | clients | docs) "$part" ;;
    *) say "what is '$part'? One of: rust, browser, browsers, display, tools, clients, docs"; exit 2 ;;
  esac
done

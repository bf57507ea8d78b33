# The two commands of the README. Nothing here but calls: cargo, xtask and one small set-up script.
SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:/opt/cargo-tools/bin:$(PATH)

.PHONY: run test docs bench

run:
	scripts/setup.sh rust browser
	cargo build --release --locked --package tabmux
	./target/release/tabmux up

test:
	scripts/setup.sh rust browsers display tools clients docs
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask deny
	cargo xtask tidy
	cargo nextest run --workspace --locked --profile ci

docs:
	cargo xtask docs

bench:
	cargo xtask bench

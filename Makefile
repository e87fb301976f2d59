# The two commands of a contributor are `make demo` and `make test`; they need cargo and nothing else.

.PHONY: demo test lint loom bench

# An embedded chat service's traffic beside what people do today, then three kills.
demo:
	cargo run --release --quiet -p flatwater-demo

# Every test.
test:
	cargo test --workspace
	$(MAKE) loom
	$(MAKE) test-default-build

# Without the build flags of this workspace: what a program that depends on the plain crate gets.
.PHONY: test-default-build
test-default-build:
	LIBSQLITE3_FLAGS= CARGO_TARGET_DIR=target/default-build cargo test -p flatwater --test it

# Every interleaving of the queue with its token, and of the reply.
loom:
	RUSTFLAGS="--cfg flatwater_loom" CARGO_TARGET_DIR=target/loom cargo test -p flatwater --lib --release model

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# The engine's figures beside raw rusqlite, as JSON.
bench:
	cargo run --release --quiet -p flatwater-lab

# What people install. Each target says what it made; CONTRIBUTING.md says what each needs.

.PHONY: dist dist-arm64 lean wheel deb image

# A static program for x86-64 with manual pages, completions and licences, and checksums.
dist:
	packaging/dist.sh x86_64-unknown-linux-musl

# The same for 64-bit ARM, cross-compiled.
dist-arm64:
	packaging/dist.sh aarch64-unknown-linux-musl

# Transfers and S3 alone.
lean:
	packaging/dist.sh x86_64-unknown-linux-musl lean

# A wheel of the static program.
wheel:
	packaging/wheel.sh

# A Debian package of the static program.
deb: dist
	packaging/deb.sh

# A container image of the static program.
image: dist
	docker build -t hakobu -f packaging/Dockerfile target/package/x86_64

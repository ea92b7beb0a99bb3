#!/bin/bash
# Rust's linker where the C library is instrumented: $RUST_TEST_CC with $RUST_TEST_SANITIZE, and without the option that would make
# it leave the sanitizers' own libraries out.
arguments=()
for argument; do
    [ "$argument" = -nodefaultlibs ] || arguments+=("$argument")
done
exec "$RUST_TEST_CC" "-fsanitize=$RUST_TEST_SANITIZE" "${arguments[@]}"

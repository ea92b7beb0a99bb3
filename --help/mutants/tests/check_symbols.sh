#!/bin/sh
# The names the library gives away. The shared library exports ol_… and nothing else. And the objects of two SIMD levels share no
# global or weak definition: were one kept by the linker for both, a machine without its instructions would die of SIGILL. Nor do
# they call functions of the C library.
#
#   check_symbols.sh NM LIBRARY.so HEADER_FOLDER LEVEL_OBJECT…
set -eu
nm=$1 library=$2 headers=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

"$nm" -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$work/exported"
[ "$(wc -l <"$work/exported")" -gt 50 ] || { echo "check_symbols: $library exports next to nothing" >&2; exit 1; }
if grep -v '^ol_' "$work/exported"; then
    echo "check_symbols: the names above are exported and do not start with ol_" >&2
    failed=1
fi

# What the headers declare is what is exported: their OL_API functions, and those their lists of primitives make.
{
    sed -n 's/^OL_API.*[ *]\(ol_[a-z0-9_]*\)(.*$/\1/p' "$headers"/*.h
    grep -oh 'OL_\(UNARY\|BINARY\)([a-z0-9_]*)' "$headers"/*.h | sed 's/.*(\(.*\))/ol_\1/' | grep -v '^ol_name$'
} | sort -u >"$work/declared"
if ! diff "$work/declared" "$work/exported"; then
    echo "check_symbols: declared (<) and exported (>) differ" >&2
    failed=1
fi

n_objects=0
: >"$work/defined"
for object; do
    n_objects=$((n_objects + 1))
    # Upper case: global; w, v: weak. u (unique) would be one for all. Undefined names are not definitions.
    "$nm" --defined-only "$object" | awk -v object="$object" '$2 ~ /^[A-Zuvw]$/ { print $3 }' | sort -u >"$work/object"
    [ -s "$work/object" ] || { echo "check_symbols: $object defines nothing" >&2; exit 1; }
    grep -q '^kernels_' "$work/object" || { echo "check_symbols: $object has no table of kernels" >&2; failed=1; }
    cat "$work/object" >>"$work/defined"
    # No result may depend on the C library's version: kernels call its memory functions and nothing else (and what sanitizers add, and
    # the library's own table16_run, which calls them back).
    "$nm" --undefined-only "$object" | awk '{ print $NF }' | grep -vE '^(mem(cpy|move|set|cmp)|table16_run|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_)$|^__(a|t|ub)san_' >"$work/called" || true
    if [ -s "$work/called" ]; then
        cat "$work/called"
        echo "check_symbols: $object calls the functions above" >&2
        failed=1
    fi
done
[ "$n_objects" -ge 1 ] || { echo "check_symbols: no objects were given" >&2; exit 1; }
sort "$work/defined" | uniq -d >"$work/shared"
if [ -s "$work/shared" ]; then
    cat "$work/shared"
    echo "check_symbols: the names above are defined by the objects of more than one level" >&2
    failed=1
fi
echo "check_symbols: $(wc -l <"$work/exported") names exported, $n_objects levels, $(wc -l <"$work/defined") global definitions in them"
exit $failed

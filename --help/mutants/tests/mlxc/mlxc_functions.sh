#!/bin/sh
# The library exports the functions of the list and nothing else, its headers declare just these, and a client of a function that it
# lacks fails when it is linked, by that function's name.
#
#   mlxc_functions.sh NM C_COMPILER LIBRARY.so HEADERS_FOLDER FUNCTIONS.txt
set -eu
export LC_ALL=C
nm=$1 cc=$2 library=$3 headers=$4 list=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

grep -v '^#' "$list" | sort -u >"$work/listed"
"$nm" -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$work/exported"
if ! diff "$work/listed" "$work/exported"; then
    echo "mlxc_functions: listed (<) and exported (>) differ" >&2
    failed=1
fi

printf '#include "mlx/c/mlx.h"\n' | "$cc" -E -P -I"$headers" - | tr '\n' ' ' | grep -o '[a-z_]*mlx_[a-z0-9_]* *(' | tr -d ' (' |
    grep -v '^mlx_error_handler_func$' | sort -u >"$work/declared"
if ! diff "$work/listed" "$work/declared"; then
    echo "mlxc_functions: listed (<) and declared (>) differ" >&2
    failed=1
fi

cat >"$work/matmul.c" <<'TEXT'
#include "mlx/c/mlx.h"
int mlx_matmul(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
int main(void)
{
    mlx_array none = { 0 };
    mlx_stream s = { 0 };
    return mlx_matmul(&none, none, none, s);
}
TEXT
folder=$(dirname "$library")
if "$cc" -I"$headers" -o "$work/matmul" "$work/matmul.c" -L"$folder" -lonelaunch_mlxc -Wl,-rpath-link,"$folder" 2>"$work/errors"; then
    echo "mlxc_functions: a client of mlx_matmul was linked" >&2
    failed=1
elif ! grep -q 'mlx_matmul' "$work/errors"; then
    cat "$work/errors" >&2
    echo "mlxc_functions: the linker does not name mlx_matmul" >&2
    failed=1
fi
echo "mlxc_functions: $(wc -l <"$work/exported") functions"
exit $failed

#!/usr/bin/env python3
"""Holds bindings/rust/onelaunch-sys to include/onelaunch.h, in both directions.

Each Rust declaration is written again in C, as a static assertion that the C compiler checks against the header: the type of
every function, of every struct's fields, of callbacks and aliases; the value of every constant; size, alignment and offsets as
the crate's tests/layout.rs has them for Rust's compiler. And whatever the header declares must have been declared.

    check_bindings.py [--planted] ROOT_OF_THE_SOURCES C_COMPILER

--planted: plants one fault after the other into a copy of the Rust declarations, each of which must be found."""
import pathlib
import re
import subprocess
import sys

SCALARS = {
    "c_char": "char", "c_int": "int", "c_uint": "unsigned int", "c_void": "void", "usize": "size_t", "f64": "double",
    **{f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)},
}


class Mismatch(Exception):
    pass


def split(text):
    """Parts between the commas that lie in no brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "([<" or -(c in ")]" or (c == ">" and text[i - 1] != "-"))
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]] if part.strip()]


def c_function(rust, declarator):
    """`(a: T, b: U) -> R` as a C function type around a declarator."""
    matched = re.fullmatch(r"\((.*)\)(?:\s*->\s*(.+))?", rust.strip(), re.S)
    parameters = [c_type(p.partition(":")[2].strip(), "") for p in split(matched[1])]
    return c_type(matched[2].strip() if matched[2] else "c_void", f"{declarator}({', '.join(parameters) or 'void'})")


def c_type(rust, declarator):
    """A Rust type as a C declaration of `declarator`."""
    rust = rust.strip()
    if rust.startswith("*mut "):
        return c_type(rust[5:], f"*{declarator}")
    if rust.startswith("*const "):
        target = rust[7:]
        if target.startswith("*"):
            return c_type(target, f"*const {declarator}")
        return "const " + c_type(target, f"*{declarator}")
    if array := re.fullmatch(r"\[(.+); (\d+)\]", rust):
        return c_type(array[1], f"{declarator}[{array[2]}]")
    if callback := re.fullmatch(r"Option<unsafe extern \"C\" fn(\(.*\).*)>", rust, re.S):
        return c_function(callback[1], f"(*{declarator})")
    if rust in SCALARS or rust.startswith("ol_"):
        return f"{SCALARS.get(rust, rust)} {declarator}".rstrip()
    raise Mismatch(f"no C type is known for {rust!r}")


def same(name, a, b):
    return f'_Static_assert(__builtin_types_compatible_p({a}, {b}), "{name} has another type");'


def assertions(source, layout):
    """The C text, and the names that the Rust source declares."""
    source = re.sub(r"//.*", "", source)
    names, lines = set(), ["#include <onelaunch.h>"]
    for name, type_, value in re.findall(r"pub const (\w+): (\w+) = (-?\d+);", source):
        names.add(name)
        lines.append(f'_Static_assert({name} == {value}, "{name} has another value");')
        if type_.startswith("ol_"):                       # an enum's: by name, so that it is of the right one
            lines.append(f'_Static_assert(({type_}){name} == {name}, "{name}");')
    for name, rust in re.findall(r"pub type (\w+) =\s*(.+?);\n", source, re.S):
        names.add(name)
        # Where the alias is an enum, its underlying type.
        lines.append(same(name, name, c_type(rust, "")))
    structs = re.findall(r"#\[repr\(C\)\]\n(?:#\[derive[^\n]*\n)?pub struct (\w+) \{\n(.*?)\n\}", source, re.S)
    if len(structs) != source.count("pub struct "):
        raise Mismatch("a struct is not repr(C), or not in the plain form")
    for name, body in structs:
        names.add(name)
        fields = re.findall(r"pub (\w+): (.+),$", body, re.M)
        if not fields:
            lines.append(f"extern {name} *opaque_{name};")
            continue
        matched = re.search(rf"layout!\({name}, (\d+), (\d+), \{{ (.*?) \}}\);", layout)
        if not matched:
            raise Mismatch(f"tests/layout.rs has no line for {name}")
        lines.append(f'_Static_assert(sizeof({name}) == {matched[1]}, "{name} has another size");')
        lines.append(f'_Static_assert(_Alignof({name}) == {matched[2]}, "{name} has another alignment");')
        words = matched[3].split()
        offsets = dict(zip(words[::2], words[1::2]))
        if list(offsets) != [field for field, _ in fields]:
            raise Mismatch(f"tests/layout.rs has other fields of {name}")
        for field, rust in fields:
            type_ = c_type(rust, "")
            if rust.startswith("["):                      # of a member: the array itself
                type_ = f"__typeof__({c_type(rust, '')})"
            lines.append(same(f"{name}.{field}", f"__typeof__((({name} *)0)->{field})", type_))
            lines.append(f'_Static_assert(offsetof({name}, {field}) == {offsets[field]}, "{name}.{field} lies elsewhere");')
        lines.append(f"/* {name} has {len(fields)} fields */")
    functions = re.findall(r"pub fn (ol_\w+)(\(.*?\)(?: -> [^;]+)?);", source, re.S)
    shapes = {kind: re.search(rf"macro_rules! {kind} .*?pub fn \$name(.*?);", source, re.S) for kind in ("unary", "binary")}
    for kind, shape in shapes.items():
        functions += [(name, shape[1]) for name in re.search(rf"^{kind}! \{{(.*?)\}}", source, re.S | re.M)[1].split()]
    for name, rust in functions:
        if name in names:
            raise Mismatch(f"{name} is declared twice")
        names.add(name)
        lines.append(same(name, f"__typeof__(&{name})", c_function(rust, "(*)")))
    return lines, names


def compiles(compiler, root, text):
    return subprocess.run([compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{root}/include", "-x", "c", "-"],
                          input=text, text=True, capture_output=True)


def preprocess(root, compiler, *options):
    return subprocess.run([compiler, "-E", *options, f"{root}/include/onelaunch.h"], check=True, text=True, capture_output=True).stdout


def declared(root, compiler):
    """Every name that the header gives away."""
    text, macros = preprocess(root, compiler, "-P"), preprocess(root, compiler, "-dM")
    names = set(re.findall(r"\b(?:ol|OL)_\w+", text)) - set(re.findall(r"\b(?:struct|enum) (ol_\w+)", text))
    names |= set(re.findall(r"typedef (?:struct|enum) (ol_\w+)", text))
    names |= set(re.findall(r"^#define (OL_\w+) -?\d+$", macros, re.M))
    return {name for name in names if not name.endswith("_")}


def check(root, compiler, source, layout):
    lines, names = assertions(source, layout)
    text = "\n".join(lines)
    result = compiles(compiler, root, text)
    if result.returncode != 0:
        raise Mismatch("\n".join(line for line in result.stderr.splitlines() if "error" in line) or result.stderr)
    header_text = preprocess(root, compiler, "-P")
    for name, n in re.findall(r"/\* (\w+) has (\d+) fields \*/", text):
        if re.search(rf"struct {name} \{{(.*?)\}}", header_text, re.S)[1].count(";") != int(n):
            raise Mismatch(f"{name} has another number of fields than {n}")
    header = declared(root, compiler)
    if header != names:
        raise Mismatch("\n".join([f"{name} is in the header only" for name in sorted(header - names)] +
                                 [f"{name} is in Rust only" for name in sorted(names - header)]))
    return names


# What is planted, and a word that the report must have.
PLANTED = [
    (r"    pub fn ol_composite_destroy\(.*?;\n", "", "ol_composite_destroy is in the header only"),
    (r"\bol_erfinv\b", "", "ol_erfinv is in the header only"),
    (r"pub fn ol_promote\(x: ol_dtype, y: ol_dtype\)", "pub fn ol_promote(x: ol_dtype, y: i32)", "ol_promote has another type"),
    (r"(pub fn ol_device_launches\(.*?\)) -> u64", r"\1 -> u32", "ol_device_launches has another type"),
    (r"(pub fn ol_replay\(composite: \*)const", r"\1mut", "ol_replay has another type"),
    (r"(pub fn ol_device_cuda\(.*?), error: \*mut ol_error", r"\1", "ol_device_cuda has another type"),
    (r"(pub fn ol_graph_fail\(.*?\));", r"\1 -> c_int;", "ol_graph_fail has another type"),
    (r"binary! \{\n    ol_add", "binary! {\n    ol_exp ol_add", "ol_exp is declared twice"),
    (r" ol_erf ", " ", "ol_erf is in the header only"),
    (r" ol_hypot ", " ol_hypot2 ", "ol_hypot2"),
    (r"OL_BFLOAT16: ol_dtype = 10", "OL_BFLOAT16: ol_dtype = 9", "OL_BFLOAT16 has another value"),
    (r"pub const OL_TEXT_DOT: .*?\n", "", "OL_TEXT_DOT is in the header only"),
    (r"OL_MAX_NODES: c_int = 262144", "OL_MAX_NODES: c_int = 262145", "OL_MAX_NODES has another value"),
    (r"pub const OL_MAX_RANK: .*?\n", "", "OL_MAX_RANK is in the header only"),
    (r"pub type ol_status = c_uint", "pub type ol_status = c_int", "ol_status has another type"),
    (r"pub type ol_stream = \*mut", "pub type ol_stream = *const", "ol_stream has another type"),
    (r"(pub type ol_task = .*?)index: usize", r"\1index: u32", "ol_task has another type"),
    (r"    pub dtype: ol_dtype,\n    /// .*\n    pub rank: i32,", "    pub rank: i32,\n    pub dtype: ol_dtype,", "other fields of ol_tensor"),
    (r"pub shape: \[i64; 8\]", "pub shape: [i64; 9]", "ol_tensor.shape has another type"),
    (r"pub shape: \[i64; 8\]", "pub shape: [u64; 8]", "ol_tensor.shape has another type"),
    (r"    pub name: \*const c_char,\n", "    pub name: *mut c_char,\n", "ol_builder.name has another type"),
    (r"#\[repr\(C\)\]\n#\[derive\(Clone, Copy\)\]\npub struct ol_tensor", "pub struct ol_tensor", "not repr(C)"),
    (r"    pub is_sound: c_int,\n", "", "other fields of ol_cache_entry"),
]
# The same in both places, so that only the C compiler's word is against it.
PLANTED_TWICE = [
    (r"    pub is_sound: c_int,\n", "", r" is_sound 56", "", "ol_cache_entry has another number of fields"),
    (r"    pub driver_version: i32,\n", "", r" driver_version 112", "", "ol_cuda_facts has another number of fields"),
    (r"$^", "", r"ol_tensor, 144", "ol_tensor, 152", "ol_tensor has another size"),
    (r"$^", "", r"shape 16", "shape 24", "ol_tensor.shape lies elsewhere"),
]


def plant(root, compiler, source, layout):
    n = 0
    for before, after, before_layout, after_layout, word in [(b, a, None, None, w) for b, a, w in PLANTED] + PLANTED_TWICE:
        changed = re.sub(before, after, source, count=1, flags=re.S if before.endswith("destroy\\(.*?;\\n") else 0)
        changed_layout = re.sub(before_layout, after_layout, layout, count=1) if before_layout else layout
        if (changed, changed_layout) == (source, layout):
            raise Mismatch(f"nothing to plant in: {before}")
        try:
            check(root, compiler, changed, changed_layout)
        except Mismatch as found:
            if word not in str(found):
                raise Mismatch(f"planted {before} -> {after!r}; expected {word!r}, found:\n{found}") from None
            n += 1
            continue
        raise Mismatch(f"planted {before} -> {after!r}, and nothing was found")
    print(f"check_bindings: {n} planted faults found")


def main(arguments):
    planted = "--planted" in arguments
    root, compiler = [argument for argument in arguments if argument != "--planted"]
    crate = pathlib.Path(root, "bindings/rust/onelaunch-sys")
    source, layout = (crate / "src/lib.rs").read_text(), (crate / "tests/layout.rs").read_text()
    try:
        names = check(root, compiler, source, layout)
        if planted:
            plant(root, compiler, source, layout)
        # The safe crate leaves nothing out: each function is called somewhere (tensors are made in Rust).
        safe = "\n".join(path.read_text() for path in sorted((crate.parent / "onelaunch/src").glob("*.rs")))
        types = set(re.findall(r"pub (?:type|struct) (\w+)", source))
        unused = [name for name in sorted(names) if name.startswith("ol_") and name not in types and not re.search(rf"\b{name}\b", safe)]
        if unused != ["ol_tensor_contiguous"]:
            raise Mismatch(f"the crate onelaunch does not call {', '.join(unused)}")
    except Mismatch as mismatch:
        sys.exit(f"check_bindings: {mismatch}")
    print(f"check_bindings: {len(names)} names as in the header")


main(sys.argv[1:])

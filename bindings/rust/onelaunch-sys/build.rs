//! Finds libonelaunch. In this order:
//!
//! 1. `ONELAUNCH_LIB_DIR`: the folder of `libonelaunch.so` or `libonelaunch.a`, or several joined by `:`, of which the further
//!    ones are where the libraries it needs are looked for. What a static library needs is read from the `onelaunch.pc` beside it
//!    or in its `pkgconfig/`.
//! 2. The command `pkg-config` (or `$PKG_CONFIG`).
//!
//! `ONELAUNCH_STATIC=1` asks for the static library, `0` for the shared one; unset, the shared one is taken where there are both.
//! Dependents get the folder as `DEP_ONELAUNCH_LIB_DIR`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

/// What to hand to the linker.
#[derive(Default)]
struct Flags {
    folders: Vec<String>,
    libraries: Vec<String>,
}

fn main() {
    for name in ["ONELAUNCH_LIB_DIR", "ONELAUNCH_STATIC", "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let wants_static = match env::var("ONELAUNCH_STATIC").as_deref() {
        Err(_) | Ok("") => None,
        Ok("0") => Some(false),
        Ok("1") => Some(true),
        Ok(other) => fail(&format!("ONELAUNCH_STATIC is {other:?}; expected 0 or 1")),
    };
    match env::var("ONELAUNCH_LIB_DIR") {
        Ok(folders) if !folders.is_empty() => from_folders(&folders, wants_static),
        _ => from_pkg_config(wants_static),
    }
}

fn fail(message: &str) -> ! {
    eprintln!("onelaunch-sys: {message}");
    exit(1);
}

fn from_folders(list: &str, wants_static: Option<bool>) {
    let folders: Vec<PathBuf> = env::split_paths(list).collect();
    for folder in &folders {
        if !folder.is_absolute() || !folder.is_dir() {
            fail(&format!("ONELAUNCH_LIB_DIR names {}, which is no folder given by an absolute path", folder.display()));
        }
    }
    let shared = folders.iter().find(|f| f.join("libonelaunch.so").exists() || f.join("libonelaunch.dylib").exists());
    let archive = folders.iter().find(|f| f.join("libonelaunch.a").exists());
    let (folder, is_static) = match (wants_static, shared, archive) {
        (Some(true), _, Some(folder)) | (None, None, Some(folder)) => (folder, true),
        (Some(false) | None, Some(folder), _) => (folder, false),
        _ => fail(&format!(
            "there is no {} in ONELAUNCH_LIB_DIR={list}; `./dev build` in onelaunch's sources makes both in build/",
            match wants_static {
                Some(true) => "libonelaunch.a",
                Some(false) => "libonelaunch.so",
                None => "libonelaunch.so and no libonelaunch.a",
            }
        )),
    };
    for folder in &folders {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
    let file = folder.join(if is_static { "libonelaunch.a" } else { "libonelaunch.so" });
    println!("cargo:rerun-if-changed={}", file.display());
    link(folder, is_static, &if is_static { private_libraries(folder) } else { Flags::default() });
}

/// What the archive in `folder` needs: from the package's description where there is one, else what a build by default needs.
fn private_libraries(folder: &Path) -> Flags {
    for file in [folder.join("pkgconfig/onelaunch.pc"), folder.join("onelaunch.pc")] {
        if let Ok(text) = fs::read_to_string(&file) {
            println!("cargo:rerun-if-changed={}", file.display());
            check_version(text.lines().find_map(|line| line.strip_prefix("Version:")).unwrap_or("").trim());
            return parse(text.lines().find_map(|line| line.strip_prefix("Libs.private:")).unwrap_or(""));
        }
    }
    parse("-lpthreadpool -pthread")
}

fn from_pkg_config(wants_static: Option<bool>) {
    let cross = env::var("HOST") != env::var("TARGET");
    if cross && env::var_os("PKG_CONFIG_SYSROOT_DIR").is_none() && env::var_os("PKG_CONFIG").is_none() {
        fail("cross-compiling: set ONELAUNCH_LIB_DIR, or PKG_CONFIG or PKG_CONFIG_SYSROOT_DIR for pkg-config to be asked");
    }
    let is_static = wants_static == Some(true);
    let version = ask_pkg_config(&["--modversion"]);
    check_version(&version);
    // The folder that holds the library, also where it is one that pkg-config would leave out of its flags.
    let folder = PathBuf::from(ask_pkg_config(&["--variable=libdir"]));
    let mut flags = parse(&ask_pkg_config(if is_static { &["--static", "--libs"] } else { &["--libs"] }));
    flags.libraries.retain(|library| library != "onelaunch");
    println!("cargo:rustc-link-search=native={}", folder.display());
    if is_static && !folder.join("libonelaunch.a").exists() {
        fail(&format!("ONELAUNCH_STATIC=1, but there is no libonelaunch.a in {}", folder.display()));
    }
    link(&folder, is_static, &flags);
}

fn ask_pkg_config(arguments: &[&str]) -> String {
    let command = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let hint = "install it (`./dev install PREFIX` in onelaunch's sources; PKG_CONFIG_PATH=PREFIX/lib/pkgconfig), \
                or set ONELAUNCH_LIB_DIR to the folder of libonelaunch.so or libonelaunch.a";
    match Command::new(&command).args(arguments).arg("onelaunch").output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        Ok(output) => fail(&format!("libonelaunch was not found: {hint}\n{}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => fail(&format!("libonelaunch was not found, and {command:?} cannot be run ({error}): {hint}")),
    }
}

/// While the major version is 0, another minor version is another interface.
fn check_version(version: &str) {
    let mine = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let series = |v: &str| v.split('.').take(2).map(str::to_string).collect::<Vec<_>>();
    if !version.is_empty() && series(version) != series(&mine) {
        fail(&format!("libonelaunch is version {version}; this crate, {mine}, is for {}", series(&mine).join(".")));
    }
}

fn parse(flags: &str) -> Flags {
    let mut parsed = Flags::default();
    for flag in flags.split_whitespace() {
        if let Some(folder) = flag.strip_prefix("-L") {
            parsed.folders.push(folder.to_string());
        } else if let Some(library) = flag.strip_prefix("-l") {
            parsed.libraries.push(library.to_string());
        } else if flag == "-pthread" {
            parsed.libraries.push("pthread".to_string());
        }
    }
    parsed
}

fn link(folder: &Path, is_static: bool, flags: &Flags) {
    println!("cargo:rustc-link-lib={}=onelaunch", if is_static { "static" } else { "dylib" });
    for folder in &flags.folders {
        println!("cargo:rustc-link-search=native={folder}");
    }
    for library in &flags.libraries {
        println!("cargo:rustc-link-lib={library}");
    }
    if is_static {
        println!("cargo:rustc-link-lib=dl");
    }
    println!("cargo:lib_dir={}", folder.display());
}

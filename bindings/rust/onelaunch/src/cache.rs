//! The cache of kernels that were compiled for GPUs. It is on disk; `ONELAUNCH_CACHE` says where, or `off`.

use crate::error::{check, sized_text, Result};
use crate::sys;
use std::any::Any;
use std::ffi::{CStr, OsString};
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file of the cache. Texts come from the file, which others may have written: filter control characters before a terminal sees
/// them. They are empty where not known or not sound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its name in the folder.
    pub file: String,
    /// The name of the function.
    pub kernel: String,
    /// "sm_90".
    pub architecture: String,
    /// "0.1.0", of the library that made it; another version does not use it.
    pub library_version: String,
    /// "nvrtc 13.0".
    pub compiler: String,
    /// Of the file.
    pub n_bytes: u64,
    /// When it was used last.
    pub last_used: SystemTime,
    /// Whether it would be used: neither damaged nor unsafe to use.
    pub is_sound: bool,
}

/// What [`clear`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The number of files.
    pub n_files: u64,
    /// Of all of them.
    pub n_bytes: u64,
}

/// Its folder, whether or not it exists; none where the cache is off.
pub fn folder() -> Option<PathBuf> {
    // SAFETY: as many bytes as are said.
    let bytes = sized_text(|buffer, n| unsafe { sys::ol_cache_folder(buffer, n) });
    if bytes.is_empty() {
        None
    } else {
        Some(PathBuf::from(OsString::from_vec(bytes)))
    }
}

struct Visit<F> {
    visit: F,
    panic: Option<Box<dyn Any + Send>>,
}

/// Visits every entry, the most recently used first, until `visit` returns false. A panic in it goes on from here.
pub fn visit(visit: impl FnMut(Entry) -> bool) -> Result<()> {
    let mut state = Visit { visit, panic: None };
    let outcome = start(&mut state);
    if let Some(panic) = state.panic {
        resume_unwind(panic);
    }
    outcome
}

fn start<F: FnMut(Entry) -> bool>(state: &mut Visit<F>) -> Result<()> {
    let user = state as *mut Visit<F> as *mut c_void;
    // SAFETY: the state lives through the call.
    check(|error| unsafe { sys::ol_cache_list(Some(call::<F>), user, error) })
}

unsafe extern "C" fn call<F: FnMut(Entry) -> bool>(user: *mut c_void, entry: *const sys::ol_cache_entry) -> c_int {
    // SAFETY: `user` is the state of `visit`, and the entry lives during the visit.
    let (state, entry) = unsafe { (&mut *(user as *mut Visit<F>), &*entry) };
    let visit = &mut state.visit;
    match catch_unwind(AssertUnwindSafe(|| visit(own(entry)))) {
        Ok(goes_on) => c_int::from(!goes_on),
        Err(panic) => {
            state.panic = Some(panic);
            1
        }
    }
}

fn own(entry: &sys::ol_cache_entry) -> Entry {
    Entry {
        file: text(entry.file),
        kernel: text(entry.kernel),
        architecture: text(entry.architecture),
        library_version: text(entry.library_version),
        compiler: text(entry.compiler),
        n_bytes: entry.n_bytes,
        last_used: time(entry.last_used),
        is_sound: entry.is_sound != 0,
    }
}

fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a string of the entry that is being visited.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn time(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

/// All entries, the most recently used first. A folder that does not exist is an empty cache.
pub fn list() -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    visit(|entry| {
        entries.push(entry);
        true
    })?;
    Ok(entries)
}

/// Removes every entry, damaged ones included, and nothing else.
pub fn clear() -> Result<Removed> {
    let mut removed = Removed::default();
    // SAFETY: places for both numbers.
    check(|error| unsafe { sys::ol_cache_clear(&mut removed.n_files, &mut removed.n_bytes, error) })?;
    Ok(removed)
}

//! Errors: the library's record as a Rust error.

use crate::sys;
use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::raw::c_char;

/// What kind of failure an [`Error`] is. The values of the C library, which are pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// A meaningless argument: count, rank, option.
    Argument,
    /// A dtype is not the one compiled for, or not taken by the primitive.
    DType,
    /// Shapes do not broadcast, an output's shape is not the inferred one, or a view reaches outside of its slice.
    Shape,
    /// An output overlaps another tensor or itself.
    Overlap,
    /// The builder failed, left an output unset, or used an invalid value.
    Builder,
    /// A stated limit was passed.
    Limit,
    /// An allocation failed.
    Memory,
    /// The device, SIMD level or threads cannot be had, or the device reported a failure.
    Device,
    /// Graph text that does not parse; the description starts with line:column.
    Text,
    /// A status that this crate does not know.
    Unknown(u32),
}

const STATUSES: [(Status, sys::ol_status); 9] = [
    (Status::Argument, sys::OL_ERROR_ARGUMENT),
    (Status::DType, sys::OL_ERROR_DTYPE),
    (Status::Shape, sys::OL_ERROR_SHAPE),
    (Status::Overlap, sys::OL_ERROR_OVERLAP),
    (Status::Builder, sys::OL_ERROR_BUILDER),
    (Status::Limit, sys::OL_ERROR_LIMIT),
    (Status::Memory, sys::OL_ERROR_MEMORY),
    (Status::Device, sys::OL_ERROR_DEVICE),
    (Status::Text, sys::OL_ERROR_TEXT),
];

impl Status {
    fn from_raw(raw: sys::ol_status) -> Status {
        STATUSES.iter().find(|(_, r)| *r == raw).map_or(Status::Unknown(raw), |(s, _)| *s)
    }

    /// The C library's value.
    pub fn to_raw(self) -> sys::ol_status {
        match self {
            Status::Unknown(raw) => raw,
            _ => STATUSES.iter().find(|(s, _)| *s == self).map_or(0, |(_, r)| *r),
        }
    }

    /// The C library's name, "OL_ERROR_SHAPE".
    pub fn name(self) -> &'static str {
        // SAFETY: any value is allowed; static storage.
        unsafe { static_text(sys::ol_status_name(self.to_raw())) }.unwrap_or("unknown status")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure: what kind, what was being done, what was given and what was expected. Nothing was written to any output.
///
/// ```
/// use onelaunch::{DType, Device, Status};
///
/// let cpu = Device::cpu().unwrap();
/// let error = cpu.compile("shift", [DType::Float32; 2], |_, [x, n]| [x << n]).unwrap_err();
/// assert_eq!(error.status(), Status::DType);
/// assert_eq!(error.operation(), "left_shift");
/// assert_eq!(error.to_string(), "left_shift: operands of float32; expected integers (OL_ERROR_DTYPE)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    status: Status,
    operation: String,
    description: String,
}

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of your own, as a builder may return one.
    pub fn new(status: Status, operation: impl Into<String>, description: impl Into<String>) -> Error {
        Error { status, operation: operation.into(), description: description.into() }
    }

    /// The kind of failure.
    pub fn status(&self) -> Status {
        self.status
    }

    /// What was being done: "add", "replay rates", "compile".
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// What was given and what was expected.
    pub fn description(&self) -> &str {
        &self.description
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.operation, self.description, self.status)
    }
}

/// As `main` prints it.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}: {}", self.status, self.operation, self.description)
    }
}

impl std::error::Error for Error {}

/// Makes a call that takes an error record, which is read only where it fails.
pub(crate) fn check(call: impl FnOnce(*mut sys::ol_error) -> sys::ol_status) -> Result<()> {
    let mut record = MaybeUninit::<sys::ol_error>::uninit();
    let status = call(record.as_mut_ptr());
    if status == sys::OL_OK {
        return Ok(());
    }
    // SAFETY: a failing call has written the record.
    Err(from_record(status, unsafe { record.assume_init_ref() }))
}

#[cold]
fn from_record(status: sys::ol_status, record: &sys::ol_error) -> Error {
    Error::new(Status::from_raw(status), array_text(&record.operation), array_text(&record.description))
}

/// Text in an array that ends with the first zero, or with the array.
pub(crate) fn array_text(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// # Safety
/// `text` is null or a string that lives and stays as it is for `'a`.
pub(crate) unsafe fn static_text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// The text of a function that writes as snprintf does.
pub(crate) fn sized_text(mut write: impl FnMut(*mut c_char, usize) -> usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let n = write(bytes.as_mut_ptr() as *mut c_char, bytes.len());
        if n < bytes.len() || n == 0 {
            bytes.truncate(n);
            return bytes;
        }
        bytes.resize(n + 1, 0_u8);
    }
}

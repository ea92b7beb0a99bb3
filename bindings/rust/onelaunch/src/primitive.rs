//! Primitives by number, for tools.

use crate::dtype::DType;
use crate::error::static_text;
use crate::sys;
use std::ffi::CString;
use std::fmt;

/// A primitive of the library that is loaded. Numbers may change between versions, names do not.
///
/// ```
/// use onelaunch::{DType, Primitive};
///
/// let exp = Primitive::find("exp").unwrap();
/// assert_eq!((exp.name(), exp.arity()), ("exp", 1));
/// assert_eq!(exp.result(DType::Int32), Some(DType::Float32));
/// assert_eq!(Primitive::find("left_shift").unwrap().result(DType::Float32), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Primitive(i32);

impl Primitive {
    /// Every primitive (`astype` and the broadcasts are not among them).
    pub fn all() -> impl Iterator<Item = Primitive> {
        // SAFETY: takes nothing.
        (0..unsafe { sys::ol_primitive_count() }).map(Primitive)
    }

    /// The primitive of that name.
    pub fn find(name: &str) -> Option<Primitive> {
        let name = CString::new(name).ok()?;
        // SAFETY: a terminated string.
        let number = unsafe { sys::ol_primitive_find(name.as_ptr()) };
        (number >= 0).then_some(Primitive(number))
    }

    /// "exp".
    pub fn name(self) -> &'static str {
        // SAFETY: static storage.
        unsafe { static_text(sys::ol_primitive_name(self.0)) }.unwrap_or("")
    }

    /// How many operands it takes.
    pub fn arity(self) -> usize {
        // SAFETY: any number is allowed.
        unsafe { sys::ol_primitive_arity(self.0) as usize }
    }

    /// The dtype of its result for operands of this dtype; none where it does not take them.
    pub fn result(self, operand: DType) -> Option<DType> {
        let mut result = 0;
        // SAFETY: a place for the result.
        let takes = unsafe { sys::ol_primitive_result(self.0, operand.to_raw(), &mut result) } != 0;
        takes.then(|| DType::given(result))
    }

    /// Its number in this version of the library.
    pub fn to_raw(self) -> i32 {
        self.0
    }
}

impl fmt::Debug for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Primitive({})", self.name())
    }
}

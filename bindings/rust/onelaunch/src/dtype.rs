//! Dtypes, and the Rust types of elements.

use crate::error::{static_text, Error, Result, Status};
use crate::half::{Bf16, F16};
use crate::sys;
use std::ffi::CString;
use std::fmt;
use std::str::FromStr;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool = sys::OL_BOOL,
    UInt8 = sys::OL_UINT8,
    UInt16 = sys::OL_UINT16,
    UInt32 = sys::OL_UINT32,
    UInt64 = sys::OL_UINT64,
    Int8 = sys::OL_INT8,
    Int16 = sys::OL_INT16,
    Int32 = sys::OL_INT32,
    Int64 = sys::OL_INT64,
    /// IEEE 754 binary16: [`F16`].
    Float16 = sys::OL_FLOAT16,
    /// The upper half of a float32: [`Bf16`].
    BFloat16 = sys::OL_BFLOAT16,
    Float32 = sys::OL_FLOAT32,
}

impl DType {
    /// Every dtype, in the order of their numbers.
    pub const ALL: [DType; sys::OL_DTYPE_COUNT as usize] = [
        DType::Bool,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::Float16,
        DType::BFloat16,
        DType::Float32,
    ];

    /// The C library's value.
    pub const fn to_raw(self) -> sys::ol_dtype {
        self as sys::ol_dtype
    }

    /// The dtype of that value; none for a value that is no dtype.
    pub fn from_raw(raw: sys::ol_dtype) -> Option<DType> {
        DType::ALL.get(raw as usize).copied()
    }

    /// What the library gave, which gives dtypes of this list only.
    pub(crate) fn given(raw: sys::ol_dtype) -> DType {
        DType::from_raw(raw).expect("the library gives dtypes that this crate knows")
    }

    /// "float32".
    pub fn name(self) -> &'static str {
        // SAFETY: static storage.
        unsafe { static_text(sys::ol_dtype_name(self.to_raw())) }.unwrap_or("")
    }

    /// Bytes of an element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::UInt8 | DType::Int8 => 1,
            DType::UInt16 | DType::Int16 | DType::Float16 | DType::BFloat16 => 2,
            DType::UInt32 | DType::Int32 | DType::Float32 => 4,
            DType::UInt64 | DType::Int64 => 8,
        }
    }

    /// Whether it is float16, bfloat16 or float32.
    pub fn is_float(self) -> bool {
        matches!(self, DType::Float16 | DType::BFloat16 | DType::Float32)
    }

    /// The dtype two operands of a binary primitive are brought to. Symmetric.
    ///
    /// ```
    /// use onelaunch::DType;
    /// assert_eq!(DType::Float16.promote(DType::BFloat16), DType::Float32);
    /// assert_eq!(DType::UInt8.promote(DType::Int8), DType::Int16);
    /// ```
    pub fn promote(self, other: DType) -> DType {
        // SAFETY: both are dtypes.
        DType::given(unsafe { sys::ol_promote(self.to_raw(), other.to_raw()) })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By the library's names: `"bfloat16".parse::<DType>()`.
impl FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DType> {
        let mut dtype = 0;
        // SAFETY: a terminated string, and a place for the result.
        let found = CString::new(name).map_or(false, |name| unsafe { sys::ol_dtype_parse(name.as_ptr(), &mut dtype) } != 0);
        if found {
            Ok(DType::given(dtype))
        } else {
            Err(Error::new(Status::DType, "dtype", format!("{name:?} was given; expected a dtype's name, as float32")))
        }
    }
}

/// The Rust types that are elements of tensors. `bool` is one: the library writes 0 and 1 only.
///
/// # Safety
/// Not to be implemented outside of this crate: a type has the size and the bits of its dtype.
pub unsafe trait Element: Copy + Send + Sync + fmt::Debug + 'static + sealed::Sealed {
    /// Its dtype.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => { $(
        impl sealed::Sealed for $type {}
        // SAFETY: the same size and bits.
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )* };
}

elements! {
    bool => Bool, u8 => UInt8, u16 => UInt16, u32 => UInt32, u64 => UInt64, i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    F16 => Float16, Bf16 => BFloat16, f32 => Float32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_librarys() {
        for dtype in DType::ALL {
            // SAFETY: any value is allowed.
            assert_eq!(dtype.size(), unsafe { sys::ol_dtype_size(dtype.to_raw()) }, "{dtype}");
        }
        assert_eq!(unsafe { sys::ol_dtype_size(sys::OL_DTYPE_COUNT as sys::ol_dtype) }, 0);
    }
}

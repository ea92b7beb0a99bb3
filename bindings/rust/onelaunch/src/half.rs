//! The 16-bit floats, as wrappers of their bits. For conversions and constants; arithmetic belongs into graphs.
//!
//! Conversions round once, to nearest with ties to even, and give the library's canonical NaN: they have the bits of `astype`.

use std::cmp::Ordering;
use std::fmt;
use std::num::ParseFloatError;
use std::str::FromStr;

/// IEEE 754 binary16: 5 bits of exponent, 10 of fraction.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F16(u16);

/// bfloat16, the upper half of a float32: 8 bits of exponent, 7 of fraction.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Bf16(u16);

/// Rounds a float64 to a format with `fraction` bits and exponents from `1 - bias`; bits without NaN's. Exact steps only: the
/// value is an integer of 53 bits, of which those that do not fit are cut with a look at what is cut.
fn round_bits(value: f64, fraction: u32, bias: i32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 63) as u16) << 15;
    let infinity = ((2 * bias + 1) as u16) << fraction;
    let exponent = ((bits >> 52) & 0x7FF) as i32 - 1023;
    if exponent == 1024 {
        return sign | infinity;
    }
    // A subnormal float64 is far below half of the smallest value of either format.
    if exponent < 1 - bias - fraction as i32 - 1 {
        return sign;
    }
    let significand = (bits & ((1 << 52) - 1)) | 1 << 52;
    let subnormal = (1 - bias - exponent).max(0);
    let cut = 52 - fraction + subnormal as u32;
    let kept = significand >> cut;
    let rest = significand & ((1 << cut) - 1);
    let half = 1 << (cut - 1);
    let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // The leading one of a normal value adds 1 to the exponent; a carry does so again, up to infinity.
    let base = if subnormal > 0 { 0 } else { ((exponent + bias - 1) as u64) << fraction };
    sign | (base + rounded).min(u64::from(infinity)) as u16
}

macro_rules! half {
    ($type:ident, $fraction:literal, $bias:literal, $nan:literal, $infinity:literal, $one:literal, $max:literal, $least:literal) => {
        impl $type {
            /// 0.
            pub const ZERO: $type = $type(0);
            /// 1.
            pub const ONE: $type = $type($one);
            /// Infinity.
            pub const INFINITY: $type = $type($infinity);
            /// Minus infinity.
            pub const NEG_INFINITY: $type = $type($infinity | 0x8000);
            /// The canonical NaN, which every NaN result of the library is.
            pub const NAN: $type = $type($nan);
            /// The largest finite value.
            pub const MAX: $type = $type($max);
            /// The smallest positive normal value.
            pub const MIN_POSITIVE: $type = $type($least);

            /// The value of these bits.
            pub const fn from_bits(bits: u16) -> $type {
                $type(bits)
            }

            /// The bits.
            pub const fn to_bits(self) -> u16 {
                self.0
            }

            /// The nearest value, ties to even; NaN gives the canonical one.
            pub fn from_f32(value: f32) -> $type {
                $type::from_f64(f64::from(value))
            }

            /// The nearest value, ties to even, in one rounding; NaN gives the canonical one.
            pub fn from_f64(value: f64) -> $type {
                if value.is_nan() {
                    return $type::NAN;
                }
                $type(round_bits(value, $fraction, $bias))
            }

            /// Whether it is NaN.
            pub const fn is_nan(self) -> bool {
                self.0 & 0x7FFF > $infinity
            }
        }

        impl From<$type> for f64 {
            fn from(value: $type) -> f64 {
                f64::from(value.to_f32())
            }
        }

        impl From<$type> for f32 {
            fn from(value: $type) -> f32 {
                value.to_f32()
            }
        }

        /// By value, as floats: zeros are equal, NaN is unequal to all.
        impl PartialEq for $type {
            fn eq(&self, other: &$type) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &$type) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl std::ops::Neg for $type {
            type Output = $type;
            fn neg(self) -> $type {
                $type(self.0 ^ 0x8000)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }

        /// Through float64, so rounded twice for decimals of very many digits.
        impl FromStr for $type {
            type Err = ParseFloatError;
            fn from_str(text: &str) -> Result<$type, ParseFloatError> {
                text.parse().map($type::from_f64)
            }
        }
    };
}

half!(F16, 10, 15, 0x7E00, 0x7C00, 0x3C00, 0x7BFF, 0x0400);
half!(Bf16, 7, 127, 0x7FC0, 0x7F80, 0x3F80, 0x7F7F, 0x0080);

/// float32's canonical NaN.
const NAN_BITS: u32 = 0x7FC0_0000;

impl Bf16 {
    /// The same value, exactly; NaN gives the canonical one.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(if self.is_nan() { NAN_BITS } else { u32::from(self.0) << 16 })
    }
}

impl F16 {
    /// The same value, exactly; NaN gives the canonical one.
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let (exponent, fraction) = (u32::from(self.0 >> 10 & 0x1F), u32::from(self.0 & 0x3FF));
        f32::from_bits(match (exponent, fraction) {
            (0, 0) => sign,
            (0, _) => {
                // Normal in float32: the leading one moves to its place.
                let shift = fraction.leading_zeros() - 21;
                sign | (113 - shift) << 23 | (fraction << shift & 0x3FF) << 13
            }
            (31, 0) => sign | 0x7F80_0000,
            (31, _) => NAN_BITS,
            _ => sign | (exponent + 112) << 23 | fraction << 13,
        })
    }
}

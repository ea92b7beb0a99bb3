//! Rust's operators on values, with a value or a scalar on the other side.

use crate::half::{Bf16, F16};
use crate::value::{Operand, Value};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

impl<'g> Neg for Value<'g> {
    type Output = Value<'g>;
    fn neg(self) -> Value<'g> {
        self.negative()
    }
}

/// [`Value::bitwise_invert`].
impl<'g> Not for Value<'g> {
    type Output = Value<'g>;
    fn not(self) -> Value<'g> {
        self.bitwise_invert()
    }
}

macro_rules! operators {
    ($($trait:ident $operator:ident $method:ident: $($scalar:ty)*;)*) => { $(
        impl<'g> $trait for Value<'g> {
            type Output = Value<'g>;
            fn $operator(self, y: Value<'g>) -> Value<'g> {
                self.$method(y)
            }
        }
        $(
            impl<'g> $trait<$scalar> for Value<'g> {
                type Output = Value<'g>;
                fn $operator(self, y: $scalar) -> Value<'g> {
                    self.$method(y)
                }
            }
            impl<'g> $trait<Value<'g>> for $scalar {
                type Output = Value<'g>;
                fn $operator(self, y: Value<'g>) -> Value<'g> {
                    Operand::value(self, y).$method(y)
                }
            }
        )*
    )* };
}

operators! {
    Add add add: f32 F16 Bf16 u8 u16 u32 u64 i8 i16 i32 i64;
    Sub sub subtract: f32 F16 Bf16 u8 u16 u32 u64 i8 i16 i32 i64;
    Mul mul multiply: f32 F16 Bf16 u8 u16 u32 u64 i8 i16 i32 i64;
    Div div divide: f32 F16 Bf16 u8 u16 u32 u64 i8 i16 i32 i64;
    Rem rem remainder: f32 F16 Bf16 u8 u16 u32 u64 i8 i16 i32 i64;
    BitAnd bitand bitwise_and: bool u8 u16 u32 u64 i8 i16 i32 i64;
    BitOr bitor bitwise_or: bool u8 u16 u32 u64 i8 i16 i32 i64;
    BitXor bitxor bitwise_xor: bool u8 u16 u32 u64 i8 i16 i32 i64;
    Shl shl left_shift: u8 u16 u32 u64 i8 i16 i32 i64;
    Shr shr right_shift: u8 u16 u32 u64 i8 i16 i32 i64;
}

//! F16 and Bf16 against the library's `astype`, whose every result is proven: all 65,536 values, and floats on and beside every
//! midpoint.

use onelaunch::{Bf16, DType, Device, Element, View, ViewMut, F16};

fn convert<T: Element, U: Element>(from: &[T], blank: U) -> Vec<U> {
    let astype = Device::cpu().unwrap().compile("astype", [T::DTYPE], |_, [x]| [x.astype(U::DTYPE)]).unwrap();
    let mut to = vec![blank; from.len()];
    astype.replay(&[View::from(from)], &mut [ViewMut::from(&mut to[..])]).unwrap();
    to
}

/// Floats of every exponent; the values of a format, the midpoints between them, and the floats beside both.
fn floats(exact: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut all: Vec<f32> = (0..=u32::MAX - 4099).step_by(4099).map(f32::from_bits).collect();
    let values: Vec<f64> = exact.filter(|x| x.is_finite()).map(f64::from).collect();
    for pair in values.windows(2) {
        for x in [pair[0] as f32, ((pair[0] + pair[1]) / 2.0) as f32] {
            let bits = x.to_bits();
            all.extend([bits.wrapping_sub(1), bits, bits.wrapping_add(1)].map(f32::from_bits));
        }
    }
    all
}

macro_rules! tests {
    ($type:ident, $module:ident, $dtype:ident, $max:literal, $overflow:expr, $least:literal) => {
        mod $module {
            use super::*;

            fn every() -> Vec<$type> {
                (0..=u16::MAX).map($type::from_bits).collect()
            }

            #[test]
            fn widening() {
                assert_eq!($type::DTYPE, DType::$dtype);
                for (x, y) in every().into_iter().zip(convert(&every(), 0.0_f32)) {
                    assert_eq!(x.to_f32().to_bits(), y.to_bits(), "{:04x}", x.to_bits());
                    assert_eq!(f64::from(x).to_bits(), f64::from(x.to_f32()).to_bits());
                    let back = if x.is_nan() { $type::NAN } else { x };
                    assert_eq!($type::from_f32(x.to_f32()).to_bits(), back.to_bits());
                    assert_eq!($type::from_f64(x.into()).to_bits(), back.to_bits());
                    assert_eq!(x.is_nan(), x.to_f32().is_nan());
                }
            }

            #[test]
            fn narrowing() {
                let from = floats(every().into_iter().map($type::to_f32));
                assert!(from.len() > 1_400_000);
                for (x, y) in from.iter().zip(convert(&from, $type::ZERO)) {
                    assert_eq!($type::from_f32(*x).to_bits(), y.to_bits(), "{:08x}", x.to_bits());
                }
            }

            /// From float64 by way of float32 would be two roundings: just above a midpoint comes out below it.
            #[test]
            fn from_float64_once() {
                let finite: Vec<f64> =
                    every().into_iter().filter(|x| f64::from(*x).is_finite() && x.to_bits() < 0x8000).map(f64::from).collect();
                for (i, pair) in finite.windows(2).enumerate() {
                    let (i, middle) = (i as u16, (pair[0] + pair[1]) / 2.0);
                    let even = i + (i & 1);
                    assert_eq!($type::from_f64(middle).to_bits(), even);
                    assert_eq!($type::from_f64(f64::from_bits(middle.to_bits() + 1)).to_bits(), i + 1);
                    assert_eq!($type::from_f64(f64::from_bits(middle.to_bits() - 1)).to_bits(), i);
                    assert_eq!($type::from_f64(-middle).to_bits(), even | 0x8000);
                }
                assert_eq!($type::from_f64($overflow).to_bits(), $type::INFINITY.to_bits());
                assert_eq!($type::from_f64(f64::from_bits(f64::to_bits($overflow) - 1)).to_bits(), $type::MAX.to_bits());
                assert_eq!($type::from_f64(f64::MAX).to_bits(), $type::INFINITY.to_bits());
                assert_eq!($type::from_f64(-f64::INFINITY).to_bits(), $type::NEG_INFINITY.to_bits());
                assert_eq!($type::from_f64(5e-324).to_bits(), 0);
                assert_eq!($type::from_f64(-5e-324).to_bits(), 0x8000);
                assert_eq!($type::from_f64(f64::NAN).to_bits(), $type::NAN.to_bits());
            }

            #[test]
            fn values() {
                assert_eq!(($type::ONE.to_f32(), $type::ZERO.to_f32(), $type::default().to_bits()), (1.0, 0.0, 0));
                assert_eq!(($type::MAX.to_f32(), $type::MIN_POSITIVE.to_f32()), ($max, $least));
                assert!($type::NAN != $type::NAN && $type::from_bits(0x8000) == $type::ZERO && $type::ONE < $type::MAX);
                assert_eq!((-$type::ONE).to_f32(), -1.0);
                assert_eq!(("1.5".parse::<$type>().unwrap().to_string(), format!("{:?}", $type::ONE)), ("1.5".into(), "1.0".into()));
                assert_eq!((std::mem::size_of::<$type>(), std::mem::align_of::<$type>()), (2, 2));
            }
        }
    };
}

tests!(F16, float16, Float16, 65504.0, 65520.0, 6.1035156e-5);
tests!(Bf16, bfloat16, BFloat16, 3.3895314e38, 511.0 * (1_u128 << 119) as f64, 1.1754944e-38);

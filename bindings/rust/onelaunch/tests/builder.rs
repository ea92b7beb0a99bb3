//! Tracing: operators, scalars, errors and panics in a builder.

use onelaunch::*;
use std::error::Error as StdError;
use std::panic::{catch_unwind, AssertUnwindSafe};

fn run<const N: usize, T: Element, U: Element>(
    inputs: [T; N],
    blank: U,
    build: impl for<'g> FnOnce(&Graph<'g>, [Value<'g>; N]) -> [Value<'g>; 1],
) -> U {
    let composite = Device::cpu().unwrap().compile("one", [T::DTYPE; N], build).unwrap();
    let mut y = blank;
    let views: Vec<View<'_>> = inputs.iter().map(View::scalar).collect();
    composite.replay(&views, &mut [ViewMut::scalar(&mut y)]).unwrap();
    y
}

#[test]
fn operators_are_their_primitives() {
    let (x, y) = (7.5_f32, -2.0_f32);
    assert_eq!(run([x, y], 0.0_f32, |_, [x, y]| [x + y]), 5.5);
    assert_eq!(run([x, y], 0.0_f32, |_, [x, y]| [x - y]), 9.5);
    assert_eq!(run([x, y], 0.0_f32, |_, [x, y]| [x * y]), -15.0);
    assert_eq!(run([x, y], 0.0_f32, |_, [x, y]| [x / y]), -3.75);
    assert_eq!(run([x, y], 0.0_f32, |_, [x, y]| [x % y]), -0.5); // Python's sign
    assert_eq!(run([x, y], 0.0_f32, |_, [x, _]| [-x]), -7.5);
    assert_eq!(run([12_i32, 10], 0_i32, |_, [x, y]| [x & y]), 8);
    assert_eq!(run([12_i32, 10], 0_i32, |_, [x, y]| [x | y]), 14);
    assert_eq!(run([12_i32, 10], 0_i32, |_, [x, y]| [x ^ y]), 6);
    assert_eq!(run([12_i32, 2], 0_i32, |_, [x, y]| [x << y]), 48);
    assert_eq!(run([-12_i32, 2], 0_i32, |_, [x, y]| [x >> y]), -3);
    assert_eq!(run([12_i32], 0_i32, |_, [x]| [!x]), -13);
    assert!(run([x, y], false, |_, [x, y]| [x.greater(y)]));
}

#[test]
fn scalars_stand_on_either_side() {
    let x = 8.0_f32;
    assert_eq!(run([x], 0.0_f32, |_, [x]| [x + 1.0]), 9.0);
    assert_eq!(run([x], 0.0_f32, |_, [x]| [1.0 - x]), -7.0);
    assert_eq!(run([x], 0.0_f32, |_, [x]| [2.0 / x]), 0.25);
    assert_eq!(run([x], 0.0_f32, |_, [x]| [x.maximum(9.0_f32)]), 9.0);
    assert_eq!(run([x], 0.0_f32, |_, [x]| [x.clip(0.0_f32, 6.0_f32)]), 6.0);
    assert_eq!(run([x], 0.0_f32, |_, [x]| [x.fma(2.0_f32, 1.0_f32)]), 17.0);
    assert_eq!(run([x], 0.0_f32, |_, [x]| [x.less(9.0_f32).select(x, 0.0_f32)]), 8.0);
    assert_eq!(run([5_u8], 0_u8, |_, [x]| [3_u8 ^ x]), 6);
    assert_eq!(run([5_i64], 0_i64, |_, [x]| [x + (1_i64 << 60)]), (1 << 60) + 5); // exact beyond 2^53
    assert!(run([true], false, |_, [x]| [x & true]));
}

/// The dtype of a scalar is that of its Rust type: a sum with a bfloat16 value is in bfloat16 only if the scalar is one.
#[test]
fn scalars_have_the_dtype_of_their_type() {
    let x = Bf16::from_f32(1.0);
    let small = 0.001_953_125; // 2^-9, lost in bfloat16 beside 1
    assert_eq!(run([x], 0.0_f32, |_, [x]| [x + small]), 1.0 + small);
    assert_eq!(run([x], Bf16::ZERO, |_, [x]| [x + Bf16::from_f32(small)]), x);
    assert_eq!(run([x], Bf16::ZERO, |_, [x]| [x + x.constant(small.into())]), x);
    assert_eq!(run([F16::ONE], F16::ZERO, |_, [x]| [F16::ONE + x]).to_f32(), 2.0);
    let dtypes = Device::cpu().unwrap().compile("dtypes", [DType::BFloat16], |g, [x]| {
        assert_eq!(
            (x.dtype(), (x + 1.0).dtype(), (x + Bf16::ONE).dtype(), (x + 1_i32).dtype()),
            (DType::BFloat16, DType::Float32, DType::BFloat16, DType::BFloat16)
        );
        assert_eq!(g.constant(DType::Int8, 3.0).dtype(), DType::Int8);
        [x + 1.0, g.scalar(7_u64), x.astype(DType::Bool)]
    });
    assert_eq!(dtypes.unwrap().output_dtypes(), [DType::Float32, DType::UInt64, DType::Bool]);
}

#[test]
fn constants_keep_their_bits() {
    let text = Device::cpu()
        .unwrap()
        .compile("bits", [], |g, []| [g.scalar(f32::from_bits(0xFFC1_2345)), g.scalar(-0.0_f32)])
        .unwrap()
        .text(TextKind::Graph);
    assert!(text.contains("ffc12345") && text.contains("80000000"), "{text}");
    assert!(run([0.0_f32], 1.0_f32, |g, [_]| [g.scalar(-0.0_f32)]).is_sign_negative());
    assert_eq!(run([0.0_f32], 0_u64, |g, [_]| [g.scalar(u64::MAX)]), u64::MAX);
}

#[test]
fn the_first_error_is_kept() {
    let cpu = Device::cpu().unwrap();
    let error = cpu.compile("late", [DType::Float32; 2], |_, [x, y]| [((x & y) + 1.0).exp() << 2_i32]).unwrap_err();
    assert_eq!((error.status(), error.operation()), (Status::DType, "bitwise_and"));
    let error = cpu.compile("fails", [DType::Float32], |g, [x]| {
        g.fail("my layer", "the head count is odd");
        [x]
    });
    let error = error.unwrap_err();
    assert_eq!((error.status(), error.operation(), error.description()), (Status::Builder, "my layer", "the head count is odd"));
    let shape = cpu.compile("shape", [DType::Float32], |_, [x]| [x.broadcast_to([2; 9])]).unwrap_err();
    assert_eq!((shape.status(), shape.operation()), (Status::Argument, "broadcast_to"));
    let huge = cpu.compile("huge", [DType::Float32], |_, [x]| [x.broadcast_to([usize::MAX])]).unwrap_err();
    assert_eq!((huge.status(), huge.description()), (Status::Shape, "axis 0 of the shape is not within 0 to 2^63 - 1"));
    assert_eq!(cpu.compile("none", [DType::Float32], |_, [_]| []).unwrap_err().status(), Status::Argument);
    let apply = cpu.compile("apply", [DType::Float32], |g, [x]| [g.apply(Primitive::find("add").unwrap(), &[x])]).unwrap_err();
    assert_eq!((apply.status(), apply.operation()), (Status::Argument, "add"));
    assert_eq!(cpu.compile("a\0b", [DType::Float32], |_, [x]| [x]).unwrap_err().status(), Status::Argument);
}

#[derive(Debug)]
struct Own(u32);

impl From<onelaunch::Error> for Own {
    fn from(_: onelaunch::Error) -> Own {
        Own(0)
    }
}

#[test]
fn a_builders_error_comes_out_as_it_is() {
    let cpu = Device::cpu().unwrap();
    let own = cpu.try_compile::<1, 1, Own>("own", [DType::Float32], |_, _| Err(Own(42))).unwrap_err();
    assert_eq!(own.0, 42);
    let library = cpu.try_compile::<1, 1, Own>("own", [DType::Float32], |_, [x]| Ok([x & x])).unwrap_err();
    assert_eq!(library.0, 0);
    let boxed: Box<dyn StdError> =
        cpu.try_compile::<1, 1, Box<dyn StdError>>("boxed", [DType::Float32], |_, _| Err("no weights".into())).unwrap_err();
    assert_eq!(boxed.to_string(), "no weights");
    let passed = onelaunch::Error::new(Status::Limit, "heads", "too many");
    let error = cpu.try_compile::<1, 1, onelaunch::Error>("passed", [DType::Float32], |_, _| Err(passed.clone())).unwrap_err();
    assert_eq!(error, passed);
    cpu.compile("after", [DType::Float32], |_, [x]| [x]).unwrap();
}

#[test]
fn a_builders_panic_goes_on_after_the_library() {
    let cpu = Device::cpu().unwrap();
    for _ in 0..3 {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            cpu.compile("panics", [DType::Float32], |_, [x]| if x.dtype() == DType::Float32 { panic!("in the builder") } else { [x] })
        }));
        assert_eq!(*panic.unwrap_err().downcast_ref::<&str>().unwrap(), "in the builder");
    }
    assert_eq!(run([1.0_f32], 0.0_f32, |_, [x]| [x + 1.0]), 2.0);
}

/// A builder may compile another composite, and replay it.
#[test]
fn builders_nest() {
    let cpu = Device::cpu().unwrap();
    let outer = cpu.compile("outer", [DType::Float32], |outer, [x]| {
        let inner = cpu.compile("inner", [DType::Float32], |_, [y]| [y * y]).unwrap();
        let mut square = 0.0_f32;
        inner.replay(&[View::scalar(&3.0_f32)], &mut [ViewMut::scalar(&mut square)]).unwrap();
        [x + outer.scalar(square)]
    });
    let mut y = 0.0_f32;
    outer.unwrap().replay(&[View::scalar(&1.0_f32)], &mut [ViewMut::scalar(&mut y)]).unwrap();
    assert_eq!(y, 10.0);
}

#[test]
fn numbers_of_inputs_known_at_run_time() {
    let cpu = Device::cpu().unwrap();
    let sums = cpu.compile_many::<onelaunch::Error>("sums", &[DType::Float32; 40], 40, |_, inputs| {
        Ok(inputs
            .iter()
            .scan(None, |sum, &x| {
                *sum = Some(sum.map_or(x, |s: Value<'_>| s + x));
                *sum
            })
            .collect())
    });
    let sums = sums.unwrap();
    assert_eq!((sums.input_count(), sums.output_count()), (40, 40));
    let x: Vec<f32> = (0..40).map(|i| i as f32).collect();
    let mut y = [0.0_f32; 40];
    let inputs: Vec<View<'_>> = x.iter().map(View::scalar).collect();
    let mut outputs: Vec<ViewMut<'_>> = y.iter_mut().map(ViewMut::scalar).collect();
    sums.replay(&inputs, &mut outputs).unwrap();
    assert_eq!((y[39], cpu.launches()), (780.0, 1));
    for n in [0, 1, 3] {
        let wrong = cpu.compile_many::<onelaunch::Error>("wrong", &[DType::Float32], 2, |_, inputs| Ok(vec![inputs[0]; n])).unwrap_err();
        assert_eq!((wrong.status(), wrong.description().contains("expected 2")), (Status::Builder, true), "{wrong}");
    }
    let limit = cpu.compile_many::<onelaunch::Error>("many", &vec![DType::Bool; MAX_INPUTS + 1], 1, |_, _| unreachable!()).unwrap_err();
    assert_eq!(limit.status(), Status::Limit);
}

//! Views: bounds, strides, outputs beside each other, errors of a replay.

use onelaunch::*;

fn doubling() -> Composite {
    Device::cpu().unwrap().compile("doubling", [DType::Int32], |_, [x]| [x + x]).unwrap()
}

#[test]
fn a_view_lies_inside_of_its_slice() {
    let x = [0_i32; 12];
    let inside: &[(usize, &[usize], &[isize])] = &[
        (0, &[12], &[1]),
        (11, &[12], &[-1]),
        (0, &[3, 4], &[4, 1]),
        (11, &[3, 4], &[-4, -1]),
        (3, &[5, 1000], &[2, 0]),
        (12, &[0, 5], &[99, -99]),
        (11, &[], &[]),
        (11, &[1, 1], &[1000, -1000]),
        (0, &[usize::MAX >> 1, 1], &[0, 0]),
        (8, &[3, 4], &[-4, 1]),
        (0, &[0, usize::MAX >> 1], &[isize::MAX, isize::MAX]),
    ];
    for (offset, shape, strides) in inside {
        let view = View::strided(&x, *offset, shape, strides).unwrap();
        assert_eq!((&view.shape()[..], &view.strides()[..]), (*shape, *strides));
    }
    let outside: &[(usize, &[usize], &[isize])] = &[
        (1, &[12], &[1]),
        (0, &[13], &[1]),
        (10, &[12], &[-1]),
        (0, &[2], &[-1]),
        (0, &[3, 5], &[4, 1]),
        (12, &[], &[]),
        (13, &[0], &[1]),
        (12, &[1], &[0]),
        (0, &[2], &[isize::MIN]),
        (0, &[2], &[isize::MAX]),
        (0, &[usize::MAX >> 1, 3], &[isize::MAX, isize::MAX]),
        (usize::MAX, &[1], &[1]),
        (usize::MAX, &[2], &[-1]),
        (0, &[usize::MAX >> 1; 8], &[isize::MAX; 8]),
        (11, &[usize::MAX >> 1; 8], &[isize::MIN; 8]),
        (0, &[usize::MAX], &[0]),
        (0, &[2, 2], &[1]),
        (0, &[2], &[1, 1]),
    ];
    for (offset, shape, strides) in outside {
        assert_eq!(View::strided(&x, *offset, shape, strides).unwrap_err().status(), Status::Shape, "{offset} {shape:?} {strides:?}");
    }
    assert_eq!(View::strided(&x, 0, [1; 9], [0; 9]).unwrap_err().status(), Status::Argument);
    for shape in [&[11_usize][..], &[13], &[2, 5], &[], &[0], &[usize::MAX, 2], &[1 << 63, 2], &[usize::MAX; 8]] {
        assert_eq!(View::new(&x, shape).unwrap_err().status(), Status::Shape, "{shape:?}");
    }
    assert!(View::new(&x, [3, 4]).is_ok() && View::new(&x[..0], [7, 0]).is_ok() && View::new(&x[..1], []).is_ok());
}

#[test]
fn strides_lead_where_they_say() {
    let x: Vec<i32> = (0..12).collect();
    let replay = |view: View<'_>| {
        let mut y = vec![-1; view.shape().iter().product()];
        doubling().replay(&[view], &mut [ViewMut::new(&mut y, view.shape()).unwrap()]).unwrap();
        y
    };
    let rows = View::new(&x, [3, 4]).unwrap();
    assert_eq!(replay(View::strided(&x, 11, [12], [-1]).unwrap()), (0..12).rev().map(|i| 2 * i).collect::<Vec<_>>());
    assert_eq!(replay(rows.permute([1, 0]).unwrap()), [0, 8, 16, 2, 10, 18, 4, 12, 20, 6, 14, 22]);
    assert_eq!(replay(rows.narrow(1, 1..3).unwrap()), [2, 4, 10, 12, 18, 20]);
    assert_eq!(replay(rows.narrow(0, 2..3).unwrap().narrow(1, 3..4).unwrap()), [22]);
    assert_eq!(replay(rows.narrow(0, 3..3).unwrap()), [0_i32; 0]);
    assert_eq!(replay(View::new(&x[..3], [3, 1]).unwrap().broadcast_to([2, 3, 2]).unwrap()), [0, 0, 2, 2, 4, 4, 0, 0, 2, 2, 4, 4]);
    for wrong in [
        rows.narrow(2, 0..1),
        rows.narrow(1, 2..5),
        rows.permute([0, 0]),
        rows.permute([0]),
        rows.permute([0, 2]),
        rows.broadcast_to([4]),
        rows.broadcast_to([3, 5]),
        rows.broadcast_to([0, 4]),
    ] {
        assert_eq!(wrong.unwrap_err().status(), Status::Shape);
    }
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = rows.narrow(1, 3..2);
    assert_eq!(backwards.unwrap_err().status(), Status::Shape);
}

#[test]
fn outputs_lie_side_by_side() {
    let two = Device::cpu().unwrap().compile("two", [DType::Int32], |_, [x]| [x + x, -x]).unwrap();
    let x = [1, 2, 3, 4];
    let mut both = [0_i32; 8];
    let (left, right) = ViewMut::new(&mut both, [2, 4]).unwrap().split_at(1, 2).unwrap();
    two.replay(&[View::new(&x, [2, 2]).unwrap()], &mut [left, right]).unwrap();
    assert_eq!(both, [2, 4, -1, -2, 6, 8, -3, -4]);
    // A fold over itself cannot be divided, and is no output.
    let fold = |y: &mut [i32; 8]| ViewMut::strided(y, 0, [2, 2], [1, 1]).map(|view| view.split_at(0, 1).err().map(|e| e.status()));
    assert_eq!(fold(&mut both).unwrap(), Some(Status::Overlap));
    let folded = two.replay(
        &[View::new(&x, [2, 2]).unwrap()],
        &mut [ViewMut::strided(&mut both, 0, [2, 2], [1, 1]).unwrap(), ViewMut::new(&mut [0; 4], [2, 2]).unwrap()],
    );
    assert_eq!(folded.unwrap_err().status(), Status::Overlap);
    let (first, rest) = ViewMut::from(&mut both[..]).split_at(0, 0).unwrap();
    assert_eq!((first.shape(), rest.shape()), (vec![0], vec![8]));
    assert!(ViewMut::from(&mut both[..]).split_at(0, 9).is_err() && ViewMut::from(&mut both[..]).split_at(1, 0).is_err());
    assert_eq!(ViewMut::strided(&mut both, 7, [4, 2], [-2, -1]).unwrap().split_at(0, 2).unwrap().1.shape(), [2, 2]);
}

#[test]
fn a_wrong_replay_says_what_is_wrong_and_writes_nothing() {
    let add = Device::cpu().unwrap().compile("bias", [DType::Float32; 2], |_, [x, y]| [x + y]).unwrap();
    let (x, bias, mut y) = ([1.0_f32; 6], [1.0_f32; 4], [7.0_f32; 6]);
    let rows = View::new(&x, [2, 3]).unwrap();
    let error = add.replay(&[rows, View::from(&bias[..])], &mut [ViewMut::new(&mut y, [2, 3]).unwrap()]).unwrap_err();
    assert_eq!((error.status(), error.operation()), (Status::Shape, "replay bias"));
    assert!(error.description().contains("[4]") && error.to_string().ends_with("(OL_ERROR_SHAPE)"), "{error}");
    let error = add.replay(&[rows, rows], &mut [ViewMut::new(&mut y, [3, 2]).unwrap()]).unwrap_err();
    assert_eq!(error.status(), Status::Shape);
    let error = add.replay(&[rows, View::scalar(&1_i32)], &mut [ViewMut::new(&mut y, [2, 3]).unwrap()]).unwrap_err();
    assert_eq!(error.status(), Status::DType);
    for (n_inputs, n_outputs) in [(1, 1), (3, 1), (2, 0), (0, 0)] {
        let mut outputs: Vec<ViewMut<'_>> = [&mut y].into_iter().take(n_outputs).map(|y| ViewMut::new(y, [2, 3]).unwrap()).collect();
        for replayed in [add.replay(&vec![rows; n_inputs], &mut outputs), add.replay_composed(&vec![rows; n_inputs], &mut outputs)] {
            let error = replayed.unwrap_err();
            assert_eq!((error.status(), error.operation()), (Status::Argument, "replay bias"), "{error}");
        }
    }
    assert_eq!(add.output_shapes(&[rows]).unwrap_err().status(), Status::Argument);
    assert_eq!(y, [7.0; 6]);
}

#[test]
fn in_place() {
    let cpu = Device::cpu().unwrap();
    let stream = cpu.default_stream();
    let both = cpu.compile("both", [DType::Float32; 2], |_, [x, y]| [x + y, x - y]).unwrap();
    let (mut x, mut y) = ([5.0_f32, 6.0], [1.0_f32, 2.0]);
    let mut outputs = [ViewMut::new(&mut x, [2]).unwrap(), ViewMut::new(&mut y, [2]).unwrap()];
    both.replay_in_place(&stream, &[Input::Output(0), Input::Output(1)], &mut outputs).unwrap();
    assert_eq!((x, y), ([6.0, 8.0], [4.0, 4.0]));
    let (mut x, mut y) = ([1.0_f32; 2], [1.0_f32; 2]);
    let mut outputs = [ViewMut::new(&mut x, [2]).unwrap(), ViewMut::new(&mut y, [2]).unwrap()];
    let error = both.replay_in_place(&stream, &[Input::Output(0), Input::Output(2)], &mut outputs).unwrap_err();
    assert_eq!(error.status(), Status::Argument);
    assert_eq!(both.replay_in_place(&stream, &[Input::Output(0)], &mut outputs).unwrap_err().status(), Status::Argument);
    let own = [3.0_f32; 2];
    both.replay_in_place(&stream, &[View::from(&own[..]).into(), Input::Output(1)], &mut outputs).unwrap();
    assert_eq!((x, y), ([4.0; 2], [2.0; 2]));
}

#[test]
fn output_shapes_come_from_the_inputs() {
    let cpu = Device::cpu().unwrap();
    let two = cpu.compile("two", [DType::Float32, DType::BFloat16], |_, [x, y]| [x + y, y.isnan()]).unwrap();
    let shapes = two.output_shapes(&[View::new(&[0.0_f32; 6], [2, 3]).unwrap(), View::new(&[Bf16::ONE; 3], [3]).unwrap()]).unwrap();
    assert_eq!((shapes[0].dtype, &shapes[0].shape[..], shapes[0].shape.elements()), (DType::Float32, &[2, 3][..], Some(6)));
    assert_eq!((shapes[1].dtype, &shapes[1].shape[..]), (DType::Bool, &[3][..]));
    assert_eq!((two.input_dtypes(), two.output_dtypes()), (vec![DType::Float32, DType::BFloat16], vec![DType::Float32, DType::Bool]));
    assert_eq!((two.name(), two.composed_launches()), ("two", 3));
    assert!(
        two.text(TextKind::Program).len() > 10 && two.text(TextKind::Dot).starts_with("digraph") && two.cuda_text().contains("__global__")
    );
}

/// Every element type goes in and comes out.
#[test]
fn every_element_type() {
    macro_rules! copies {
        ($($type:ty: $($value:expr),*;)*) => { $(
            let x: [$type; 2] = [$($value),*];
            let mut y = [x[1]; 2];
            let copy = Device::cpu().unwrap().compile("copy", [<$type>::DTYPE], |_, [x]| [x]).unwrap();
            copy.replay(&[View::from(&x[..])], &mut [ViewMut::from(&mut y[..])]).unwrap();
            assert_eq!(x, y);
            assert_eq!(<$type>::DTYPE.size(), std::mem::size_of::<$type>());
            assert_eq!(<$type>::DTYPE.name().parse::<DType>().unwrap(), <$type>::DTYPE);
        )* };
    }
    copies! {
        bool: true, false; u8: 255, 1; u16: 65535, 1; u32: u32::MAX, 1; u64: u64::MAX, 1; i8: -128, 1; i16: i16::MIN, 1; i32: i32::MIN, 1; i64: i64::MIN, 1;
        F16: F16::MAX, F16::ONE; Bf16: Bf16::MAX, Bf16::ONE; f32: f32::MIN_POSITIVE / 2.0, -0.0;
    }
    assert!("float64".parse::<DType>().is_err() && "a\0".parse::<DType>().is_err());
    assert_eq!(DType::ALL.map(|dtype| DType::from_raw(dtype.to_raw())), DType::ALL.map(Some));
    assert_eq!(DType::from_raw(12), None);
}

/// Of a dtype known at run time, and off its alignment.
#[test]
fn bytes_as_elements() {
    let (mut from, mut to) = (vec![0_u8; 1 + 4 * 9], vec![0xEE_u8; 3 + 4 * 9 + 1]);
    for i in 0..9 {
        from[1 + 4 * i..][..4].copy_from_slice(&(i as i32).to_le_bytes());
    }
    let mut y = ViewMut::from_bytes(&mut to[3..39], DType::Int32, [3, 3]).unwrap();
    let x = View::from_bytes(&from[1..], DType::Int32, [3, 3]).unwrap();
    doubling().replay(&[x.permute([1, 0]).unwrap()], &mut [y.reborrow()]).unwrap();
    doubling().replay(&[x.permute([1, 0]).unwrap()], &mut [y]).unwrap();
    let doubled: Vec<i32> = to[3..39].chunks(4).map(|bytes| i32::from_le_bytes(<[u8; 4]>::try_from(bytes).unwrap())).collect();
    assert_eq!((doubled, [to[2], to[39]]), (vec![0, 6, 12, 2, 8, 14, 4, 10, 16], [0xEE; 2]));
    for (n, shape) in [(35, &[3, 3][..]), (36, &[9, 9]), (36, &[8]), (36, &[36]), (0, &[])] {
        assert_eq!(View::from_bytes(&from[..n], DType::Int32, shape).unwrap_err().status(), Status::Shape);
    }
    // A byte that is neither 0 nor 1 is a true bool, and comes out as 1.
    let copy = Device::cpu().unwrap().compile("copy", [DType::Bool], |_, [x]| [x]).unwrap();
    let mut bools = [false; 4];
    copy.replay(&[View::from_bytes(&[0, 1, 2, 255], DType::Bool, [4]).unwrap()], &mut [ViewMut::new(&mut bools, [4]).unwrap()]).unwrap();
    assert_eq!(bools.map(|x| x as u8), [0, 1, 1, 1]);
    let read = unsafe { std::slice::from_raw_parts(bools.as_ptr() as *const u8, 4) };
    assert_eq!(read, [0, 1, 1, 1]);
}

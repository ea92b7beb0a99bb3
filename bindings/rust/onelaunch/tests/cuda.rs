//! GPUs: on the machine's own, or on the fake driver of tests/cuda. Without one, what the errors say.

use onelaunch::cuda::{self, CudaOptions};
use onelaunch::*;

/// The first GPU; none where there is none. `ONELAUNCH_TEST_GPU=1` says that there is one.
fn gpu() -> Option<Device<Cuda>> {
    match Device::cuda(0) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            assert_eq!(error.status(), Status::Device, "{error}");
            assert!(std::env::var_os("ONELAUNCH_TEST_GPU").is_none(), "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

#[test]
fn facts() {
    if gpu().is_none() {
        assert_eq!(
            cuda::count().map_or_else(
                |error| error.status(),
                |n| {
                    assert_eq!(n, 0);
                    Status::Device
                }
            ),
            Status::Device
        );
        return;
    }
    let n = cuda::count().unwrap();
    let facts = cuda::describe(0).unwrap();
    assert!(
        n >= 1
            && !facts.name.is_empty()
            && facts.capability >= 50
            && facts.n_multiprocessors > 0
            && facts.n_bytes > 0
            && facts.driver_version >= 11000,
        "{facts:?}"
    );
    assert!(cuda::compiler_version().unwrap() >= 11000);
    for absent in [n, usize::MAX] {
        assert_eq!(cuda::describe(absent).unwrap_err().status(), Status::Device);
        assert_eq!(Device::cuda(absent).unwrap_err().status(), Status::Device);
    }
}

#[test]
fn rates_have_the_cpus_bits() {
    let gpu = match gpu() {
        Some(gpu) => gpu,
        None => return,
    };
    assert_eq!(gpu.name(), "cuda:0");
    assert!(gpu.level().starts_with("sm_"));
    let cpu = Device::cpu().unwrap();
    let (tokens, heads) = (7, 32);
    let dtypes = RatesDTypes { decay_rate_logarithm: DType::Float32, ..RatesDTypes::all(DType::BFloat16) };
    let bf16 = |n: usize, step: u16| (0..n).map(|i| Bf16::from_bits(0x3E00 + (i as u16).wrapping_mul(step))).collect::<Vec<_>>();
    let (b, a, dt_bias) = (bf16(tokens * heads, 7), bf16(tokens * heads, 11), bf16(heads, 13));
    let a_log: Vec<f32> = (0..heads).map(|h| 0.05 * h as f32).collect();

    let (mut beta, mut decay) = (vec![Bf16::ZERO; tokens * heads], vec![0.0_f32; tokens * heads]);
    GatedDeltaRates::compile(&cpu, dtypes)
        .unwrap()
        .replay(
            &RatesInputs {
                update_logits: View::new(&b, [tokens, heads]).unwrap(),
                decay_interval_inputs: View::new(&a, [tokens, heads]).unwrap(),
                decay_rate_logarithm: View::new(&a_log, [heads]).unwrap(),
                decay_interval_bias: View::new(&dt_bias, [heads]).unwrap(),
            },
            &mut RatesOutputs {
                update_rates: ViewMut::new(&mut beta, [tokens, heads]).unwrap(),
                decay_factors: ViewMut::new(&mut decay, [tokens, heads]).unwrap(),
            },
        )
        .unwrap();

    let stream = gpu.stream().unwrap();
    let rates = GatedDeltaRates::compile(&gpu, dtypes).unwrap();
    let (gb, ga) = (Buffer::from_slice(&gpu, &b).unwrap(), Buffer::from_slice(&gpu, &a).unwrap());
    let (ga_log, gdt_bias) = (Buffer::from_slice(&gpu, &a_log).unwrap(), Buffer::from_slice(&gpu, &dt_bias).unwrap());
    let (mut gbeta, mut gdecay) = (Buffer::<Bf16, _>::new(&gpu, beta.len()).unwrap(), Buffer::<f32, _>::new(&gpu, decay.len()).unwrap());
    let before = gpu.launches();
    rates
        .replay_on(
            &stream,
            &RatesInputs {
                update_logits: gb.view([tokens, heads]).unwrap(),
                decay_interval_inputs: ga.view([tokens, heads]).unwrap(),
                decay_rate_logarithm: ga_log.view([heads]).unwrap(),
                decay_interval_bias: gdt_bias.view([heads]).unwrap(),
            },
            &mut RatesOutputs {
                update_rates: gbeta.view_mut([tokens, heads]).unwrap(),
                decay_factors: gdecay.view_mut([tokens, heads]).unwrap(),
            },
        )
        .unwrap();
    assert_eq!(gpu.launches() - before, 1);
    let bits16 = |v: &[Bf16]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let bits32 = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits16(&gbeta.to_vec(&stream).unwrap()), bits16(&beta));
    assert_eq!(bits32(&gdecay.to_vec(&stream).unwrap()), bits32(&decay));

    // Strided, in place, composed, from another thread.
    let composite = gpu.compile("both", [DType::Float32; 2], |_, [x, y]| [(x - y).exp()]).unwrap();
    let own = Buffer::from_slice(&gpu, &a_log).unwrap();
    let columns = own.view([2, heads / 2]).unwrap().permute([1, 0]).unwrap();
    let (mut once, mut composed) = (Buffer::<f32, _>::new(&gpu, heads).unwrap(), Buffer::<f32, _>::new(&gpu, heads).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let shape = [heads / 2, 2];
            composite.replay_on(&stream, &[columns, columns], &mut [once.view_mut(shape).unwrap()]).unwrap();
            composite.replay_composed_on(&stream, &[columns, columns], &mut [composed.view_mut(shape).unwrap()]).unwrap();
        });
    });
    assert_eq!(once.to_vec(&stream).unwrap(), vec![1.0; heads]);
    let inputs = [Input::Output(0), Input::View(composed.view([heads]).unwrap())];
    composite.replay_in_place(&stream, &inputs, &mut [once.view_mut([heads]).unwrap()]).unwrap();
    assert_eq!(once.to_vec(&stream).unwrap(), vec![1.0; heads]);
    composed.copy_from(&stream, &own).unwrap();
    assert_eq!(composed.to_vec(&stream).unwrap(), a_log);
    once.free().unwrap();
    stream.synchronize().unwrap();
}

/// What memory of a GPU holds need not be 0 or 1; a bool of Rust's is.
#[test]
fn bools_from_a_gpu() {
    let gpu = match gpu() {
        Some(gpu) => gpu,
        None => return,
    };
    let stream = gpu.default_stream();
    let odd = Buffer::from_slice(&gpu, &[0_u8, 1, 2, 255]).unwrap();
    let unset = Buffer::<bool, _>::new(&gpu, 4).unwrap();
    let host = unset.to_vec(&stream).unwrap();
    let bytes = unsafe { std::slice::from_raw_parts(host.as_ptr() as *const u8, host.len()) };
    assert!(bytes.iter().all(|byte| *byte <= 1), "{bytes:?}");
    let to_bool = gpu.compile("bool", [DType::UInt8], |_, [x]| [x.astype(DType::Bool)]).unwrap();
    let mut bools = Buffer::<bool, _>::new(&gpu, 4).unwrap();
    to_bool.replay(&[odd.view([4]).unwrap()], &mut [bools.view_mut([4]).unwrap()]).unwrap();
    assert_eq!(bools.to_vec(&stream).unwrap(), [false, true, true, true]);
}

#[test]
fn memory_is_of_one_gpu() {
    let first = match gpu() {
        Some(gpu) => gpu,
        None => return,
    };
    // Another handle is another device, even of the same GPU.
    let second = Device::cuda(cuda::count().unwrap() - 1).unwrap();
    let (x, mut y) = (Buffer::from_slice(&first, &[1.0_f32; 4]).unwrap(), Buffer::<f32, _>::new(&second, 4).unwrap());
    let negate = first.compile("negate", [DType::Float32], |_, [x]| [-x]).unwrap();
    let error = negate.replay(&[x.view([4]).unwrap()], &mut [y.view_mut([4]).unwrap()]).unwrap_err();
    assert_eq!(
        (error.status(), error.description().starts_with("output 0 is memory of another device")),
        (Status::Argument, true),
        "{error}"
    );
    assert!(negate.output_shapes(&[y.view([4]).unwrap()]).is_err());
    let inputs = [Input::View(y.view([4]).unwrap())];
    let mut z = Buffer::<f32, _>::new(&first, 4).unwrap();
    assert!(negate.replay_in_place(&first.default_stream(), &inputs, &mut [z.view_mut([4]).unwrap()]).is_err());
    assert!(y.copy_from(&second.default_stream(), &x).is_err());
    if cuda::count().unwrap() > 1 {
        let elsewhere = second.stream().unwrap();
        let error = negate.replay_on(&elsewhere, &[x.view([4]).unwrap()], &mut [z.view_mut([4]).unwrap()]).unwrap_err();
        assert_eq!(error.status(), Status::Argument, "{error}");
    }
}

#[test]
fn the_current_context() {
    let no_context = std::thread::spawn(|| unsafe { Device::cuda_current(CudaOptions::new()) }.map(drop)).join().unwrap();
    assert_eq!(no_context.unwrap_err().status(), Status::Device);
}

/// More tensors than are gathered on the stack.
#[test]
fn many_tensors() {
    let gpu = match gpu() {
        Some(gpu) => gpu,
        None => return,
    };
    let sum =
        gpu.compile_many::<Error>("sum", &[DType::Int32; 20], 1, |_, x| Ok(vec![x.iter().copied().reduce(|a, b| a + b).unwrap()])).unwrap();
    let x: Vec<Buffer<i32, Cuda>> = (0..20).map(|i| Buffer::from_slice(&gpu, &[i; 3]).unwrap()).collect();
    let views: Vec<View<'_, Cuda>> = x.iter().map(|x| x.view([3]).unwrap()).collect();
    let mut y = Buffer::<i32, _>::new(&gpu, 3).unwrap();
    sum.replay(&views, &mut [y.view_mut([3]).unwrap()]).unwrap();
    assert_eq!(y.to_vec(&gpu.default_stream()).unwrap(), [190; 3]);
}

/// Live objects, as the fake driver counts them; none on another driver, and where other tests make objects meanwhile.
fn live_objects() -> Option<usize> {
    use std::os::raw::{c_char, c_int, c_void};
    extern "C" {
        fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    const NOW_IF_LOADED: c_int = 2 | 4;
    if std::env::var_os("RUST_TEST_THREADS")? != "1" {
        return None;
    }
    // SAFETY: names of the driver, which stays loaded, and of the fake one's function (tests/cuda/fake_cuda.h).
    unsafe {
        let library = dlopen("libcuda.so.1\0".as_ptr() as *const c_char, NOW_IF_LOADED);
        let function = if library.is_null() { library } else { dlsym(library, "fake_leaks\0".as_ptr() as *const c_char) };
        if function.is_null() {
            return None;
        }
        Some(std::mem::transmute::<*mut c_void, extern "C" fn() -> usize>(function)())
    }
}

#[test]
fn what_is_dropped_is_given_back() {
    let gpu = match gpu() {
        Some(gpu) => gpu,
        None => return,
    };
    let before = live_objects();
    let made = (gpu.stream().unwrap(), Buffer::<f32, _>::new(&gpu, 9).unwrap(), Buffer::<f32, _>::new(&gpu, 0).unwrap());
    assert_eq!(live_objects(), before.map(|n| n + 3));
    let default = gpu.default_stream();
    // SAFETY: the default stream lives as long as the device.
    let foreign = unsafe { Stream::from_raw(&gpu, default.as_raw()) };
    made.1.free().unwrap();
    drop((made.0, made.2, default, foreign));
    assert_eq!(live_objects(), before);
}

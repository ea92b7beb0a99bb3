//! CPU devices: levels, options, hooks, memory; many threads on one composite.

#![deny(unsafe_op_in_unsafe_fn)]

use onelaunch::*;
use std::alloc::{alloc, dealloc, Layout};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

fn softplus(device: &Device) -> Composite {
    device.compile("softplus", [DType::Float32], |_, [x]| [x.softplus()]).unwrap()
}

fn replay(composite: &Composite, x: &[f32]) -> Vec<u32> {
    let mut y = vec![0.0_f32; x.len()];
    composite.replay(&[View::from(x)], &mut [ViewMut::from(&mut y[..])]).unwrap();
    y.into_iter().map(f32::to_bits).collect()
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 - n as f32 / 2.0) * (40.0 / n as f32)).collect()
}

#[test]
fn shared_by_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Device>();
    is_send_and_sync::<Device<Cuda>>();
    is_send_and_sync::<Composite<Cuda>>();
    is_send_and_sync::<GatedDeltaRates>();
    is_send_and_sync::<Stream<Cuda>>();
    is_send_and_sync::<Buffer<f32, Cuda>>();
    is_send_and_sync::<View<'static>>();
    is_send_and_sync::<ViewMut<'static>>();
    is_send_and_sync::<Error>();
}

#[test]
fn many_threads_replay_one_composite() {
    let device = Device::cpu_with(CpuOptions::new().threads(3)).unwrap();
    let composite = softplus(&device);
    let x = ramp(100_000);
    let expected = replay(&composite, &x);
    let before = device.launches();
    std::thread::scope(|scope| {
        for t in 0..8 {
            let (composite, device, x, expected) = (&composite, &device, &x, &expected);
            scope.spawn(move || {
                for i in 0..20 {
                    let from = (t * 37 + i * 11) % 1000;
                    assert!(replay(composite, &x[from..]) == expected[from..]);
                    let own = softplus(device); // and compiles beside the others
                    assert!(replay(&own, &x[..64]) == expected[..64]);
                }
            });
        }
    });
    assert_eq!(device.launches() - before, 8 * 20 * 2);
    // The last owner may be another thread than the first.
    drop(device);
    std::thread::spawn(move || drop(composite)).join().unwrap();
}

#[test]
fn levels_give_the_same_bits() {
    let x = ramp(5000);
    let expected = replay(&softplus(&Device::cpu().unwrap()), &x);
    assert!(CpuLevel::Baseline.is_available() || CpuLevel::Neon.is_available());
    for level in CpuLevel::ALL {
        match Device::cpu_with(CpuOptions::new().level(level).threads(1)) {
            Ok(device) => {
                assert!(level.is_available());
                assert!(level == CpuLevel::Auto || device.level() == level.name());
                assert_eq!(device.name(), "cpu");
                assert!(replay(&softplus(&device), &x) == expected, "{level}");
            }
            Err(error) => assert_eq!((error.status(), level.is_available()), (Status::Device, false)),
        }
    }
    assert_eq!(Device::cpu_with(CpuOptions::new().threads(5000)).unwrap_err().status(), Status::Argument);
    assert_eq!(Device::cpu_with(CpuOptions::new().threads(usize::MAX)).unwrap_err().status(), Status::Argument);
    assert!(version().starts_with("0.1."));
}

#[test]
fn the_hosts_threads() {
    let calls = Arc::new(AtomicUsize::new(0));
    let x = ramp(1 << 20);
    let expected = replay(&softplus(&Device::cpu().unwrap()), &x);
    for helpers in 0..4 {
        let counted = calls.clone();
        let options = CpuOptions::new().threads(4).parallel_for(move |tasks| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::thread::scope(|scope| {
                for _ in 0..helpers {
                    scope.spawn(|| tasks.run_all());
                }
                assert!(tasks.len() > 1);
                tasks.run_next();
            });
        });
        let composite = softplus(&Device::cpu_with(options).unwrap());
        assert!(replay(&composite, &x) == expected, "{helpers} helpers");
    }
    assert!(calls.load(Ordering::Relaxed) >= 4);
}

#[test]
fn a_panic_in_the_hosts_threads_goes_on_after_the_replay() {
    let x = ramp(1 << 20);
    let expected = replay(&softplus(&Device::cpu().unwrap()), &x);
    let composite = softplus(
        &Device::cpu_with(CpuOptions::new().threads(4).parallel_for(|tasks| {
            tasks.run_next();
            panic!("the pool is gone");
        }))
        .unwrap(),
    );
    let mut y = vec![0.0_f32; x.len()];
    let panic = catch_unwind(AssertUnwindSafe(|| composite.replay(&[View::from(&x[..])], &mut [ViewMut::from(&mut y[..])])));
    assert_eq!(*panic.unwrap_err().downcast_ref::<&str>().unwrap(), "the pool is gone");
    assert!(y.iter().map(|y| y.to_bits()).eq(expected));
}

/// Counts what is out, and can be told to fail or to panic.
#[derive(Default)]
struct Counting {
    n_out: AtomicUsize,
    n_calls: AtomicUsize,
    n_until_failure: AtomicUsize, // 0: never
    panics: AtomicBool,
}

struct Counted(Arc<Counting>);

unsafe impl Allocate for Counted {
    fn allocate(&self, n_bytes: usize) -> *mut u8 {
        assert!(n_bytes > 0);
        let call = self.0.n_calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call == self.0.n_until_failure.load(Ordering::Relaxed) {
            assert!(!self.0.panics.load(Ordering::Relaxed), "no memory here");
            return std::ptr::null_mut();
        }
        self.0.n_out.fetch_add(n_bytes, Ordering::Relaxed);
        unsafe { alloc(Layout::from_size_align(n_bytes, 64).unwrap()) }
    }

    unsafe fn free(&self, pointer: *mut u8, n_bytes: usize) {
        self.0.n_out.fetch_sub(n_bytes, Ordering::Relaxed);
        unsafe { dealloc(pointer, Layout::from_size_align(n_bytes, 64).unwrap()) }
    }
}

fn uses_all_memory(counting: &Arc<Counting>) -> Result<()> {
    let device = Device::cpu_with(CpuOptions::new().threads(1).allocator(Counted(counting.clone())))?;
    let composite = device.compile("chain", [DType::Float32], |_, [x]| [x.exp().log1p().sqrt()])?;
    let buffer = Buffer::from_slice(&device, &[1.0_f32; 100])?;
    let mut y = Buffer::<f32>::new(&device, 100)?;
    drop(device);
    composite.replay_composed(&[buffer.view([100])?], &mut [y.view_mut([100])?])?;
    composite.replay(&[buffer.view([100])?], &mut [y.view_mut([100])?])?;
    assert_eq!(y.as_slice()[0], y.as_slice()[99]);
    y.free()
}

#[test]
fn the_hosts_memory() {
    let counting = Arc::new(Counting::default());
    uses_all_memory(&counting).unwrap();
    assert_eq!(counting.n_out.load(Ordering::Relaxed), 0);
    let n = counting.n_calls.load(Ordering::Relaxed);
    assert!(n > 10);
    for k in 1..=n {
        let counting = Arc::new(Counting { n_until_failure: AtomicUsize::new(k), ..Counting::default() });
        assert_eq!(uses_all_memory(&counting).unwrap_err().status(), Status::Memory, "allocation {k}");
        assert_eq!(counting.n_out.load(Ordering::Relaxed), 0);
        // The same by a panic, which goes on from the call it was in.
        let counting = Arc::new(Counting { n_until_failure: AtomicUsize::new(k), panics: AtomicBool::new(true), ..Counting::default() });
        let panic = catch_unwind(AssertUnwindSafe(|| uses_all_memory(&counting)));
        assert_eq!(*panic.unwrap_err().downcast_ref::<&str>().unwrap(), "no memory here", "allocation {k}");
        assert_eq!(counting.n_out.load(Ordering::Relaxed), 0);
    }
    // Nothing was left behind on this thread.
    uses_all_memory(&Arc::new(Counting::default())).unwrap();
}

#[test]
fn buffers_of_the_host() {
    let device = Device::cpu().unwrap();
    let stream = device.stream().unwrap();
    let mut x = Buffer::<u16>::new(&device, 5).unwrap();
    assert_eq!((x.as_slice(), x.len(), x.is_empty(), x.as_raw() as usize % 64), (&[0_u16; 5][..], 5, false, 0));
    x.as_mut_slice()[4] = 9;
    x.as_mut_slice()[0] = 1;
    let mut y = Buffer::new(&device, 5).unwrap();
    y.copy_from(&stream, &x).unwrap();
    assert_eq!(y.to_vec(&stream).unwrap(), [1, 0, 0, 0, 9]);
    assert_eq!(y.upload(&stream, &[1; 4]).unwrap_err().status(), Status::Argument);
    assert_eq!(y.download(&stream, &mut [1; 6]).unwrap_err().status(), Status::Argument);
    assert_eq!(y.copy_from(&stream, &Buffer::new(&device, 4).unwrap()).unwrap_err().status(), Status::Argument);
    assert_eq!(Buffer::<f32>::new(&device, usize::MAX).unwrap_err().status(), Status::Memory);
    assert_eq!(Buffer::<u8>::new(&device, usize::MAX).unwrap_err().status(), Status::Memory);
    assert_eq!(Buffer::<bool>::from_slice(&device, &[]).unwrap().to_vec(&stream).unwrap(), [false; 0]);
    assert!(x.view([2, 2]).is_err() && x.view_mut([5, 1]).is_ok());
    stream.synchronize().unwrap();
    assert!(stream.as_raw().is_null());
}

//! What the library calls back: the host's threads and memory. A panic in one does not go through the library's frames; it is kept,
//! and goes on from the call that the hook was called in.

use crate::sys;
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

type Panic = Box<dyn Any + Send>;

thread_local! {
    static KEPT: Cell<Option<Panic>> = Cell::new(None);
}

/// Runs a hook; where it panics, the first panic is kept and `otherwise` is the result.
fn guard<R>(otherwise: R, hook: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(hook)).unwrap_or_else(|panic| {
        // On a thread that is ending there is no place for it.
        let _ = KEPT.try_with(|kept| {
            let first = kept.take().unwrap_or(panic);
            kept.set(Some(first));
        });
        otherwise
    })
}

/// Goes on with a panic that was kept on this thread.
pub(crate) fn resume() {
    if let Ok(Some(panic)) = KEPT.try_with(Cell::take) {
        resume_unwind(panic);
    }
}

/// Forgets one, where there is no call to go on from: in a destructor.
pub(crate) fn forget() {
    let _ = KEPT.try_with(Cell::take);
}

/// The tasks of one replay, for the host's threads. Every thread that helps takes tasks until there are none:
///
/// ```
/// # fn main() -> onelaunch::Result<()> {
/// use onelaunch::{CpuOptions, Device};
///
/// let options = CpuOptions::new().threads(2).parallel_for(|tasks| {
///     std::thread::scope(|scope| {
///         scope.spawn(|| tasks.run_all());
///         tasks.run_all();
///     });
/// });
/// let device = Device::cpu_with(options)?;
/// # Ok(())
/// # }
/// ```
///
/// They end with the call, so they are lent, not given away:
///
/// ```compile_fail,E0521
/// # use onelaunch::CpuOptions;
/// CpuOptions::new().parallel_for(|tasks| {
///     std::thread::spawn(|| tasks.run_all());
/// });
/// ```
///
/// and a host's state that may not be shared between threads is not taken:
///
/// ```compile_fail,E0277
/// # use onelaunch::CpuOptions;
/// let calls = std::cell::Cell::new(0);
/// CpuOptions::new().parallel_for(move |tasks| {
///     calls.set(calls.get() + 1);
///     tasks.run_all();
/// });
/// ```
pub struct Tasks<'a> {
    task: unsafe extern "C" fn(*mut c_void, usize),
    argument: *mut c_void,
    n: usize,
    next: AtomicUsize,
    life: PhantomData<&'a ()>,
}

// SAFETY: the library's tasks may run on any threads at once; each is run once, because numbers are taken from a counter.
unsafe impl Sync for Tasks<'_> {}

impl Tasks<'_> {
    /// The number of tasks.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Runs a task that nobody has taken yet; false where there is none left.
    pub fn run_next(&self) -> bool {
        if self.next.load(Ordering::Relaxed) >= self.n {
            return false;
        }
        let i = self.next.fetch_add(1, Ordering::Relaxed);
        if i < self.n {
            // SAFETY: the library's task with one of its numbers, during its call.
            unsafe { (self.task)(self.argument, i) };
        }
        i < self.n
    }

    /// Runs tasks until none is left to take. Others may still be at theirs.
    pub fn run_all(&self) {
        while self.run_next() {}
    }
}

impl fmt::Debug for Tasks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("len", &self.n).finish()
    }
}

/// Memory for the library itself: handles, graphs, intermediates of the composed path; and of [`Buffer`](crate::Buffer) on a CPU.
///
/// # Safety
/// `allocate` returns null, or at least `n_bytes` bytes aligned to 64 that nobody else uses until they are given to `free`.
pub unsafe trait Allocate: Send + Sync {
    /// `n_bytes` bytes, at least 1; null where there are none.
    fn allocate(&self, n_bytes: usize) -> *mut u8;

    /// Takes what `allocate` returned back.
    ///
    /// # Safety
    /// `pointer` came from `allocate(n_bytes)` and is not used again.
    unsafe fn free(&self, pointer: *mut u8, n_bytes: usize);
}

pub(crate) type ParallelFor = Box<dyn Fn(&Tasks<'_>) + Send + Sync>;
pub(crate) type Allocator = Box<dyn Allocate>;

/// The hooks of a device, at addresses that stay: the library keeps them. They live longer than the device.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) parallel_for: Option<Box<ParallelFor>>,
    pub(crate) allocator: Option<Box<Allocator>>,
}

impl Hooks {
    pub(crate) fn are_any(&self) -> bool {
        self.parallel_for.is_some() || self.allocator.is_some()
    }

    pub(crate) fn raw_parallel_for(&self) -> (sys::ol_parallel_for, *mut c_void) {
        match &self.parallel_for {
            Some(hook) => (Some(call_parallel_for), &**hook as *const ParallelFor as *mut c_void),
            None => (None, ptr::null_mut()),
        }
    }

    pub(crate) fn raw_allocator(&self) -> sys::ol_allocator {
        match &self.allocator {
            Some(hook) => {
                sys::ol_allocator { allocate: Some(call_allocate), free: Some(call_free), user: &**hook as *const Allocator as *mut c_void }
            }
            None => sys::ol_allocator { allocate: None, free: None, user: ptr::null_mut() },
        }
    }
}

unsafe extern "C" fn call_parallel_for(user: *mut c_void, n_tasks: usize, task: sys::ol_task, argument: *mut c_void) {
    if let Some(task) = task {
        // SAFETY: `user` is the hook, which lives longer than the device.
        let hook = unsafe { &*(user as *const ParallelFor) };
        let tasks = Tasks { task, argument, n: n_tasks, next: AtomicUsize::new(0), life: PhantomData };
        guard((), || hook(&tasks));
        // What the host left undone, or a panic of its did. Its threads have let go of the tasks: they are only lent to it.
        tasks.run_all();
    }
}

unsafe extern "C" fn call_allocate(user: *mut c_void, n_bytes: usize) -> *mut c_void {
    // SAFETY: as above.
    let hook = unsafe { &*(user as *const Allocator) };
    guard(ptr::null_mut(), || hook.allocate(n_bytes) as *mut c_void)
}

unsafe extern "C" fn call_free(user: *mut c_void, pointer: *mut c_void, n_bytes: usize) {
    // SAFETY: as above; the library gives back what it got, once.
    let hook = unsafe { &*(user as *const Allocator) };
    guard((), || unsafe { hook.free(pointer as *mut u8, n_bytes) })
}

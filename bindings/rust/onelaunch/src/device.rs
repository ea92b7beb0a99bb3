//! Devices. A device is shared by all that was made on it; the last one ends it.

use crate::composite::Composite;
use crate::cpu::CpuOptions;
use crate::dtype::DType;
use crate::error::{check, static_text, Error, Result, Status};
use crate::graph::{self, Graph};
use crate::hooks::{self, Hooks};
use crate::platform::{Cpu, Platform};
use crate::stream::Stream;
use crate::sys;
use crate::value::Value;
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::c_char;
use std::ptr;
use std::sync::Arc;

/// The library's device, and the hooks it calls until its end.
pub struct Inner {
    raw: *mut sys::ol_device,
    hooks: Hooks,
}

// SAFETY: the library counts references and launches atomically and locks what it changes; hooks are Send and Sync.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}
// A hook that panicked has left the library as it was.
impl std::panic::UnwindSafe for Inner {}
impl std::panic::RefUnwindSafe for Inner {}

impl Inner {
    pub(crate) fn new(raw: *mut sys::ol_device, hooks: Hooks) -> Inner {
        Inner { raw, hooks }
    }

    pub(crate) fn raw(&self) -> *mut sys::ol_device {
        self.raw
    }

    pub(crate) fn name(&self) -> &str {
        // SAFETY: kept as long as the device.
        unsafe { static_text(sys::ol_device_name(self.raw)) }.unwrap_or("")
    }

    pub(crate) fn has_hooks(&self) -> bool {
        self.hooks.are_any()
    }

    /// After a call in which hooks may have run: goes on with the panic of one.
    #[inline]
    pub(crate) fn resume(&self) {
        if self.hooks.are_any() {
            hooks::resume();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the last user. The hooks are dropped after this.
        unsafe { sys::ol_device_destroy(self.raw) };
        if self.hooks.are_any() {
            hooks::forget();
        }
    }
}

/// A device: compiles composites and counts their launches. Cheap to clone; composites, buffers and streams keep it alive.
pub struct Device<P: Platform = Cpu> {
    inner: Arc<Inner>,
    platform: PhantomData<P>,
}

impl<P: Platform> Clone for Device<P> {
    fn clone(&self) -> Self {
        Device { inner: self.inner.clone(), platform: PhantomData }
    }
}

/// The library of a compatible version is loaded: while the major version is 0, of the same minor one.
pub(crate) fn check_version() -> Result<()> {
    let wanted = format!("{}.{}.", sys::OL_VERSION_MAJOR, sys::OL_VERSION_MINOR);
    if crate::version().starts_with(&wanted) {
        return Ok(());
    }
    Err(Error::new(Status::Device, "device", format!("libonelaunch is version {}; this crate is for {wanted}x", crate::version())))
}

impl Device<Cpu> {
    /// The CPU, with default options.
    pub fn cpu() -> Result<Device<Cpu>> {
        Device::cpu_with(CpuOptions::new())
    }

    /// The CPU. [`Status::Device`] where the level is not available on this machine or threads cannot be started.
    pub fn cpu_with(options: CpuOptions) -> Result<Device<Cpu>> {
        check_version()?;
        options.create()
    }
}

impl<P: Platform> Device<P> {
    pub(crate) fn from_inner(inner: Inner) -> Device<P> {
        Device { inner: Arc::new(inner), platform: PhantomData }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn share(&self) -> Arc<Inner> {
        self.inner.clone()
    }

    /// Compiles the graph that a closure describes, for inputs of these dtypes. The closure gets the inputs' values and returns the
    /// outputs; it is called once, before this returns. A panic in it goes on from here.
    ///
    /// ```
    /// # use onelaunch::{DType, Device, View, ViewMut};
    /// # fn main() -> onelaunch::Result<()> {
    /// let swiglu = Device::cpu()?.compile("swiglu", [DType::Float32; 2], |_, [x, up]| [x * x.sigmoid() * up])?;
    /// let mut y = [0.0_f32];
    /// swiglu.replay(&[View::new(&[1.0_f32], [1])?, View::new(&[10.0_f32], [1])?], &mut [ViewMut::new(&mut y, [1])?])?;
    /// assert_eq!(y, [7.310586_f32]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile<const N: usize, const M: usize>(
        &self,
        name: &str,
        input_dtypes: [DType; N],
        build: impl for<'g> FnOnce(&Graph<'g>, [Value<'g>; N]) -> [Value<'g>; M],
    ) -> Result<Composite<P>> {
        self.try_compile(name, input_dtypes, |g, inputs| Ok(build(g, inputs)))
    }

    /// As [`Device::compile`], with a closure that may fail: its error is returned as it is.
    ///
    /// ```
    /// # use onelaunch::{DType, Device};
    /// let cpu = Device::cpu().unwrap();
    /// let error = cpu
    ///     .try_compile::<1, 1, Box<dyn std::error::Error>>("scaled", [DType::Float32], |_, [x]| {
    ///         let scale: f32 = "a half".parse()?;
    ///         Ok([x * scale])
    ///     })
    ///     .unwrap_err();
    /// assert_eq!(error.to_string(), "invalid float literal");
    /// ```
    pub fn try_compile<const N: usize, const M: usize, E: From<Error>>(
        &self,
        name: &str,
        input_dtypes: [DType; N],
        build: impl for<'g> FnOnce(&Graph<'g>, [Value<'g>; N]) -> std::result::Result<[Value<'g>; M], E>,
    ) -> std::result::Result<Composite<P>, E> {
        self.trace(name, &input_dtypes, M, |g, inputs, outputs| {
            let inputs = <[Value<'_>; N]>::try_from(inputs).expect("as many values as dtypes");
            outputs.extend_from_slice(&build(g, inputs)?);
            Ok(())
        })
    }

    /// As [`Device::try_compile`], where the numbers of inputs and outputs are known at run time only.
    pub fn compile_many<E: From<Error>>(
        &self,
        name: &str,
        input_dtypes: &[DType],
        n_outputs: usize,
        build: impl for<'g> FnOnce(&Graph<'g>, &[Value<'g>]) -> std::result::Result<Vec<Value<'g>>, E>,
    ) -> std::result::Result<Composite<P>, E> {
        self.trace(name, input_dtypes, n_outputs, |g, inputs, outputs| {
            *outputs = build(g, inputs)?;
            Ok(())
        })
    }

    fn trace<E: From<Error>>(
        &self,
        name: &str,
        input_dtypes: &[DType],
        n_outputs: usize,
        build: impl for<'g> FnOnce(&Graph<'g>, &[Value<'g>], &mut Vec<Value<'g>>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Composite<P>, E> {
        let outcome = graph::compile(self.inner.raw, name, input_dtypes, n_outputs, build);
        let composite = outcome.map(|raw| self.own(raw));
        self.inner.resume();
        composite
    }

    /// Compiles a graph in text form. [`Status::Text`] says line:column and what was expected.
    ///
    /// ```
    /// # use onelaunch::{Device, Status, TextKind};
    /// # fn main() -> onelaunch::Result<()> {
    /// let cpu = Device::cpu()?;
    /// let doubled = cpu.compile("doubled", [onelaunch::DType::Float32], |_, [x]| [x + x])?;
    /// let again = cpu.compile_text(&doubled.text(TextKind::Graph))?;
    /// assert_eq!(again.text(TextKind::Graph), doubled.text(TextKind::Graph));
    /// assert_eq!(cpu.compile_text("grap").unwrap_err().status(), Status::Text);
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile_text(&self, text: &str) -> Result<Composite<P>> {
        let n = text.len();
        // SAFETY: n bytes of text.
        self.compile_raw(|composite, error| unsafe {
            sys::ol_compile_text(self.inner.raw, text.as_ptr() as *const c_char, n, composite, error)
        })
    }

    pub(crate) fn compile_raw(
        &self,
        call: impl FnOnce(*mut *mut sys::ol_composite, *mut sys::ol_error) -> sys::ol_status,
    ) -> Result<Composite<P>> {
        let mut raw = ptr::null_mut();
        let composite = check(|error| call(&mut raw, error)).map(|()| self.own(raw));
        self.inner.resume();
        composite
    }

    fn own(&self, raw: *mut sys::ol_composite) -> Composite<P> {
        // SAFETY: just made on this device.
        unsafe { Composite::from_raw(raw, self.share()) }
    }

    /// Launches started on this device so far, by replays and by the composed path.
    pub fn launches(&self) -> u64 {
        // SAFETY: a device.
        unsafe { sys::ol_device_launches(self.inner.raw) }
    }

    /// "cpu" or "cuda:0".
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// The SIMD level in use, "avx512", or the GPU's architecture, "sm_90".
    pub fn level(&self) -> &str {
        // SAFETY: kept as long as the device.
        unsafe { static_text(sys::ol_device_level(self.inner.raw)) }.unwrap_or("")
    }

    /// A stream of one's own, which does not wait for the default one. On a CPU it is nothing.
    pub fn stream(&self) -> Result<Stream<P>> {
        Stream::create(self.share())
    }

    /// The default stream.
    pub fn default_stream(&self) -> Stream<P> {
        Stream::default_of(self.share())
    }

    /// The handle, for calls of [`sys`]. Valid as long as this device.
    pub fn as_raw(&self) -> *mut sys::ol_device {
        self.inner.raw
    }
}

impl<P: Platform> fmt::Debug for Device<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.name()).field("level", &self.level()).finish()
    }
}

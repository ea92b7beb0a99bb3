//! NVIDIA GPUs. Nothing of CUDA is needed to build; the driver is opened by the first call, and NVRTC by the first compilation.
//! [`Status::Device`](crate::Status::Device) names what is missing.

use crate::device::{check_version, Device, Inner};
use crate::error::{array_text, check, Result};
use crate::hooks::Hooks;
use crate::platform::Cuda;
use crate::sys;
use std::mem::MaybeUninit;
use std::ptr;

/// What a GPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// "NVIDIA H200".
    pub name: String,
    /// 90 for compute capability 9.0.
    pub capability: u32,
    /// The number of multiprocessors.
    pub n_multiprocessors: u32,
    /// Of its memory.
    pub n_bytes: u64,
    /// The newest CUDA that the driver serves: 13000 for 13.0.
    pub driver_version: u32,
}

/// The number of GPUs; an error where there is no driver.
pub fn count() -> Result<usize> {
    let mut n = 0;
    // SAFETY: a place for the number.
    check(|error| unsafe { sys::ol_cuda_count(&mut n, error) })?;
    Ok(n as usize)
}

/// What the GPU of that number is.
pub fn describe(ordinal: usize) -> Result<Facts> {
    let mut facts = MaybeUninit::<sys::ol_cuda_facts>::uninit();
    // SAFETY: a place for the facts.
    check(|error| unsafe { sys::ol_cuda_describe(number(ordinal), facts.as_mut_ptr(), error) })?;
    // SAFETY: a success has written them.
    let facts = unsafe { facts.assume_init() };
    Ok(Facts {
        name: array_text(&facts.name),
        capability: facts.capability as u32,
        n_multiprocessors: facts.n_multiprocessors as u32,
        n_bytes: facts.n_bytes,
        driver_version: facts.driver_version as u32,
    })
}

/// The version of the NVRTC that would be used: 13000 for 13.0.
pub fn compiler_version() -> Result<u32> {
    let mut version = 0;
    // SAFETY: a place for the number.
    check(|error| unsafe { sys::ol_cuda_compiler(&mut version, error) })?;
    Ok(version as u32)
}

/// What is too large is the number of no GPU.
fn number(ordinal: usize) -> i32 {
    i32::try_from(ordinal).unwrap_or(i32::MAX)
}

/// Options of [`Device::cuda_with`].
#[derive(Default)]
pub struct CudaOptions {
    hooks: Hooks,
}

impl CudaOptions {
    /// The default: the C library's memory.
    pub fn new() -> CudaOptions {
        CudaOptions::default()
    }

    /// Memory of the host for what the library allocates there; as [`CpuOptions::allocator`](crate::CpuOptions::allocator).
    pub fn allocator(mut self, hook: impl crate::Allocate + 'static) -> Self {
        self.hooks.allocator = Some(Box::new(Box::new(hook)));
        self
    }

    fn create(
        self,
        call: impl FnOnce(*const sys::ol_cuda_options, *mut *mut sys::ol_device, *mut sys::ol_error) -> sys::ol_status,
    ) -> Result<Device<Cuda>> {
        check_version()?;
        let options = sys::ol_cuda_options { allocator: self.hooks.raw_allocator() };
        let mut raw = ptr::null_mut();
        let device = check(|error| call(&options, &mut raw, error)).map(|()| Device::from_inner(Inner::new(raw, self.hooks)));
        crate::hooks::resume();
        device
    }
}

impl std::fmt::Debug for CudaOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaOptions").field("allocator", &self.hooks.allocator.is_some()).finish()
    }
}

impl Device<Cuda> {
    /// The GPU of that number, as the driver counts them, in its primary context, which CUDA's runtime uses too.
    pub fn cuda(ordinal: usize) -> Result<Device<Cuda>> {
        Device::cuda_with(ordinal, CudaOptions::new())
    }

    /// As [`Device::cuda`], with options.
    pub fn cuda_with(ordinal: usize, options: CudaOptions) -> Result<Device<Cuda>> {
        // SAFETY: the options live through the call, the hooks longer than the device.
        options.create(|options, device, error| unsafe { sys::ol_device_cuda(number(ordinal), options, device, error) })
    }

    /// The GPU of the CUDA context that is current on this thread, in that context.
    ///
    /// # Safety
    /// The context lives longer than the device and all that is made on it.
    pub unsafe fn cuda_current(options: CudaOptions) -> Result<Device<Cuda>> {
        // SAFETY: as above, and the caller's.
        options.create(|options, device, error| unsafe { sys::ol_device_cuda_current(options, device, error) })
    }
}

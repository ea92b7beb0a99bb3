//! Options of a CPU device.

use crate::device::{Device, Inner};
use crate::error::{check, static_text, Error, Result, Status};
use crate::hooks::{Allocate, Hooks, Tasks};
use crate::platform::Cpu;
use crate::sys;
use std::fmt;
use std::ptr;

/// A SIMD level. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CpuLevel {
    /// `ONELAUNCH_CPU` if that is set, else the best there is.
    Auto = sys::OL_CPU_AUTO,
    /// SSE2 on x86-64; plain C elsewhere.
    Baseline = sys::OL_CPU_BASELINE,
    /// AVX2, FMA, F16C and BMI2.
    Avx2 = sys::OL_CPU_AVX2,
    /// AVX-512 F, BW, CD, DQ and VL.
    Avx512 = sys::OL_CPU_AVX512,
    /// AArch64.
    Neon = sys::OL_CPU_NEON,
}

impl CpuLevel {
    /// Every level, the automatic choice first.
    pub const ALL: [CpuLevel; 5] = [CpuLevel::Auto, CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512, CpuLevel::Neon];

    /// Whether this machine runs it.
    pub fn is_available(self) -> bool {
        // SAFETY: any value is allowed.
        unsafe { sys::ol_cpu_level_available(self as sys::ol_cpu_level) != 0 }
    }

    /// "avx512".
    pub fn name(self) -> &'static str {
        // SAFETY: static storage.
        unsafe { static_text(sys::ol_cpu_level_name(self as sys::ol_cpu_level)) }.unwrap_or("auto")
    }
}

impl fmt::Display for CpuLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Options of [`Device::cpu_with`]; those left alone are a good default.
pub struct CpuOptions {
    level: CpuLevel,
    threads: usize,
    hooks: Hooks,
}

impl CpuOptions {
    /// The default: the best level, a thread per CPU, the library's own threads, the C library's memory.
    pub fn new() -> CpuOptions {
        CpuOptions { level: CpuLevel::Auto, threads: 0, hooks: Hooks::default() }
    }

    /// The SIMD level.
    pub fn level(mut self, level: CpuLevel) -> Self {
        self.level = level;
        self
    }

    /// At most so many threads work on a replay; 0: one per CPU available; 1: the caller's only.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The host's own threads: see [`Tasks`]. Called on the thread that replays, from several at once if replays are. Tasks that it
    /// leaves undone run on the caller's thread after it returned. A panic goes on from the replay, whose outputs are written.
    pub fn parallel_for(mut self, hook: impl Fn(&Tasks<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.parallel_for = Some(Box::new(Box::new(hook)));
        self
    }

    /// The host's memory for what the library allocates. A panic in it is a failed allocation, and goes on from the call it was in.
    pub fn allocator(mut self, hook: impl Allocate + 'static) -> Self {
        self.hooks.allocator = Some(Box::new(Box::new(hook)));
        self
    }

    pub(crate) fn create(self) -> Result<Device<Cpu>> {
        let (parallel_for, parallel_user) = self.hooks.raw_parallel_for();
        let n_threads = i32::try_from(self.threads)
            .map_err(|_| Error::new(Status::Argument, "device cpu", format!("threads is {}; expected 0 to 4096", self.threads)))?;
        let options = sys::ol_cpu_options {
            level: self.level as sys::ol_cpu_level,
            n_threads,
            parallel_for,
            parallel_user,
            allocator: self.hooks.raw_allocator(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the options live through the call, the hooks longer than the device.
        let outcome = check(|error| unsafe { sys::ol_device_cpu(&options, &mut raw, error) });
        let device = outcome.map(|()| Device::from_inner(Inner::new(raw, self.hooks)));
        crate::hooks::resume();
        device
    }
}

impl Default for CpuOptions {
    fn default() -> CpuOptions {
        CpuOptions::new()
    }
}

impl fmt::Debug for CpuOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuOptions")
            .field("level", &self.level)
            .field("threads", &self.threads)
            .field("parallel_for", &self.hooks.parallel_for.is_some())
            .field("allocator", &self.hooks.allocator.is_some())
            .finish()
    }
}

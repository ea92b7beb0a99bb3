//! Streams.

use crate::device::{Device, Inner};
use crate::error::{check, Result};
use crate::platform::{Cpu, Platform};
use crate::sys;
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr;
use std::sync::Arc;

/// A stream of a GPU: work put into it runs in order. On a CPU a stream is nothing, and nothing has to be waited for.
pub struct Stream<P: Platform = Cpu> {
    raw: sys::ol_stream,
    is_own: bool,
    device: Arc<Inner>,
    platform: PhantomData<P>,
}

// SAFETY: the driver takes a stream from any thread.
unsafe impl<P: Platform> Send for Stream<P> {}
unsafe impl<P: Platform> Sync for Stream<P> {}

impl<P: Platform> Stream<P> {
    pub(crate) fn create(device: Arc<Inner>) -> Result<Stream<P>> {
        let mut raw = ptr::null_mut();
        // SAFETY: a device, and a place for the stream.
        check(|error| unsafe { sys::ol_stream_create(device.raw(), &mut raw, error) })?;
        Ok(Stream { raw, is_own: true, device, platform: PhantomData })
    }

    pub(crate) fn default_of(device: Arc<Inner>) -> Stream<P> {
        Stream { raw: ptr::null_mut(), is_own: false, device, platform: PhantomData }
    }

    /// The caller's own `CUstream`, which stays the caller's.
    ///
    /// # Safety
    /// It is a stream of the device's context, and lives as long as what this gives.
    pub unsafe fn from_raw(device: &Device<P>, raw: *mut c_void) -> Stream<P> {
        Stream { raw, is_own: false, device: device.share(), platform: PhantomData }
    }

    /// Waits until what is in the stream is done, and reports what went wrong in it.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: a device and its stream.
        check(|error| unsafe { sys::ol_stream_synchronize(self.device.raw(), self.raw, error) })
    }

    /// The `CUstream`; null for the default one.
    pub fn as_raw(&self) -> *mut c_void {
        self.raw
    }
}

impl<P: Platform> Drop for Stream<P> {
    fn drop(&mut self) {
        if self.is_own {
            // A stream with work left is let go of by the driver when that is done. There is nobody to tell of a failure.
            // SAFETY: its owner, and the device is still there.
            let _ = check(|error| unsafe { sys::ol_stream_destroy(self.device.raw(), self.raw, error) });
        }
    }
}

impl<P: Platform> fmt::Debug for Stream<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.device.name()).field("raw", &self.raw).finish()
    }
}

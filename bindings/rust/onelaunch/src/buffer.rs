//! Memory of a device, for those who have none of their own.

use crate::device::{Device, Inner};
use crate::dtype::{DType, Element};
use crate::error::{check, Error, Result, Status};
use crate::hooks;
use crate::platform::{Cpu, Platform};
use crate::stream::Stream;
use crate::sys;
use crate::view::{View, ViewMut};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{size_of, size_of_val};
use std::os::raw::c_void;
use std::ptr;
use std::slice;
use std::sync::Arc;

/// Elements in a device's memory: of a GPU, or of the host from a CPU device's allocator (64-byte aligned).
///
/// Work on a GPU goes on after a call returned. The driver keeps the order within a stream, waits before it frees memory, and
/// [`Buffer::download`] waits for what it copies; whoever uses a buffer in two streams has to keep their order himself.
///
/// ```
/// # use onelaunch::{Buffer, DType, Device};
/// # fn main() -> onelaunch::Result<()> {
/// let device = Device::cpu()?;                                            // or Device::cuda(0)
/// let stream = device.stream()?;
/// let negate = device.compile("negate", [DType::Float32], |_, [x]| [-x])?;
/// let x = Buffer::from_slice(&device, &[1.0_f32, 2.0])?;
/// let mut y = Buffer::<f32>::new(&device, 2)?;
/// negate.replay_on(&stream, &[x.view([2])?], &mut [y.view_mut([2])?])?;
/// assert_eq!(y.to_vec(&stream)?, [-1.0, -2.0]);
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T: Element, P: Platform = Cpu> {
    pointer: *mut T,
    len: usize,
    device: Arc<Inner>,
    platform: PhantomData<P>,
}

// SAFETY: it owns its elements, which are Send and Sync.
unsafe impl<T: Element, P: Platform> Send for Buffer<T, P> {}
unsafe impl<T: Element, P: Platform> Sync for Buffer<T, P> {}

impl<T: Element, P: Platform> Buffer<T, P> {
    /// Memory for `len` elements: zeros on a CPU, whatever was there on a GPU.
    pub fn new(device: &Device<P>, len: usize) -> Result<Self> {
        let n_bytes = len
            .checked_mul(size_of::<T>())
            .filter(|&n| isize::try_from(n).is_ok())
            .ok_or_else(|| Error::new(Status::Memory, "allocate", format!("{len} elements of {} do not fit an address space", T::DTYPE)))?;
        let device = device.share();
        let mut pointer: *mut c_void = ptr::null_mut();
        // SAFETY: a device, and a place for the pointer.
        let outcome = check(|error| unsafe { sys::ol_device_allocate(device.raw(), n_bytes, &mut pointer, error) });
        let buffer = outcome.map(|()| Buffer { pointer: pointer as *mut T, len, device: device.clone(), platform: PhantomData });
        device.resume();
        let buffer = buffer?;
        if P::IS_HOST {
            // SAFETY: its own memory, of n_bytes bytes.
            unsafe { ptr::write_bytes(buffer.pointer as *mut u8, 0, n_bytes) };
        }
        Ok(buffer)
    }

    /// Memory that holds a copy of these elements. Waits for the copy.
    pub fn from_slice(device: &Device<P>, elements: &[T]) -> Result<Self> {
        let mut buffer = Buffer::new(device, elements.len())?;
        buffer.upload(&device.default_stream(), elements)?;
        Ok(buffer)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All elements as an input, row-major.
    pub fn view(&self, shape: impl AsRef<[usize]>) -> Result<View<'_, P>> {
        Ok(View::from_tensor(self.tensor(shape.as_ref())?, P::tag(&self.device)))
    }

    /// All elements as an output, row-major.
    pub fn view_mut(&mut self, shape: impl AsRef<[usize]>) -> Result<ViewMut<'_, P>> {
        Ok(ViewMut::from_tensor(self.tensor(shape.as_ref())?, P::tag(&self.device)))
    }

    fn tensor(&self, shape: &[usize]) -> Result<sys::ol_tensor> {
        crate::view::whole(self.pointer, self.len, shape)
    }

    /// Copies all elements from the host, after what is in the stream, and waits for it.
    pub fn upload(&mut self, stream: &Stream<P>, elements: &[T]) -> Result<()> {
        self.check_len(elements.len())?;
        // SAFETY: as many bytes there as here. The host's are borrowed until the copy is done, or has failed.
        unsafe { self.copy(stream, self.pointer as *mut c_void, elements.as_ptr() as *const c_void) }?;
        stream.synchronize()
    }

    /// Copies all elements to the host, after what is in the stream, and waits for it.
    pub fn download(&self, stream: &Stream<P>, elements: &mut [T]) -> Result<()> {
        self.check_len(elements.len())?;
        // SAFETY: as in upload.
        let outcome = unsafe { self.copy(stream, elements.as_mut_ptr() as *mut c_void, self.pointer as *const c_void) };
        let outcome = outcome.and_then(|()| stream.synchronize());
        if T::DTYPE == DType::Bool && !P::IS_HOST {
            // A GPU's memory may hold any byte; a bool is 0 or 1.
            let bytes = elements.as_mut_ptr() as *mut u8;
            for i in 0..size_of_val(elements) {
                // SAFETY: the elements' bytes, looked at as such.
                unsafe { *bytes.add(i) = u8::from(*bytes.add(i) != 0) };
            }
        }
        outcome
    }

    /// A copy of all elements on the host, after what is in the stream.
    pub fn to_vec(&self, stream: &Stream<P>) -> Result<Vec<T>> {
        // SAFETY: all bits zero is an element of every dtype.
        let mut elements = vec![unsafe { std::mem::zeroed::<T>() }; self.len];
        self.download(stream, &mut elements)?;
        Ok(elements)
    }

    /// Copies all elements of another buffer of the device, in the stream. Does not wait on a GPU.
    pub fn copy_from(&mut self, stream: &Stream<P>, from: &Buffer<T, P>) -> Result<()> {
        self.check_len(from.len)?;
        if !P::IS_HOST && !Arc::ptr_eq(&self.device, &from.device) {
            return Err(Error::new(
                Status::Argument,
                "copy",
                format!("the source is memory of another device; expected the target's, {}", self.device.name()),
            ));
        }
        // SAFETY: as many bytes there as here, of the device.
        unsafe { self.copy(stream, self.pointer as *mut c_void, from.pointer as *const c_void) }
    }

    /// As [`Buffer::upload`], without waiting.
    ///
    /// # Safety
    /// The host's elements stay as they are until the stream was synchronized.
    pub unsafe fn upload_async(&mut self, stream: &Stream<P>, elements: &[T]) -> Result<()> {
        self.check_len(elements.len())?;
        // SAFETY: the caller's.
        unsafe { self.copy(stream, self.pointer as *mut c_void, elements.as_ptr() as *const c_void) }
    }

    /// As [`Buffer::download`], without waiting, to where `elements` points.
    ///
    /// # Safety
    /// There is place for all elements, which nobody looks at before the stream was synchronized. A bool may be any byte.
    pub unsafe fn download_async(&self, stream: &Stream<P>, elements: *mut T) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { self.copy(stream, elements as *mut c_void, self.pointer as *const c_void) }
    }

    /// # Safety
    /// Both have the bytes of this buffer's elements, until the stream has got there.
    unsafe fn copy(&self, stream: &Stream<P>, to: *mut c_void, from: *const c_void) -> Result<()> {
        let n_bytes = self.len * size_of::<T>();
        // SAFETY: the caller's.
        check(|error| unsafe { sys::ol_device_copy(self.device.raw(), stream.as_raw(), to, from, n_bytes, error) })
    }

    fn check_len(&self, len: usize) -> Result<()> {
        if len == self.len {
            return Ok(());
        }
        Err(Error::new(Status::Argument, "copy", format!("{len} elements; expected {}, as the buffer has", self.len)))
    }

    /// The address in the device's memory.
    pub fn as_raw(&self) -> *mut T {
        self.pointer
    }

    /// Gives the memory back and says what went wrong; dropping the buffer does so in silence.
    pub fn free(self) -> Result<()> {
        let mut this = self;
        let outcome = this.give_back();
        this.device.resume();
        outcome
    }

    fn give_back(&mut self) -> Result<()> {
        let pointer = std::mem::replace(&mut self.pointer, ptr::null_mut());
        let n_bytes = self.len * size_of::<T>();
        // SAFETY: what was allocated, once; null is allowed.
        check(|error| unsafe { sys::ol_device_free(self.device.raw(), pointer as *mut c_void, n_bytes, error) })
    }
}

impl<T: Element> Buffer<T, Cpu> {
    /// The elements, which are in the host's memory.
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: len elements, initialised.
        unsafe { slice::from_raw_parts(self.pointer, self.len) }
    }

    /// The elements, which are in the host's memory.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: len elements, initialised.
        unsafe { slice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl<T: Element, P: Platform> Drop for Buffer<T, P> {
    fn drop(&mut self) {
        let _ = self.give_back();
        if self.device.has_hooks() {
            hooks::forget();
        }
    }
}

impl<T: Element, P: Platform> fmt::Debug for Buffer<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("dtype", &T::DTYPE).field("len", &self.len).field("device", &self.device.name()).finish()
    }
}

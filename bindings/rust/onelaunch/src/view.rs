//! Views: slices with a shape and strides, checked to lie inside of the slice.
//!
//! A view is the library's `ol_tensor` and a lifetime, so that an array of views is handed over as it is.

use crate::device::Device;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result, Status};
use crate::platform::{sealed, Cpu, Platform};
use crate::sys;
use crate::MAX_RANK;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::raw::c_void;

/// What the library reads, and which GPU the memory is of (nothing on a CPU).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tensor<P: sealed::Platform> {
    pub(crate) raw: sys::ol_tensor,
    pub(crate) tag: P::Tag,
}

/// An input: a shared borrow of elements, with a shape and strides. Cheap to copy; nothing is copied to make one.
///
/// Strides are in elements, and may be zero or negative. `View::from(&slice)` is the slice in one dimension.
#[repr(transparent)]
pub struct View<'a, P: Platform = Cpu> {
    pub(crate) tensor: Tensor<P>,
    life: PhantomData<&'a [u8]>,
}

/// An output: an exclusive borrow of elements, with a shape and strides.
#[repr(transparent)]
pub struct ViewMut<'a, P: Platform = Cpu> {
    pub(crate) tensor: Tensor<P>,
    life: PhantomData<&'a mut [u8]>,
}

// SAFETY: as &[T] and &mut [T] of elements, which are Send and Sync; a GPU's addresses are of all threads.
unsafe impl<P: Platform> Send for View<'_, P> {}
unsafe impl<P: Platform> Sync for View<'_, P> {}
unsafe impl<P: Platform> Send for ViewMut<'_, P> {}
unsafe impl<P: Platform> Sync for ViewMut<'_, P> {}

impl<P: Platform> Clone for View<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for View<'_, P> {}

fn wrong(description: String) -> Error {
    Error::new(Status::Shape, "view", description)
}

/// The extents as the library counts them.
pub(crate) fn extents(operation: &str, shape: &[usize]) -> Result<[i64; MAX_RANK]> {
    let mut dims = [0; MAX_RANK];
    if shape.len() > MAX_RANK {
        let description = format!("rank {}, expected 0 to {MAX_RANK}", shape.len());
        return Err(Error::new(Status::Argument, operation, description));
    }
    for (dim, &extent) in dims.iter_mut().zip(shape) {
        *dim = i64::try_from(extent)
            .map_err(|_| Error::new(Status::Shape, operation, format!("shape {shape:?} does not fit an address space")))?;
    }
    Ok(dims)
}

/// The tensor of these elements, if all of them are among the `len` that start at `base`.
fn tensor<T: Element>(base: *mut T, len: usize, offset: usize, shape: &[usize], strides: &[isize]) -> Result<sys::ol_tensor> {
    let dims = extents("view", shape)?;
    if strides.len() != shape.len() {
        return Err(wrong(format!("shape {shape:?} with strides {strides:?}: expected a stride for each extent")));
    }
    let mut low = offset as i128;
    let mut high = offset as i128;
    for (&extent, &stride) in shape.iter().zip(strides) {
        // A product is below 2^126 in size; a sum of several may be too large.
        let reach = (extent.max(1) as i128 - 1) * stride as i128;
        let end = if reach < 0 { &mut low } else { &mut high };
        *end = end.checked_add(reach).ok_or_else(|| wrong(format!("shape {shape:?} does not fit an address space")))?;
    }
    let empty = shape.contains(&0);
    if if empty { offset > len } else { low < 0 || high >= len as i128 } {
        return Err(wrong(format!(
            "shape {shape:?} with strides {strides:?} from element {offset} reaches from element {low} to {high} of a slice of {len}"
        )));
    }
    let mut raw = sys::ol_tensor {
        data: base.wrapping_add(offset) as *mut c_void,
        dtype: T::DTYPE.to_raw(),
        rank: shape.len() as i32,
        shape: dims,
        strides: [0; MAX_RANK],
    };
    for (place, &stride) in raw.strides.iter_mut().zip(strides) {
        *place = stride as i64;
    }
    Ok(raw)
}

/// A row-major tensor of exactly all elements. Made for every replay where views are not kept, so without detours.
#[inline]
pub(crate) fn whole<T: Element>(base: *mut T, len: usize, shape: &[usize]) -> Result<sys::ol_tensor> {
    let mut raw = sys::ol_tensor {
        data: base as *mut c_void,
        dtype: T::DTYPE.to_raw(),
        rank: shape.len() as i32,
        shape: [0; MAX_RANK],
        strides: [0; MAX_RANK],
    };
    let (mut stride, mut fits, mut is_empty) = (1_i64, shape.len() <= MAX_RANK, false);
    for (d, &extent) in shape.iter().enumerate().take(MAX_RANK).rev() {
        raw.shape[d] = extent as i64;
        raw.strides[d] = stride;
        is_empty |= extent == 0;
        match i64::try_from(extent.max(1)).ok().and_then(|extent| stride.checked_mul(extent)) {
            Some(next) => stride = next,
            None => fits = false,
        }
    }
    if fits && if is_empty { len == 0 } else { stride as usize == len } {
        return Ok(raw);
    }
    Err(not_whole(len, shape, fits))
}

#[cold]
fn not_whole(len: usize, shape: &[usize], fits: bool) -> Error {
    match extents("view", shape) {
        Ok(_) if fits => wrong(format!("shape {shape:?} is not that of {len} elements; View::strided takes a part of a slice")),
        Ok(_) => wrong(format!("shape {shape:?} does not fit an address space")),
        Err(error) => error,
    }
}

/// A row-major tensor of exactly all bytes. Any byte is a bool as an input, and an output may be of any bytes.
fn whole_bytes(base: *mut u8, n_bytes: usize, dtype: DType, shape: &[usize]) -> Result<sys::ol_tensor> {
    let size = dtype.size();
    if n_bytes % size != 0 {
        return Err(wrong(format!("{n_bytes} bytes are no whole number of elements of {dtype}")));
    }
    // Counted in elements, so that no byte is out of reach; the address stays as it is.
    let mut raw = whole(base, n_bytes / size, shape)?;
    raw.dtype = dtype.to_raw();
    Ok(raw)
}

/// What both kinds of views have.
macro_rules! common {
    ($view:ident) => {
        impl<'a, P: Platform> $view<'a, P> {
            /// From parts that were checked.
            #[inline]
            pub(crate) fn from_tensor(raw: sys::ol_tensor, tag: P::Tag) -> Self {
                $view { tensor: Tensor { raw, tag }, life: PhantomData }
            }

            /// A view of memory that this crate knows nothing of: another library's, pinned memory that a GPU reads.
            /// `data` is the address of element (0, …, 0). The library checks everything but the memory itself.
            ///
            /// # Safety
            /// Every element of the view is memory that `device` may read (and write, for an output) for `'a`, under Rust's rules
            /// of borrowing: nothing writes it while it is read, and nothing reads it while it is an output. On a GPU this is so
            /// until the work that was put in the stream is done. A bool of the host's is 0 or 1.
            pub unsafe fn from_raw(
                device: &'a Device<P>,
                data: *mut c_void,
                dtype: DType,
                shape: &[usize],
                strides: &[isize],
            ) -> Result<Self> {
                let dims = extents("view", shape)?;
                if strides.len() != shape.len() {
                    return Err(wrong(format!("shape {shape:?} with strides {strides:?}: expected a stride for each extent")));
                }
                let mut raw = sys::ol_tensor { data, dtype: dtype.to_raw(), rank: shape.len() as i32, shape: dims, strides: [0; MAX_RANK] };
                for (place, &stride) in raw.strides.iter_mut().zip(strides) {
                    *place = stride as i64;
                }
                Ok(Self::from_tensor(raw, P::tag(device.inner())))
            }

            /// The dtype of its elements.
            pub fn dtype(&self) -> DType {
                DType::given(self.tensor.raw.dtype)
            }

            /// The number of dimensions.
            pub fn rank(&self) -> usize {
                self.tensor.raw.rank as usize
            }

            /// The extents.
            pub fn shape(&self) -> Vec<usize> {
                self.tensor.raw.shape[..self.rank()].iter().map(|&extent| extent as usize).collect()
            }

            /// The strides, in elements.
            pub fn strides(&self) -> Vec<isize> {
                self.tensor.raw.strides[..self.rank()].iter().map(|&stride| stride as isize).collect()
            }

            /// The address of element (0, …, 0), and the rest as the C library takes it.
            pub fn as_raw(&self) -> &sys::ol_tensor {
                &self.tensor.raw
            }

            /// The part from `range.start` to `range.end` of one axis.
            ///
            /// ```
            /// # use onelaunch::View;
            /// # fn main() -> onelaunch::Result<()> {
            /// let projection = [0.0_f32; 4 * 64];                     // each row: b of 32 heads, then a of 32 heads
            /// let rows = View::new(&projection, [4, 64])?;
            /// let (b, a) = (rows.narrow(1, 0..32)?, rows.narrow(1, 32..64)?);
            /// assert_eq!((a.shape(), a.strides()), (vec![4, 32], vec![64, 1]));
            /// # Ok(())
            /// # }
            /// ```
            pub fn narrow(mut self, axis: usize, range: Range<usize>) -> Result<Self> {
                let extent = self.axis_extent(axis)?;
                let raw = &mut self.tensor.raw;
                if range.start > range.end || range.end > extent {
                    return Err(wrong(format!("elements {range:?} of axis {axis}; expected a range within 0..{extent}")));
                }
                raw.shape[axis] = (range.end - range.start) as i64;
                if range.start < extent {
                    advance(raw, axis, range.start);
                }
                Ok(self)
            }

            /// The axes in another order: axis `d` of the result is axis `axes[d]` of this view.
            pub fn permute(mut self, axes: impl AsRef<[usize]>) -> Result<Self> {
                let (axes, rank, from) = (axes.as_ref(), self.rank(), self.tensor.raw);
                let mut seen = [false; MAX_RANK];
                let is_permutation =
                    axes.len() == rank && axes.iter().all(|&axis| axis < rank && !std::mem::replace(&mut seen[axis], true));
                if !is_permutation {
                    return Err(wrong(format!("axes {axes:?}; expected each of 0..{rank} once")));
                }
                for (d, &axis) in axes.iter().enumerate() {
                    self.tensor.raw.shape[d] = from.shape[axis];
                    self.tensor.raw.strides[d] = from.strides[axis];
                }
                Ok(self)
            }

            fn axis_extent(&self, axis: usize) -> Result<usize> {
                if axis >= self.rank() {
                    return Err(wrong(format!("axis {axis}; expected one of 0..{}, the rank", self.rank())));
                }
                Ok(self.tensor.raw.shape[axis] as usize)
            }
        }

        impl<P: Platform> fmt::Debug for $view<'_, P> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($view))
                    .field("dtype", &self.dtype())
                    .field("shape", &self.shape())
                    .field("strides", &self.strides())
                    .finish()
            }
        }
    };
}

common!(View);
common!(ViewMut);

/// Moves the start along an axis. Wrapping, because an empty view may have strides that lead anywhere; no element is read then.
fn advance(raw: &mut sys::ol_tensor, axis: usize, by: usize) {
    let size = DType::given(raw.dtype).size() as isize;
    let bytes = (by as isize).wrapping_mul(raw.strides[axis] as isize).wrapping_mul(size);
    raw.data = (raw.data as *mut u8).wrapping_offset(bytes) as *mut c_void;
}

impl<'a> View<'a, Cpu> {
    /// All elements of a slice, row-major. [`Status::Shape`] where the shape has another number of elements.
    #[inline]
    pub fn new<T: Element>(elements: &'a [T], shape: impl AsRef<[usize]>) -> Result<Self> {
        let raw = whole(elements.as_ptr() as *mut T, elements.len(), shape.as_ref())?;
        Ok(View::from_tensor(raw, ()))
    }

    /// Elements of a slice by strides, in elements, from the one at `offset`. [`Status::Shape`] where one lies outside.
    ///
    /// ```
    /// # use onelaunch::{Status, View};
    /// # fn main() -> onelaunch::Result<()> {
    /// let x = [0, 1, 2, 3, 4, 5];
    /// let backwards = View::strided(&x, 5, [6], [-1])?;
    /// let repeated = View::strided(&x, 0, [4, 3], [0, 1])?;
    /// let error = View::strided(&x, 1, [3, 2], [2, 1]).unwrap_err();
    /// assert_eq!(error.status(), Status::Shape);
    /// assert!(error.description().ends_with("reaches from element 1 to 6 of a slice of 6"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn strided<T: Element>(elements: &'a [T], offset: usize, shape: impl AsRef<[usize]>, strides: impl AsRef<[isize]>) -> Result<Self> {
        let raw = tensor(elements.as_ptr() as *mut T, elements.len(), offset, shape.as_ref(), strides.as_ref())?;
        Ok(View::from_tensor(raw, ()))
    }

    /// Bytes as elements of a dtype that is known at run time only, row-major; they need not be aligned. [`Status::Shape`] where the shape
    /// has another number of bytes.
    ///
    /// ```
    /// # use onelaunch::{DType, View};
    /// # fn main() -> onelaunch::Result<()> {
    /// let file = [0_u8; 25];                                  // a header of one byte, and six elements
    /// let weights = View::from_bytes(&file[1..], DType::Float32, [2, 3])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_bytes(bytes: &'a [u8], dtype: DType, shape: impl AsRef<[usize]>) -> Result<Self> {
        Ok(View::from_tensor(whole_bytes(bytes.as_ptr() as *mut u8, bytes.len(), dtype, shape.as_ref())?, ()))
    }

    /// One element, of rank 0.
    pub fn scalar<T: Element>(element: &'a T) -> Self {
        View::new(std::slice::from_ref(element), []).expect("one element has shape []")
    }
}

impl<'a, P: Platform> View<'a, P> {
    /// The elements repeated over a larger shape by NumPy's rules: extents of 1, and axes that the view lacks in front, are repeated.
    /// A replay broadcasts its inputs by itself; this is for those who need one shape.
    pub fn broadcast_to(self, shape: impl AsRef<[usize]>) -> Result<Self> {
        let (shape, own) = (shape.as_ref(), self.shape());
        let mut raw = self.tensor.raw;
        raw.shape = extents("view", shape)?;
        raw.strides = [0; MAX_RANK];
        raw.rank = shape.len() as i32;
        let fits = own.len() <= shape.len() && own.iter().rev().zip(shape.iter().rev()).all(|(o, s)| o == s || *o == 1);
        if !fits {
            return Err(wrong(format!("shape {own:?} does not broadcast to {shape:?}")));
        }
        let added = shape.len() - own.len();
        for (d, &extent) in own.iter().enumerate() {
            if extent == shape[added + d] {
                raw.strides[added + d] = self.tensor.raw.strides[d];
            }
        }
        Ok(View::from_tensor(raw, self.tensor.tag))
    }
}

impl<'a> ViewMut<'a, Cpu> {
    /// All elements of a slice, row-major. [`Status::Shape`] where the shape has another number of elements.
    #[inline]
    pub fn new<T: Element>(elements: &'a mut [T], shape: impl AsRef<[usize]>) -> Result<Self> {
        let raw = whole(elements.as_mut_ptr(), elements.len(), shape.as_ref())?;
        Ok(ViewMut::from_tensor(raw, ()))
    }

    /// Elements of a slice by strides, in elements, from the one at `offset`. [`Status::Shape`] where one lies outside. That no
    /// element is there twice is checked by each replay.
    pub fn strided<T: Element>(
        elements: &'a mut [T],
        offset: usize,
        shape: impl AsRef<[usize]>,
        strides: impl AsRef<[isize]>,
    ) -> Result<Self> {
        let raw = tensor(elements.as_mut_ptr(), elements.len(), offset, shape.as_ref(), strides.as_ref())?;
        Ok(ViewMut::from_tensor(raw, ()))
    }

    /// Bytes as elements of a dtype that is known at run time only: see [`View::from_bytes`].
    pub fn from_bytes(bytes: &'a mut [u8], dtype: DType, shape: impl AsRef<[usize]>) -> Result<Self> {
        Ok(ViewMut::from_tensor(whole_bytes(bytes.as_mut_ptr(), bytes.len(), dtype, shape.as_ref())?, ()))
    }

    /// One element, of rank 0.
    pub fn scalar<T: Element>(element: &'a mut T) -> Self {
        ViewMut::new(std::slice::from_mut(element), []).expect("one element has shape []")
    }
}

impl<'a, P: Platform> ViewMut<'a, P> {
    /// The same for a shorter time, so that this view is there afterwards.
    pub fn reborrow(&mut self) -> ViewMut<'_, P> {
        ViewMut::from_tensor(self.tensor.raw, self.tensor.tag)
    }

    /// The elements as an input.
    pub fn as_view(&self) -> View<'_, P> {
        View::from_tensor(self.tensor.raw, self.tensor.tag)
    }

    /// The elements before `middle` of one axis, and those from there on: two outputs side by side in one buffer.
    /// [`Status::Overlap`] where the strides may lead to an element in two ways.
    ///
    /// ```
    /// # use onelaunch::ViewMut;
    /// # fn main() -> onelaunch::Result<()> {
    /// let mut both = [0.0_f32; 4 * 64];
    /// let (left, right) = ViewMut::new(&mut both, [4, 64])?.split_at(1, 32)?;
    /// assert_eq!((left.shape(), right.shape()), (vec![4, 32], vec![4, 32]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn split_at(self, axis: usize, middle: usize) -> Result<(Self, Self)> {
        let extent = self.axis_extent(axis)?;
        let raw = self.tensor.raw;
        if !steps_are_apart(&raw) {
            let description = format!("shape {:?} with strides {:?} may repeat an element", self.shape(), self.strides());
            return Err(Error::new(Status::Overlap, "view", description));
        }
        let left = ViewMut::from_tensor(raw, self.tensor.tag).narrow(axis, 0..middle)?;
        Ok((left, self.narrow(axis, middle..extent)?))
    }
}

/// Whether every stride is beyond all that the smaller ones reach together, which is enough for no element to be there twice.
fn steps_are_apart(raw: &sys::ol_tensor) -> bool {
    let rank = raw.rank as usize;
    let mut steps: Vec<(i128, i128)> =
        (0..rank).filter(|&d| raw.shape[d] > 1).map(|d| ((raw.strides[d] as i128).abs(), raw.shape[d] as i128 - 1)).collect();
    steps.sort_unstable();
    let mut reach = 0_i128;
    raw.shape[..rank].contains(&0)
        || steps.into_iter().all(|(stride, n)| {
            let apart = stride > reach;
            reach = stride.saturating_mul(n).saturating_add(reach);
            apart
        })
}

impl<'a, T: Element> From<&'a [T]> for View<'a> {
    fn from(elements: &'a [T]) -> Self {
        View::new(elements, [elements.len()]).expect("a slice has its length")
    }
}

impl<'a, T: Element> From<&'a mut [T]> for ViewMut<'a> {
    fn from(elements: &'a mut [T]) -> Self {
        let n = elements.len();
        ViewMut::new(elements, [n]).expect("a slice has its length")
    }
}

//! What kind of device a type belongs to. A type parameter, so that memory of the host cannot be handed to a GPU, nor the other way
//! round; which GPU it is of is looked at by each call.

use crate::device::Inner;
use crate::error::{Error, Result, Status};
use crate::sys;
use crate::view::Tensor;
use std::fmt::Debug;

/// The kind of a device: [`Cpu`] or [`Cuda`].
pub trait Platform: sealed::Platform {}

/// Processors of the host, and its memory.
#[derive(Clone, Copy, Debug)]
pub enum Cpu {}

/// NVIDIA GPUs, and their memory.
#[derive(Clone, Copy, Debug)]
pub enum Cuda {}

impl Platform for Cpu {}
impl Platform for Cuda {}

/// Which GPU memory is of: the address of the device it was allocated from, which lives as long as the memory does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTag(usize);

pub(crate) mod sealed {
    use super::*;

    pub trait Platform: Sized + Copy + Debug + Send + Sync + 'static {
        type Tag: Copy + PartialEq + Debug + Send + Sync;
        const IS_HOST: bool;

        fn tag(device: &Inner) -> Self::Tag;

        /// The tensors as the library reads them, once they are known to be the device's.
        fn with_tensors<R>(
            tensors: &[Tensor<Self>],
            device: &Inner,
            operation: &str,
            role: &str,
            call: impl FnOnce(*const sys::ol_tensor) -> R,
        ) -> Result<R>;
    }
}

impl sealed::Platform for Cpu {
    type Tag = ();
    const IS_HOST: bool = true;

    fn tag(_: &Inner) {}

    /// Nothing to check or to copy: every CPU device reads the host's memory, and a `Tensor<Cpu>` is an `ol_tensor`.
    #[inline]
    fn with_tensors<R>(tensors: &[Tensor<Cpu>], _: &Inner, _: &str, _: &str, call: impl FnOnce(*const sys::ol_tensor) -> R) -> Result<R> {
        const SAME: () = assert!(std::mem::size_of::<Tensor<Cpu>>() == std::mem::size_of::<sys::ol_tensor>());
        let () = SAME;
        Ok(call(tensors.as_ptr() as *const sys::ol_tensor))
    }
}

impl sealed::Platform for Cuda {
    type Tag = DeviceTag;
    const IS_HOST: bool = false;

    fn tag(device: &Inner) -> DeviceTag {
        DeviceTag(device as *const Inner as usize)
    }

    fn with_tensors<R>(
        tensors: &[Tensor<Cuda>],
        device: &Inner,
        operation: &str,
        role: &str,
        call: impl FnOnce(*const sys::ol_tensor) -> R,
    ) -> Result<R> {
        let own = Self::tag(device);
        if let Some(i) = tensors.iter().position(|t| t.tag != own) {
            return Err(Error::new(
                Status::Argument,
                operation,
                format!("{role} {i} is memory of another device; expected the composite's, {}", device.name()),
            ));
        }
        Ok(gather(tensors.iter().map(|t| t.raw), tensors.len(), call))
    }
}

/// A few on the stack, so that a replay allocates nothing; many in a vector.
pub(crate) fn gather<R>(tensors: impl Iterator<Item = sys::ol_tensor>, n: usize, call: impl FnOnce(*const sys::ol_tensor) -> R) -> R {
    const FEW: usize = 8;
    if n > FEW {
        let many: Vec<sys::ol_tensor> = tensors.collect();
        return call(many.as_ptr());
    }
    let mut few = [std::mem::MaybeUninit::<sys::ol_tensor>::uninit(); FEW];
    for (place, tensor) in few.iter_mut().zip(tensors) {
        *place = std::mem::MaybeUninit::new(tensor);
    }
    call(few.as_ptr() as *const sys::ol_tensor)
}

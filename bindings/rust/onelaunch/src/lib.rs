//! onelaunch turns a chain of elementwise operations into **one launch**, with several outputs, for any shape, and with **the same
//! bits** as running them one by one, on every CPU and on NVIDIA GPUs. This crate is the safe interface of the C library.
//!
//! Describe a graph in a closure, compile it for the dtypes of its inputs, replay it on slices of any shape:
//!
//! ```
//! use onelaunch::{DType, Device, View, ViewMut};
//!
//! # fn main() -> onelaunch::Result<()> {
//! let cpu = Device::cpu()?;
//! let decay = cpu.compile("decay", [DType::Float32; 3], |_, [a, a_log, dt_bias]| {
//!     [(-(a_log.exp() * (a + dt_bias).softplus())).exp()]
//! })?;
//! let (a, a_log, dt_bias) = ([0.0_f32; 6], [0.0_f32, 1.0, 2.0], [-4.0_f32, -3.0, -2.0]);
//! let mut factors = [0.0_f32; 6];
//! decay.replay(
//!     &[View::new(&a, [2, 3])?, View::new(&a_log, [3])?, View::new(&dt_bias, [3])?],
//!     &mut [ViewMut::new(&mut factors, [2, 3])?],
//! )?;
//! assert_eq!(cpu.launches(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What is what
//!
//! - [`Device`]: a CPU, or a GPU ([`Device::cuda`]). The type parameter says which ([`Cpu`], [`Cuda`]), so memory of one cannot be
//!   handed to the other.
//! - [`Graph`] and [`Value`]: what the closure gets. Values carry operators and a method for every primitive. They cannot leave the
//!   closure, nor meet the values of another one.
//! - [`Composite`]: a compiled graph; immutable, replayed by any number of threads at once. A replay allocates nothing.
//! - [`View`] and [`ViewMut`]: slices with a shape and strides, checked to lie inside the slice; nothing is copied.
//! - [`GatedDeltaRates`]: the rate activations of gated-delta layers, ready to use.
//! - [`Buffer`] and [`Stream`]: memory and streams of a device, for those who have none.
//! - [`F16`] and [`Bf16`]: the 16-bit floats, as plain `u16` wrappers.
//! - [`Error`]: what failed, in which operation, and why.
//!
//! # What is promised
//!
//! The library's contract: a replay has the bits of the composed path ([`Composite::replay_composed`], the same graph run one
//! primitive at a time); every node is its exact result rounded once to its own dtype; the bits depend on no SIMD level, thread
//! count, stride or position. Scalars in a graph have the dtype of their Rust type and are never weakly typed: with a `bfloat16`
//! value `x`, `x + 1.0_f32` is an addition in `float32`, `x + Bf16::ONE` one in `bfloat16`.
//!
//! # Misuse that does not compile
//!
//! Outputs are exclusive borrows, so an output cannot be an input (a replay in place says so: [`Composite::replay_in_place`]):
//!
//! ```compile_fail,E0502
//! # use onelaunch::*;
//! # fn replay(composite: &Composite) -> Result<()> {
//! let mut x = [0.0_f32; 4];
//! composite.replay(&[View::new(&x, [4])?], &mut [ViewMut::new(&mut x, [4])?])
//! # }
//! ```
//!
//! Nor can two outputs be one:
//!
//! ```compile_fail,E0499
//! # use onelaunch::*;
//! # fn replay(composite: &Composite) -> Result<()> {
//! let mut x = [0.0_f32; 4];
//! composite.replay(&[], &mut [ViewMut::new(&mut x, [4])?, ViewMut::new(&mut x, [4])?])
//! # }
//! ```
//!
//! A view does not outlive its slice:
//!
//! ```compile_fail,E0597
//! # use onelaunch::*;
//! # fn main() -> Result<()> {
//! let view;
//! {
//!     let x = vec![0.0_f32; 4];
//!     view = View::new(&x, [4])?;
//! }
//! println!("{:?}", view);
//! # Ok(())
//! # }
//! ```
//!
//! A slice is not changed or freed under its view:
//!
//! ```compile_fail,E0505
//! # use onelaunch::*;
//! # fn main() -> Result<()> {
//! let x = vec![0.0_f32; 4];
//! let view = View::new(&x, [4])?;
//! drop(x);
//! println!("{:?}", view);
//! # Ok(())
//! # }
//! ```
//!
//! An immutable slice is no output:
//!
//! ```compile_fail,E0308
//! # use onelaunch::*;
//! let x = [0.0_f32; 4];
//! let view = ViewMut::new(&x, [4]);
//! ```
//!
//! Only element types that the library has can be viewed:
//!
//! ```compile_fail,E0277
//! # use onelaunch::*;
//! let x = [0.0_f64; 4];
//! let view = View::new(&x, [4]);
//! ```
//!
//! A composite is not used after its end:
//!
//! ```compile_fail,E0382
//! # use onelaunch::*;
//! # fn replay(composite: Composite) -> Result<()> {
//! drop(composite);
//! composite.replay(&[], &mut [])
//! # }
//! ```
//!
//! The host's memory is not handed to a GPU:
//!
//! ```compile_fail,E0308
//! # use onelaunch::*;
//! # fn replay(composite: &Composite<Cuda>, x: &[f32], y: &mut [f32]) -> Result<()> {
//! composite.replay(&[View::new(x, [4])?], &mut [ViewMut::new(y, [4])?])
//! # }
//! ```
//!
//! [`Value`] shows those about traces.

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod buffer;
pub mod cache;
mod composite;
mod cpu;
pub mod cuda;
mod device;
mod dtype;
mod error;
mod gated_delta;
mod graph;
mod half;
mod hooks;
mod operators;
mod platform;
mod primitive;
mod stream;
mod value;
mod view;

pub use buffer::Buffer;
pub use composite::{Composite, Input, OutputShape, Shape, TextKind};
pub use cpu::{CpuLevel, CpuOptions};
pub use device::Device;
pub use dtype::{DType, Element};
pub use error::{Error, Result, Status};
pub use gated_delta::{DecayDTypes, DecayInputs, GatedDeltaDecay, GatedDeltaRates, RatesDTypes, RatesInputs, RatesOutputs};
pub use graph::Graph;
pub use half::{Bf16, F16};
pub use hooks::{Allocate, Tasks};
pub use platform::{Cpu, Cuda, Platform};
pub use primitive::Primitive;
pub use stream::Stream;
pub use value::{Operand, Value};
pub use view::{View, ViewMut};

/// The C interface, for what has to be done by hand.
pub use onelaunch_sys as sys;

/// The highest rank of a view.
pub const MAX_RANK: usize = sys::OL_MAX_RANK as usize;
/// The most nodes of one graph.
pub const MAX_NODES: usize = sys::OL_MAX_NODES as usize;
/// The most inputs of one graph.
pub const MAX_INPUTS: usize = sys::OL_MAX_INPUTS as usize;
/// The most outputs of one graph.
pub const MAX_OUTPUTS: usize = sys::OL_MAX_OUTPUTS as usize;
/// The most inputs that a graph's outputs depend on, counted over all outputs that depend on different ones.
pub const MAX_DEPENDENCIES: usize = sys::OL_MAX_DEPENDENCIES as usize;

/// The version of the library that is loaded, "0.1.0".
pub fn version() -> &'static str {
    // SAFETY: static storage.
    unsafe { error::static_text(sys::ol_version()) }.unwrap_or("")
}

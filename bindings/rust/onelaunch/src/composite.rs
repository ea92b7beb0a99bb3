//! Composites and their replay.

use crate::device::Inner;
use crate::dtype::DType;
use crate::error::{check, sized_text, static_text, Error, Result, Status};
use crate::hooks;
use crate::platform::{gather, Cpu, Platform};
use crate::stream::Stream;
use crate::sys;
use crate::view::{Tensor, View, ViewMut};
use crate::MAX_RANK;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::slice;
use std::sync::Arc;

/// A compiled graph: immutable, and replayed on tensors of any shape by any number of threads at once.
///
/// ```
/// fn shared_between_threads<T: Send + Sync>() {}
/// shared_between_threads::<onelaunch::Composite>();
/// ```
pub struct Composite<P: Platform = Cpu> {
    raw: *mut sys::ol_composite,
    n_inputs: usize,
    n_outputs: usize,
    device: Arc<Inner>,
    platform: PhantomData<P>,
}

// SAFETY: immutable after creation, replayed by any number of threads; and destroyed by its last owner on any.
unsafe impl<P: Platform> Send for Composite<P> {}
unsafe impl<P: Platform> Sync for Composite<P> {}

/// Which text of a composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum TextKind {
    /// The graph as traced; [`Device::compile_text`](crate::Device::compile_text) takes it.
    Graph = sys::OL_TEXT_GRAPH,
    /// The graph after the passes; it can be compiled too.
    Optimized = sys::OL_TEXT_OPTIMIZED,
    /// The compiled program, for people.
    Program = sys::OL_TEXT_PROGRAM,
    /// The optimized graph for Graphviz.
    Dot = sys::OL_TEXT_DOT,
}

/// The extents of a tensor, outermost first; a slice in all but name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    rank: usize,
    extents: [usize; MAX_RANK],
}

impl Shape {
    /// The number of elements; `None` where it does not fit.
    pub fn elements(&self) -> Option<usize> {
        if self.contains(&0) {
            return Some(0);
        }
        self.iter().try_fold(1_usize, |n, &extent| n.checked_mul(extent))
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.extents[..self.rank]
    }
}

impl AsRef<[usize]> for Shape {
    fn as_ref(&self) -> &[usize] {
        self
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// What an output has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputShape {
    /// Its dtype.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
}

/// An input of [`Composite::replay_in_place`].
#[derive(Clone, Copy, Debug)]
pub enum Input<'a, P: Platform = Cpu> {
    /// Elements of its own.
    View(View<'a, P>),
    /// The elements of the output of that number, as they are before they are overwritten.
    Output(usize),
}

impl<'a, P: Platform> From<View<'a, P>> for Input<'a, P> {
    fn from(view: View<'a, P>) -> Self {
        Input::View(view)
    }
}

const OPERATION: &str = "replay";

type Call = unsafe extern "C" fn(
    *const sys::ol_composite,
    sys::ol_stream,
    *const sys::ol_tensor,
    *const sys::ol_tensor,
    *mut sys::ol_error,
) -> sys::ol_status;

impl<P: Platform> Composite<P> {
    /// # Safety
    /// `raw` was made on `device` and belongs to nobody else.
    pub(crate) unsafe fn from_raw(raw: *mut sys::ol_composite, device: Arc<Inner>) -> Composite<P> {
        // SAFETY: a composite.
        let (n_inputs, n_outputs) = unsafe { (sys::ol_composite_input_count(raw), sys::ol_composite_output_count(raw)) };
        Composite { raw, n_inputs: n_inputs as usize, n_outputs: n_outputs as usize, device, platform: PhantomData }
    }

    /// Runs the composite: one launch (none where every output is empty), into the outputs. Allocates nothing. Dtypes, shapes,
    /// and overlap of outputs are checked first; on an error nothing has been written. On a CPU the outputs are written when this
    /// returns; on a GPU the kernel is in the default stream.
    #[inline]
    pub fn replay(&self, inputs: &[View<'_, P>], outputs: &mut [ViewMut<'_, P>]) -> Result<()> {
        self.run(sys::ol_replay, ptr::null_mut(), inputs, outputs)
    }

    /// As [`Composite::replay`], in a stream.
    #[inline]
    pub fn replay_on(&self, stream: &Stream<P>, inputs: &[View<'_, P>], outputs: &mut [ViewMut<'_, P>]) -> Result<()> {
        self.run(sys::ol_replay, stream.as_raw(), inputs, outputs)
    }

    /// The composed path, the reference of the parity contract: the same graph, as traced, one primitive and one launch at a time.
    /// The same bits as [`Composite::replay`].
    pub fn replay_composed(&self, inputs: &[View<'_, P>], outputs: &mut [ViewMut<'_, P>]) -> Result<()> {
        self.run(sys::ol_replay_composed, ptr::null_mut(), inputs, outputs)
    }

    /// As [`Composite::replay_composed`], in a stream.
    pub fn replay_composed_on(&self, stream: &Stream<P>, inputs: &[View<'_, P>], outputs: &mut [ViewMut<'_, P>]) -> Result<()> {
        self.run(sys::ol_replay_composed, stream.as_raw(), inputs, outputs)
    }

    /// As [`Composite::replay_on`], where inputs may be the memory that an output overwrites.
    ///
    /// ```
    /// # use onelaunch::{DType, Device, Input, ViewMut};
    /// # fn main() -> onelaunch::Result<()> {
    /// let cpu = Device::cpu()?;
    /// let relu = cpu.compile("relu", [DType::Float32], |_, [x]| [x.maximum(0.0_f32)])?;
    /// let mut x = [-1.0_f32, 2.0];
    /// relu.replay_in_place(&cpu.default_stream(), &[Input::Output(0)], &mut [ViewMut::new(&mut x, [2])?])?;
    /// assert_eq!(x, [0.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn replay_in_place(&self, stream: &Stream<P>, inputs: &[Input<'_, P>], outputs: &mut [ViewMut<'_, P>]) -> Result<()> {
        self.check_counts(inputs.len(), outputs.len())?;
        if let Some(i) = inputs.iter().position(|input| matches!(input, Input::Output(n) if *n >= outputs.len())) {
            return Err(self.wrong(format!("input {i} is given as an output that there is not; expected one below {}", outputs.len())));
        }
        let own = P::tag(&self.device);
        if let Some(i) = inputs.iter().position(|input| matches!(input, Input::View(view) if view.tensor.tag != own)) {
            return Err(self.wrong(format!("input {i} is memory of another device; expected the composite's, {}", self.device.name())));
        }
        let tensors = inputs.iter().map(|input| match input {
            Input::View(view) => view.tensor.raw,
            Input::Output(n) => outputs[*n].tensor.raw,
        });
        let to = raw_outputs(outputs);
        gather(tensors, inputs.len(), |from| {
            P::with_tensors(to, &self.device, OPERATION, "output", |to| self.call(sys::ol_replay, stream.as_raw(), from, to))
        })?
    }

    /// The dtype and shape of each output, from the inputs: the broadcast of those that it depends on.
    pub fn output_shapes(&self, inputs: &[View<'_, P>]) -> Result<Vec<OutputShape>> {
        self.check_counts(inputs.len(), self.n_outputs)?;
        let blank = sys::ol_tensor { data: ptr::null_mut(), dtype: sys::OL_FLOAT32, rank: 0, shape: [0; MAX_RANK], strides: [0; MAX_RANK] };
        let mut outputs = vec![blank; self.n_outputs];
        P::with_tensors(raw_inputs(inputs), &self.device, OPERATION, "input", |from| {
            // SAFETY: as many tensors as the composite has inputs and outputs.
            check(|error| unsafe { sys::ol_output_shapes(self.raw, from, outputs.as_mut_ptr(), error) })
        })??;
        Ok(outputs
            .iter()
            .map(|output| {
                let mut shape = Shape { rank: output.rank as usize, extents: [0; MAX_RANK] };
                for (to, &from) in shape.extents.iter_mut().zip(&output.shape[..output.rank as usize]) {
                    *to = from as usize;
                }
                OutputShape { dtype: DType::given(output.dtype), shape }
            })
            .collect())
    }

    #[inline]
    fn run(&self, call: Call, stream: sys::ol_stream, inputs: &[View<'_, P>], outputs: &mut [ViewMut<'_, P>]) -> Result<()> {
        self.check_counts(inputs.len(), outputs.len())?;
        P::with_tensors(raw_inputs(inputs), &self.device, OPERATION, "input", |from| {
            P::with_tensors(raw_outputs(outputs), &self.device, OPERATION, "output", |to| self.call(call, stream, from, to))
        })??
    }

    /// Both hold as many tensors as the composite takes and gives, which live through the call.
    #[inline]
    fn call(&self, call: Call, stream: sys::ol_stream, inputs: *const sys::ol_tensor, outputs: *const sys::ol_tensor) -> Result<()> {
        // SAFETY: as above; the tensors are views of memory that is there, the outputs exclusively.
        let outcome = check(|error| unsafe { call(self.raw, stream, inputs, outputs, error) });
        self.device.resume();
        outcome
    }

    #[inline]
    fn check_counts(&self, n_inputs: usize, n_outputs: usize) -> Result<()> {
        if n_inputs == self.n_inputs && n_outputs == self.n_outputs {
            return Ok(());
        }
        Err(self.wrong(format!("{n_inputs} inputs and {n_outputs} outputs; expected {} and {}", self.n_inputs, self.n_outputs)))
    }

    #[cold]
    fn wrong(&self, description: String) -> Error {
        Error::new(Status::Argument, format!("replay {}", self.name()), description)
    }

    /// The number of inputs.
    pub fn input_count(&self) -> usize {
        self.n_inputs
    }

    /// The number of outputs.
    pub fn output_count(&self) -> usize {
        self.n_outputs
    }

    /// The dtypes of the inputs.
    pub fn input_dtypes(&self) -> Vec<DType> {
        // SAFETY: a composite.
        (0..self.n_inputs).map(|i| DType::given(unsafe { sys::ol_composite_input_dtype(self.raw, i as i32) })).collect()
    }

    /// The dtypes of the outputs.
    pub fn output_dtypes(&self) -> Vec<DType> {
        // SAFETY: a composite.
        (0..self.n_outputs).map(|i| DType::given(unsafe { sys::ol_composite_output_dtype(self.raw, i as i32) })).collect()
    }

    /// The name it was compiled with.
    pub fn name(&self) -> &str {
        // SAFETY: kept as long as the composite.
        unsafe { static_text(sys::ol_composite_name(self.raw)) }.unwrap_or("")
    }

    /// Launches of one run of the composed path.
    pub fn composed_launches(&self) -> usize {
        // SAFETY: a composite.
        unsafe { sys::ol_composite_composed_launches(self.raw) as usize }
    }

    /// The graph, before or after the passes, or its program.
    pub fn text(&self, kind: TextKind) -> String {
        // SAFETY: as many bytes as are said.
        let bytes = sized_text(|buffer, n| unsafe { sys::ol_composite_text(self.raw, kind as sys::ol_text_kind, buffer, n) });
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The CUDA text of its kernel, also of a composite that was compiled for a CPU. Empty where there is no memory for it.
    pub fn cuda_text(&self) -> String {
        // SAFETY: as many bytes as are said.
        let bytes = sized_text(|buffer, n| unsafe { sys::ol_cuda_kernel_text(self.raw, buffer, n) });
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The handle, for calls of [`sys`]. Valid as long as this composite.
    pub fn as_raw(&self) -> *const sys::ol_composite {
        self.raw
    }
}

/// A `View` is a `Tensor` and a lifetime.
#[inline]
fn raw_inputs<'a, P: Platform>(views: &'a [View<'_, P>]) -> &'a [Tensor<P>] {
    // SAFETY: transparent over it.
    unsafe { slice::from_raw_parts(views.as_ptr() as *const Tensor<P>, views.len()) }
}

#[inline]
fn raw_outputs<'a, P: Platform>(views: &'a [ViewMut<'_, P>]) -> &'a [Tensor<P>] {
    // SAFETY: transparent over it.
    unsafe { slice::from_raw_parts(views.as_ptr() as *const Tensor<P>, views.len()) }
}

impl<P: Platform> Drop for Composite<P> {
    fn drop(&mut self) {
        // SAFETY: the only owner; nobody replays it any more. The device is let go of after this.
        unsafe { sys::ol_composite_destroy(self.raw) };
        if self.device.has_hooks() {
            hooks::forget();
        }
    }
}

impl<P: Platform> fmt::Debug for Composite<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composite")
            .field("name", &self.name())
            .field("device", &self.device.name())
            .field("inputs", &self.input_dtypes())
            .field("outputs", &self.output_dtypes())
            .finish()
    }
}

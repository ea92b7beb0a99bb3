//! Tracing: the graph a builder gets, and the run of a builder inside of the library's call.

use crate::dtype::{DType, Element};
use crate::error::{check, Error, Result};
use crate::hooks;
use crate::primitive::Primitive;
use crate::sys;
use crate::value::Value;
use std::any::Any;
use std::ffi::CString;
use std::marker::PhantomData;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;

/// The mark of one trace: a lifetime that is no longer and no shorter than itself, so that values of two traces do not mix.
pub(crate) type Brand<'g> = PhantomData<fn(&'g ()) -> &'g ()>;

/// A graph under construction. It keeps the first error, so a builder needs no checks: a primitive that fails gives a value that
/// every further one passes on, and the compilation fails with that first error.
#[derive(Debug)]
pub struct Graph<'g> {
    raw: *mut sys::ol_graph,
    brand: Brand<'g>,
}

impl<'g> Graph<'g> {
    pub(crate) fn value(&self, raw: sys::ol_value) -> Value<'g> {
        Value::new(self.raw, raw)
    }

    /// A constant of a stated dtype: `value` converted to it by one rounding.
    pub fn constant(&self, dtype: DType, value: f64) -> Value<'g> {
        // SAFETY: the graph lives while its builder runs, and a Graph is there no longer.
        self.value(unsafe { sys::ol_constant(self.raw, dtype.to_raw(), value) })
    }

    /// A constant of the dtype and bits of a Rust value.
    pub fn scalar<T: Element>(&self, value: T) -> Value<'g> {
        // SAFETY: as above; the element's bytes are read.
        self.value(unsafe { sys::ol_constant_bits(self.raw, T::DTYPE.to_raw(), &value as *const T as *const c_void) })
    }

    /// Applies a primitive by number to as many operands as it takes.
    pub fn apply(&self, primitive: Primitive, operands: &[Value<'g>]) -> Value<'g> {
        let raw: Vec<sys::ol_value> = operands.iter().map(|value| value.raw()).collect();
        let n = i32::try_from(raw.len()).unwrap_or(i32::MAX);
        // SAFETY: as above; n operands are read, and only as many as the primitive takes.
        self.value(unsafe { sys::ol_apply(self.raw, primitive.to_raw(), raw.as_ptr(), n) })
    }

    /// Makes the compilation fail with this error, unless something failed before. The status is [`Status::Builder`].
    ///
    /// [`Status::Builder`]: crate::Status::Builder
    pub fn fail(&self, operation: &str, description: &str) {
        let (operation, description) = (lossy(operation), lossy(description));
        // SAFETY: as above; both are copied.
        unsafe { sys::ol_graph_fail(self.raw, operation.as_ptr(), description.as_ptr()) }
    }

    /// The handle, for calls of [`sys`]. Valid while the builder runs.
    pub fn as_raw(&self) -> *mut sys::ol_graph {
        self.raw
    }
}

/// Up to the first zero byte.
fn lossy(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

type Failure<E> = std::result::Result<E, Box<dyn Any + Send>>;

struct Run<F, E> {
    build: Option<F>,
    n_inputs: usize,
    n_outputs: usize,
    failure: Option<Failure<E>>,
}

/// What the library calls. Neither a panic nor an error goes through its frames: both are kept for after the call.
unsafe extern "C" fn build<F, E>(
    graph: *mut sys::ol_graph,
    inputs: *const sys::ol_value,
    outputs: *mut sys::ol_value,
    user: *mut c_void,
) -> c_int
where
    F: for<'g> FnOnce(&Graph<'g>, &[Value<'g>], &mut Vec<Value<'g>>) -> std::result::Result<(), E>,
{
    // SAFETY: `user` is the Run of the call below, which the library hands on while that call goes on.
    let run = unsafe { &mut *(user as *mut Run<F, E>) };
    let (n_inputs, n_outputs) = (run.n_inputs, run.n_outputs);
    let closure = run.build.take();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let build = closure.expect("a builder is called once");
        let g = Graph { raw: graph, brand: PhantomData };
        // SAFETY: the library gives n_inputs values.
        let given: Vec<Value<'_>> = (0..n_inputs).map(|i| g.value(unsafe { *inputs.add(i) })).collect();
        let mut made = Vec::with_capacity(n_outputs);
        build(&g, &given, &mut made)?;
        if made.len() != n_outputs {
            g.fail("compile", &format!("the builder gave {} outputs; expected {n_outputs}", made.len()));
        }
        for (i, value) in made.iter().take(n_outputs).enumerate() {
            // SAFETY: there is a place for n_outputs values.
            unsafe { *outputs.add(i) = value.raw() };
        }
        Ok(())
    }));
    match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            run.failure = Some(Ok(error));
            1
        }
        Err(panic) => {
            run.failure = Some(Err(panic));
            1
        }
    }
}

/// Traces and compiles. What the builder returned as an error is returned, and its panic goes on, after the library cleaned up.
pub(crate) fn compile<F, E>(
    device: *mut sys::ol_device,
    name: &str,
    dtypes: &[DType],
    n_outputs: usize,
    builder: F,
) -> std::result::Result<*mut sys::ol_composite, E>
where
    F: for<'g> FnOnce(&Graph<'g>, &[Value<'g>], &mut Vec<Value<'g>>) -> std::result::Result<(), E>,
    E: From<Error>,
{
    let c_name = CString::new(name)
        .map_err(|_| Error::new(crate::Status::Argument, "compile", format!("the name {name:?} has a zero byte; expected none")))?;
    let raw_dtypes: Vec<sys::ol_dtype> = dtypes.iter().map(|dtype| dtype.to_raw()).collect();
    let mut run = Run { build: Some(builder), n_inputs: dtypes.len(), n_outputs, failure: None };
    let description = sys::ol_builder {
        build: Some(build::<F, E>),
        user: &mut run as *mut Run<F, E> as *mut c_void,
        n_inputs: i32::try_from(dtypes.len()).unwrap_or(i32::MAX),
        n_outputs: i32::try_from(n_outputs).unwrap_or(i32::MAX),
        name: c_name.as_ptr(),
    };
    let mut composite = ptr::null_mut();
    // SAFETY: all pointers live through the call, and there are n_inputs dtypes.
    let outcome: Result<()> = check(|error| unsafe { sys::ol_compile(device, &description, raw_dtypes.as_ptr(), &mut composite, error) });
    match run.failure {
        Some(Err(panic)) => {
            hooks::forget(); // that of a hook, if there was one, came of this call too
            resume_unwind(panic)
        }
        Some(Ok(error)) => Err(error),
        None => outcome.map(|()| composite).map_err(E::from),
    }
}

//! The C interface of libonelaunch: what `include/onelaunch.h` declares, name by name, and nothing else. That header documents
//! every item; the crate `onelaunch` is the safe interface over this one.
//!
//! Written by hand, and held to the header by `tests/rust/check_bindings.py`: it reads this file, so keep its plain form (one item
//! a statement, C's own names, no conditional compilation). An enum of C is an alias of `c_uint` with constants, because a value
//! that a Rust enum lacks would be undefined behaviour.

#![allow(non_camel_case_types)]
#![deny(missing_docs)]

use std::os::raw::{c_char, c_int, c_uint, c_void};

/// The version of the header that these declarations are of.
pub const OL_VERSION_MAJOR: c_int = 0;
/// See [`OL_VERSION_MAJOR`].
pub const OL_VERSION_MINOR: c_int = 1;
/// See [`OL_VERSION_MAJOR`].
pub const OL_VERSION_PATCH: c_int = 0;

/// How a call ended.
pub type ol_status = c_uint;
/// Success.
pub const OL_OK: ol_status = 0;
/// A null or meaningless argument.
pub const OL_ERROR_ARGUMENT: ol_status = 1;
/// A dtype that is unknown, not the one compiled for, or not taken.
pub const OL_ERROR_DTYPE: ol_status = 2;
/// Shapes that do not broadcast, or are not the inferred ones.
pub const OL_ERROR_SHAPE: ol_status = 3;
/// An output that overlaps an input, another output, or itself.
pub const OL_ERROR_OVERLAP: ol_status = 4;
/// The builder failed.
pub const OL_ERROR_BUILDER: ol_status = 5;
/// A stated limit was passed.
pub const OL_ERROR_LIMIT: ol_status = 6;
/// An allocation failed.
pub const OL_ERROR_MEMORY: ol_status = 7;
/// The device cannot be had, or reported a failure.
pub const OL_ERROR_DEVICE: ol_status = 8;
/// Graph text that does not parse.
pub const OL_ERROR_TEXT: ol_status = 9;

/// The caller's error record; written by a failing call only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_error {
    /// What the call returned.
    pub status: ol_status,
    /// What a builder returned, or 0.
    pub code: c_int,
    /// What was being done.
    pub operation: [c_char; 64],
    /// What was given and what was expected.
    pub description: [c_char; 448],
}

/// The type of an element.
pub type ol_dtype = c_uint;
/// One byte, 0 or 1.
pub const OL_BOOL: ol_dtype = 0;
/// `uint8_t`.
pub const OL_UINT8: ol_dtype = 1;
/// `uint16_t`.
pub const OL_UINT16: ol_dtype = 2;
/// `uint32_t`.
pub const OL_UINT32: ol_dtype = 3;
/// `uint64_t`.
pub const OL_UINT64: ol_dtype = 4;
/// `int8_t`.
pub const OL_INT8: ol_dtype = 5;
/// `int16_t`.
pub const OL_INT16: ol_dtype = 6;
/// `int32_t`.
pub const OL_INT32: ol_dtype = 7;
/// `int64_t`.
pub const OL_INT64: ol_dtype = 8;
/// IEEE 754 binary16.
pub const OL_FLOAT16: ol_dtype = 9;
/// The upper half of a binary32.
pub const OL_BFLOAT16: ol_dtype = 10;
/// IEEE 754 binary32.
pub const OL_FLOAT32: ol_dtype = 11;
/// The number of dtypes.
pub const OL_DTYPE_COUNT: c_int = 12;

/// The highest rank of a tensor.
pub const OL_MAX_RANK: c_int = 8;

/// A view of the caller's memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_tensor {
    /// The address of element (0, …, 0).
    pub data: *mut c_void,
    /// The type of an element.
    pub dtype: ol_dtype,
    /// The number of dimensions.
    pub rank: i32,
    /// The extents.
    pub shape: [i64; 8],
    /// The strides, in elements.
    pub strides: [i64; 8],
}

/// A graph under construction.
#[repr(C)]
pub struct ol_graph {
    _opaque: [u8; 0],
    _not_send_sync: std::marker::PhantomData<*mut u8>,
}

/// A value of a graph under construction.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_value {
    /// Its node.
    pub node: u32,
    /// Its graph.
    pub graph: u32,
}

/// The most nodes of one graph.
pub const OL_MAX_NODES: c_int = 262144;
/// The most inputs of one graph.
pub const OL_MAX_INPUTS: c_int = 16384;
/// The most outputs of one graph.
pub const OL_MAX_OUTPUTS: c_int = 16384;
/// The most inputs that outputs depend on, counted over all outputs.
pub const OL_MAX_DEPENDENCIES: c_int = 16777216;

/// A builder callback.
pub type ol_build =
    Option<unsafe extern "C" fn(graph: *mut ol_graph, in_: *const ol_value, out: *mut ol_value, user: *mut c_void) -> c_int>;

/// A builder and what it takes and gives.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_builder {
    /// The callback.
    pub build: ol_build,
    /// Handed to the callback.
    pub user: *mut c_void,
    /// The number of inputs.
    pub n_inputs: i32,
    /// The number of outputs.
    pub n_outputs: i32,
    /// Used in errors and text; may be null.
    pub name: *const c_char,
}

/// A device.
#[repr(C)]
pub struct ol_device {
    _opaque: [u8; 0],
    _not_send_sync: std::marker::PhantomData<*mut u8>,
}

/// The caller's `CUstream`; null on a CPU.
pub type ol_stream = *mut c_void;

/// A SIMD level.
pub type ol_cpu_level = c_uint;
/// `ONELAUNCH_CPU`, or the best there is.
pub const OL_CPU_AUTO: ol_cpu_level = 0;
/// SSE2 on x86-64; plain C elsewhere.
pub const OL_CPU_BASELINE: ol_cpu_level = 1;
/// AVX2, FMA, F16C and BMI2.
pub const OL_CPU_AVX2: ol_cpu_level = 2;
/// AVX-512 F, BW, CD, DQ and VL.
pub const OL_CPU_AVX512: ol_cpu_level = 3;
/// AArch64.
pub const OL_CPU_NEON: ol_cpu_level = 4;

/// Memory the library takes for itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_allocator {
    /// Returns 64-byte aligned memory or null.
    pub allocate: Option<unsafe extern "C" fn(user: *mut c_void, n_bytes: usize) -> *mut c_void>,
    /// Takes what `allocate` returned, with its size.
    pub free: Option<unsafe extern "C" fn(user: *mut c_void, pointer: *mut c_void, n_bytes: usize)>,
    /// Handed to both.
    pub user: *mut c_void,
}

/// A task of a parallel loop.
pub type ol_task = Option<unsafe extern "C" fn(argument: *mut c_void, index: usize)>;
/// The host's parallel loop.
pub type ol_parallel_for = Option<unsafe extern "C" fn(user: *mut c_void, n_tasks: usize, task: ol_task, argument: *mut c_void)>;

/// Options of a CPU device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_cpu_options {
    /// The SIMD level.
    pub level: ol_cpu_level,
    /// At most so many work on a replay; 0: one per CPU available.
    pub n_threads: i32,
    /// The host's threads.
    pub parallel_for: ol_parallel_for,
    /// Handed to `parallel_for`.
    pub parallel_user: *mut c_void,
    /// The library's memory.
    pub allocator: ol_allocator,
}

/// Options of a CUDA device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_cuda_options {
    /// The library's memory on the host.
    pub allocator: ol_allocator,
}

/// What a GPU is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_cuda_facts {
    /// "NVIDIA H200".
    pub name: [c_char; 96],
    /// 90 for compute capability 9.0.
    pub capability: i32,
    /// The number of multiprocessors.
    pub n_multiprocessors: i32,
    /// Of its memory.
    pub n_bytes: u64,
    /// The newest CUDA that the driver serves: 13000 for 13.0.
    pub driver_version: i32,
}

/// A file of the cache of compiled kernels.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ol_cache_entry {
    /// Its name in the folder.
    pub file: *const c_char,
    /// The name of the function.
    pub kernel: *const c_char,
    /// "sm_90".
    pub architecture: *const c_char,
    /// Of the library that made it.
    pub library_version: *const c_char,
    /// "nvrtc 13.0".
    pub compiler: *const c_char,
    /// Of the file.
    pub n_bytes: u64,
    /// Seconds since 1970.
    pub last_used: i64,
    /// 1: it would be used.
    pub is_sound: c_int,
}

/// Visits an entry of the cache; a code other than 0 ends the listing.
pub type ol_cache_visit = Option<unsafe extern "C" fn(user: *mut c_void, entry: *const ol_cache_entry) -> c_int>;

/// A compiled graph.
#[repr(C)]
pub struct ol_composite {
    _opaque: [u8; 0],
    _not_send_sync: std::marker::PhantomData<*mut u8>,
}

/// Which text of a composite.
pub type ol_text_kind = c_uint;
/// The graph as traced.
pub const OL_TEXT_GRAPH: ol_text_kind = 0;
/// The graph after the passes.
pub const OL_TEXT_OPTIMIZED: ol_text_kind = 1;
/// The compiled program.
pub const OL_TEXT_PROGRAM: ol_text_kind = 2;
/// The optimized graph for Graphviz.
pub const OL_TEXT_DOT: ol_text_kind = 3;

#[rustfmt::skip]
extern "C" {
    /// See `onelaunch.h`.
    pub fn ol_version() -> *const c_char;
    /// See `onelaunch.h`.
    pub fn ol_status_name(status: ol_status) -> *const c_char;

    /// See `onelaunch.h`.
    pub fn ol_dtype_name(dtype: ol_dtype) -> *const c_char;
    /// See `onelaunch.h`.
    pub fn ol_dtype_size(dtype: ol_dtype) -> usize;
    /// See `onelaunch.h`.
    pub fn ol_promote(x: ol_dtype, y: ol_dtype) -> ol_dtype;
    /// See `onelaunch.h`.
    pub fn ol_dtype_parse(name: *const c_char, dtype: *mut ol_dtype) -> c_int;

    /// See `onelaunch.h`.
    pub fn ol_tensor_contiguous(data: *mut c_void, dtype: ol_dtype, rank: i32, shape: *const i64) -> ol_tensor;

    /// See `onelaunch.h`.
    pub fn ol_value_dtype(graph: *const ol_graph, value: ol_value) -> ol_dtype;
    /// See `onelaunch.h`.
    pub fn ol_constant(graph: *mut ol_graph, dtype: ol_dtype, value: f64) -> ol_value;
    /// See `onelaunch.h`.
    pub fn ol_constant_bits(graph: *mut ol_graph, dtype: ol_dtype, bits: *const c_void) -> ol_value;
    /// See `onelaunch.h`.
    pub fn ol_astype(graph: *mut ol_graph, x: ol_value, dtype: ol_dtype) -> ol_value;
    /// See `onelaunch.h`.
    pub fn ol_broadcast_like(graph: *mut ol_graph, x: ol_value, like: ol_value) -> ol_value;
    /// See `onelaunch.h`.
    pub fn ol_broadcast_to(graph: *mut ol_graph, x: ol_value, rank: i32, shape: *const i64) -> ol_value;
    /// See `onelaunch.h`.
    pub fn ol_where(graph: *mut ol_graph, condition: ol_value, x: ol_value, y: ol_value) -> ol_value;
    /// See `onelaunch.h`.
    pub fn ol_clip(graph: *mut ol_graph, x: ol_value, low: ol_value, high: ol_value) -> ol_value;
    /// See `onelaunch.h`.
    pub fn ol_fma(graph: *mut ol_graph, x: ol_value, y: ol_value, z: ol_value) -> ol_value;
    /// See `onelaunch.h`.
    pub fn ol_graph_fail(graph: *mut ol_graph, operation: *const c_char, description: *const c_char);

    /// See `onelaunch.h`.
    pub fn ol_device_cpu(options: *const ol_cpu_options, device: *mut *mut ol_device, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_device_destroy(device: *mut ol_device);
    /// See `onelaunch.h`.
    pub fn ol_device_launches(device: *const ol_device) -> u64;
    /// See `onelaunch.h`.
    pub fn ol_device_name(device: *const ol_device) -> *const c_char;
    /// See `onelaunch.h`.
    pub fn ol_device_level(device: *const ol_device) -> *const c_char;
    /// See `onelaunch.h`.
    pub fn ol_cpu_level_available(level: ol_cpu_level) -> c_int;
    /// See `onelaunch.h`.
    pub fn ol_cpu_level_name(level: ol_cpu_level) -> *const c_char;

    /// See `onelaunch.h`.
    pub fn ol_device_cuda(ordinal: i32, options: *const ol_cuda_options, device: *mut *mut ol_device, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_device_cuda_current(options: *const ol_cuda_options, device: *mut *mut ol_device, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_cuda_count(n_devices: *mut i32, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_cuda_describe(ordinal: i32, facts: *mut ol_cuda_facts, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_cuda_compiler(version: *mut i32, error: *mut ol_error) -> ol_status;

    /// See `onelaunch.h`.
    pub fn ol_device_allocate(device: *mut ol_device, n_bytes: usize, pointer: *mut *mut c_void, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_device_free(device: *mut ol_device, pointer: *mut c_void, n_bytes: usize, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_device_copy(device: *mut ol_device, stream: ol_stream, to: *mut c_void, from: *const c_void, n_bytes: usize, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_stream_create(device: *mut ol_device, stream: *mut ol_stream, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_stream_destroy(device: *mut ol_device, stream: ol_stream, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_stream_synchronize(device: *mut ol_device, stream: ol_stream, error: *mut ol_error) -> ol_status;

    /// See `onelaunch.h`.
    pub fn ol_cache_folder(buffer: *mut c_char, n_bytes: usize) -> usize;
    /// See `onelaunch.h`.
    pub fn ol_cache_list(visit: ol_cache_visit, user: *mut c_void, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_cache_clear(n_removed: *mut u64, n_bytes: *mut u64, error: *mut ol_error) -> ol_status;

    /// See `onelaunch.h`.
    pub fn ol_compile(device: *mut ol_device, builder: *const ol_builder, input_dtypes: *const ol_dtype, composite: *mut *mut ol_composite, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_composite_destroy(composite: *mut ol_composite);
    /// See `onelaunch.h`.
    pub fn ol_output_shapes(composite: *const ol_composite, inputs: *const ol_tensor, outputs: *mut ol_tensor, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_replay(composite: *const ol_composite, stream: ol_stream, inputs: *const ol_tensor, outputs: *const ol_tensor, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_replay_composed(composite: *const ol_composite, stream: ol_stream, inputs: *const ol_tensor, outputs: *const ol_tensor, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_composite_input_count(composite: *const ol_composite) -> i32;
    /// See `onelaunch.h`.
    pub fn ol_composite_output_count(composite: *const ol_composite) -> i32;
    /// See `onelaunch.h`.
    pub fn ol_composite_input_dtype(composite: *const ol_composite, index: i32) -> ol_dtype;
    /// See `onelaunch.h`.
    pub fn ol_composite_output_dtype(composite: *const ol_composite, index: i32) -> ol_dtype;
    /// See `onelaunch.h`.
    pub fn ol_composite_name(composite: *const ol_composite) -> *const c_char;
    /// See `onelaunch.h`.
    pub fn ol_composite_composed_launches(composite: *const ol_composite) -> i32;

    /// See `onelaunch.h`.
    pub fn ol_gated_delta_rates_compile(device: *mut ol_device, update_logits: ol_dtype, decay_interval_inputs: ol_dtype, decay_rate_logarithm: ol_dtype, decay_interval_bias: ol_dtype, composite: *mut *mut ol_composite, error: *mut ol_error) -> ol_status;
    /// See `onelaunch.h`.
    pub fn ol_gated_delta_decay_compile(device: *mut ol_device, decay_interval_inputs: ol_dtype, decay_rate_logarithm: ol_dtype, decay_interval_bias: ol_dtype, composite: *mut *mut ol_composite, error: *mut ol_error) -> ol_status;

    /// See `onelaunch.h`.
    pub fn ol_composite_text(composite: *const ol_composite, kind: ol_text_kind, buffer: *mut c_char, n_bytes: usize) -> usize;
    /// See `onelaunch.h`.
    pub fn ol_cuda_kernel_text(composite: *const ol_composite, buffer: *mut c_char, n_bytes: usize) -> usize;
    /// See `onelaunch.h`.
    pub fn ol_compile_text(device: *mut ol_device, text: *const c_char, n_bytes: usize, composite: *mut *mut ol_composite, error: *mut ol_error) -> ol_status;

    /// See `onelaunch.h`.
    pub fn ol_primitive_count() -> i32;
    /// See `onelaunch.h`.
    pub fn ol_primitive_name(primitive: i32) -> *const c_char;
    /// See `onelaunch.h`.
    pub fn ol_primitive_arity(primitive: i32) -> i32;
    /// See `onelaunch.h`.
    pub fn ol_primitive_find(name: *const c_char) -> i32;
    /// See `onelaunch.h`.
    pub fn ol_primitive_result(primitive: i32, operand: ol_dtype, result: *mut ol_dtype) -> c_int;
    /// See `onelaunch.h`.
    pub fn ol_apply(graph: *mut ol_graph, primitive: i32, operands: *const ol_value, n_operands: i32) -> ol_value;
}

macro_rules! unary {
    ($($name:ident)*) => { extern "C" { $(
        /// A primitive of one operand: see `onelaunch.h`.
        pub fn $name(graph: *mut ol_graph, x: ol_value) -> ol_value;
    )* } };
}

macro_rules! binary {
    ($($name:ident)*) => { extern "C" { $(
        /// A primitive of two operands: see `onelaunch.h`.
        pub fn $name(graph: *mut ol_graph, x: ol_value, y: ol_value) -> ol_value;
    )* } };
}

unary! {
    ol_abs ol_negative ol_sign ol_square ol_floor ol_ceil ol_round
    ol_sqrt ol_rsqrt ol_reciprocal ol_exp ol_expm1 ol_log ol_log1p ol_exp2 ol_log2 ol_log10
    ol_sigmoid ol_softplus ol_silu ol_sin ol_cos ol_tan ol_arcsin ol_arccos ol_arctan
    ol_sinh ol_cosh ol_tanh ol_arcsinh ol_arccosh ol_arctanh ol_erf ol_erfinv
    ol_logical_not ol_isnan ol_isinf ol_isfinite ol_bitwise_invert
}

binary! {
    ol_add ol_subtract ol_multiply ol_power ol_divide ol_logaddexp ol_arctan2 ol_hypot ol_floor_divide ol_remainder
    ol_maximum ol_minimum ol_equal ol_not_equal ol_less ol_less_equal ol_greater ol_greater_equal
    ol_logical_and ol_logical_or ol_bitwise_and ol_bitwise_or ol_bitwise_xor ol_left_shift ol_right_shift
}

// A client of mlx-c's interface in Rust, with the functions declared by hand and no crate: the seed composite (update rates and decay
// factors of a gated-delta layer) traced by callback, replayed at the token counts of a server, held against the same operations one
// by one, and errors kept. Builds with rustc 1.63: rustc client.rs -L FOLDER -l onelaunch_mlxc
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

macro_rules! handle {
    ($($name:ident)*) => { $(
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name { ctx: *mut c_void }
        #[allow(dead_code)]
        impl $name { const EMPTY: Self = Self { ctx: ptr::null_mut() }; }
    )* };
}
handle! { MlxArray MlxVectorArray MlxStream MlxClosure MlxString }

const FLOAT32: c_int = 10;
const BFLOAT16: c_int = 12;
type Function = extern "C" fn(*mut MlxVectorArray, MlxVectorArray, *mut c_void) -> c_int;
type Handler = extern "C" fn(*const c_char, *mut c_void);
type Destructor = extern "C" fn(*mut c_void);

extern "C" {
    fn mlx_set_error_handler(handler: Option<Handler>, data: *mut c_void, dtor: Option<Destructor>);
    fn mlx_version(res: *mut MlxString) -> c_int;
    fn mlx_string_data(s: MlxString) -> *const c_char;
    fn mlx_string_free(s: MlxString) -> c_int;
    fn mlx_default_gpu_stream_new() -> MlxStream;
    fn mlx_stream_free(s: MlxStream) -> c_int;
    fn mlx_array_new_data(data: *const c_void, shape: *const c_int, dim: c_int, dtype: c_int) -> MlxArray;
    fn mlx_array_free(a: MlxArray) -> c_int;
    fn mlx_array_eval(a: MlxArray) -> c_int;
    fn mlx_array_dtype(a: MlxArray) -> c_int;
    fn mlx_array_ndim(a: MlxArray) -> usize;
    fn mlx_array_dim(a: MlxArray, d: c_int) -> c_int;
    fn mlx_array_size(a: MlxArray) -> usize;
    fn mlx_array_data_float32(a: MlxArray) -> *const f32;
    fn mlx_array_data_bfloat16(a: MlxArray) -> *const u16;
    fn mlx_vector_array_new_data(data: *const MlxArray, n: usize) -> MlxVectorArray;
    fn mlx_vector_array_set_data(res: *mut MlxVectorArray, data: *const MlxArray, n: usize) -> c_int;
    fn mlx_vector_array_get(res: *mut MlxArray, v: MlxVectorArray, i: usize) -> c_int;
    fn mlx_vector_array_size(v: MlxVectorArray) -> usize;
    fn mlx_vector_array_free(v: MlxVectorArray) -> c_int;
    fn mlx_closure_new_func_payload(f: Function, payload: *mut c_void, dtor: Option<Destructor>) -> MlxClosure;
    fn mlx_closure_apply(res: *mut MlxVectorArray, c: MlxClosure, input: MlxVectorArray) -> c_int;
    fn mlx_closure_free(c: MlxClosure) -> c_int;
    fn mlx_compile(res: *mut MlxClosure, f: MlxClosure, shapeless: bool) -> c_int;
    fn mlx_add(res: *mut MlxArray, a: MlxArray, b: MlxArray, s: MlxStream) -> c_int;
    fn mlx_multiply(res: *mut MlxArray, a: MlxArray, b: MlxArray, s: MlxStream) -> c_int;
    fn mlx_logaddexp(res: *mut MlxArray, a: MlxArray, b: MlxArray, s: MlxStream) -> c_int;
    fn mlx_exp(res: *mut MlxArray, a: MlxArray, s: MlxStream) -> c_int;
    fn mlx_negative(res: *mut MlxArray, a: MlxArray, s: MlxStream) -> c_int;
    fn mlx_sigmoid(res: *mut MlxArray, a: MlxArray, s: MlxStream) -> c_int;
    fn mlx_astype(res: *mut MlxArray, a: MlxArray, dtype: c_int, s: MlxStream) -> c_int;
    fn mlx_zeros(res: *mut MlxArray, shape: *const c_int, n: usize, dtype: c_int, s: MlxStream) -> c_int;
}

/// An array that is freed when it goes.
struct Array(MlxArray);

impl Drop for Array {
    fn drop(&mut self) {
        unsafe { mlx_array_free(self.0) };
    }
}

impl Array {
    fn new<T: Copy>(data: &[T], shape: &[c_int], dtype: c_int) -> Array {
        assert_eq!(data.len(), shape.iter().map(|&d| d as usize).product::<usize>());
        Array(unsafe { mlx_array_new_data(data.as_ptr() as *const c_void, shape.as_ptr(), shape.len() as c_int, dtype) })
    }
    /// The result of a call that assigns to an empty handle.
    fn of(f: impl FnOnce(*mut MlxArray) -> c_int) -> Result<Array, c_int> {
        let mut a = Array(MlxArray::EMPTY);
        match f(&mut a.0) {
            0 => Ok(a),
            code => Err(code),
        }
    }
    fn bits(&self) -> Vec<u32> {
        unsafe {
            assert_eq!(mlx_array_eval(self.0), 0);
            let n = mlx_array_size(self.0);
            match mlx_array_dtype(self.0) {
                FLOAT32 => std::slice::from_raw_parts(mlx_array_data_float32(self.0), n).iter().map(|x| x.to_bits()).collect(),
                BFLOAT16 => std::slice::from_raw_parts(mlx_array_data_bfloat16(self.0), n).iter().map(|&x| x as u32).collect(),
                other => panic!("dtype {}", other),
            }
        }
    }
}

/// sigmoid(b), exp(-(exp(float32(A_log)) * softplus(a + dt_bias))); softplus as clients of mlx write it.
fn rates(b: MlxArray, a: MlxArray, a_log: MlxArray, dt_bias: MlxArray) -> Result<[Array; 2], c_int> {
    unsafe {
        let s = mlx_default_gpu_stream_new();
        let x = Array::of(|r| mlx_add(r, a, dt_bias, s))?;
        let zero = Array::of(|r| mlx_zeros(r, ptr::null(), 0, mlx_array_dtype(x.0), s))?;
        let softplus = Array::of(|r| mlx_logaddexp(r, x.0, zero.0, s))?;
        let wide = Array::of(|r| mlx_astype(r, a_log, FLOAT32, s))?;
        let rate = Array::of(|r| mlx_exp(r, wide.0, s))?;
        let product = Array::of(|r| mlx_multiply(r, rate.0, softplus.0, s))?;
        let minus = Array::of(|r| mlx_negative(r, product.0, s))?;
        let outputs = [Array::of(|r| mlx_sigmoid(r, b, s))?, Array::of(|r| mlx_exp(r, minus.0, s))?];
        mlx_stream_free(s);
        Ok(outputs)
    }
}

static CALLS: AtomicUsize = AtomicUsize::new(0);
static DROPPED: AtomicUsize = AtomicUsize::new(0);
static ERRORS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn build(res: *mut MlxVectorArray, input: MlxVectorArray, payload: *mut c_void) -> c_int {
    CALLS.fetch_add(1, Ordering::Relaxed);
    assert_eq!(unsafe { *(payload as *const u64) }, 42);
    let get = |i| Array::of(|r| unsafe { mlx_vector_array_get(r, input, i) });
    let outputs = get(0).and_then(|b| get(1).and_then(|a| get(2).and_then(|l| get(3).and_then(|d| rates(b.0, a.0, l.0, d.0)))));
    match outputs {
        Ok(outputs) => unsafe { mlx_vector_array_set_data(res, [outputs[0].0, outputs[1].0].as_ptr(), 2) },
        Err(code) => code,
    }
}

extern "C" fn drop_payload(payload: *mut c_void) {
    drop(unsafe { Box::from_raw(payload as *mut u64) });
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn on_error(message: *const c_char, _: *mut c_void) {
    println!("error, as it should be: {}", unsafe { CStr::from_ptr(message) }.to_string_lossy());
    ERRORS.fetch_add(1, Ordering::Relaxed);
}

fn apply(c: MlxClosure, inputs: &[MlxArray]) -> Result<Vec<Array>, c_int> {
    unsafe {
        let input = mlx_vector_array_new_data(inputs.as_ptr(), inputs.len());
        let mut output = MlxVectorArray::EMPTY;
        let code = mlx_closure_apply(&mut output, c, input);
        mlx_vector_array_free(input);
        if code != 0 {
            return Err(code);
        }
        let n = mlx_vector_array_size(output);
        let arrays = (0..n).map(|i| Array::of(|r| mlx_vector_array_get(r, output, i))).collect();
        mlx_vector_array_free(output);
        arrays
    }
}

fn bfloat16(x: f32) -> u16 {
    (x.to_bits() >> 16) as u16
}

fn main() {
    const HEADS: usize = 32;
    let wave = |i: usize, scale: f32| ((i * 37 % 101) as f32 - 50.0) * scale;
    let compiled = unsafe {
        mlx_set_error_handler(Some(on_error), ptr::null_mut(), None);
        let mut version = MlxString::EMPTY;
        assert_eq!(mlx_version(&mut version), 0);
        println!("mlx-c {}", CStr::from_ptr(mlx_string_data(version)).to_str().unwrap());
        mlx_string_free(version);
        let plain = mlx_closure_new_func_payload(build, Box::into_raw(Box::new(42u64)) as *mut c_void, Some(drop_payload));
        let mut compiled = MlxClosure::EMPTY;
        assert_eq!(mlx_compile(&mut compiled, plain, true), 0);
        mlx_closure_free(plain);
        compiled
    };
    let a_log: Vec<f32> = (0..HEADS).map(|i| wave(i, 0.05)).collect();
    let dt_bias: Vec<u16> = (0..HEADS).map(|i| bfloat16(wave(i, 0.1))).collect();
    let a_log = Array::new(&a_log, &[HEADS as c_int], FLOAT32);
    let dt_bias = Array::new(&dt_bias, &[HEADS as c_int], BFLOAT16);
    for &tokens in &[1, 2, 5, 64, 1000, 4096] {
        let shape = [1, tokens as c_int, HEADS as c_int];
        let b: Vec<u16> = (0..tokens * HEADS).map(|i| bfloat16(wave(i, 0.2))).collect();
        let a: Vec<u16> = (0..tokens * HEADS).map(|i| bfloat16(wave(i + 7, 0.3))).collect();
        let (b, a) = (Array::new(&b, &shape, BFLOAT16), Array::new(&a, &shape, BFLOAT16));
        let out = apply(compiled, &[b.0, a.0, a_log.0, dt_bias.0]).unwrap();
        let one_by_one = rates(b.0, a.0, a_log.0, dt_bias.0).unwrap();
        assert_eq!(out.len(), 2);
        for i in 0..2 {
            assert!(out[i].bits() == one_by_one[i].bits(), "output {} of {} tokens", i, tokens);
            unsafe {
                assert_eq!(mlx_array_ndim(out[i].0), 3);
                assert_eq!(mlx_array_dim(out[i].0, 1), tokens as c_int);
            }
        }
        assert_eq!(unsafe { mlx_array_dtype(out[1].0) }, FLOAT32);
    }
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);

    let odd = Array::new(&[0u16; 3], &[3], BFLOAT16);
    let b = Array::new(&[0u16; HEADS], &[1, 1, HEADS as c_int], BFLOAT16);
    assert_eq!(apply(compiled, &[b.0, b.0, a_log.0]).err(), Some(1));
    assert_eq!(apply(compiled, &[b.0, odd.0, a_log.0, dt_bias.0]).err(), Some(1));
    assert!(ERRORS.load(Ordering::Relaxed) >= 2);
    assert!(apply(compiled, &[b.0, b.0, a_log.0, dt_bias.0]).is_ok());
    unsafe { mlx_closure_free(compiled) };
    println!("{} errors, {} payloads dropped", ERRORS.load(Ordering::Relaxed), DROPPED.load(Ordering::Relaxed));
    println!("rates by Rust: equal bits");
}

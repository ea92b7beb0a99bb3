//! The layout of every struct, as numbers. `tests/rust/check_bindings.py` holds the same lines to the C compiler's layout.

use onelaunch_sys::*;
use std::mem::{align_of, size_of, MaybeUninit};
use std::ptr::addr_of;

macro_rules! layout {
    ($type:ident, $size:literal, $align:literal, { $($field:ident $offset:literal)* }) => {{
        assert_eq!(size_of::<$type>(), $size, "the size of {}", stringify!($type));
        assert_eq!(align_of::<$type>(), $align, "the alignment of {}", stringify!($type));
        let place = MaybeUninit::<$type>::uninit();
        let start = place.as_ptr();
        // Only addresses are computed.
        $(let at = unsafe { addr_of!((*start).$field) } as usize - start as usize;
        assert_eq!(at, $offset, "the offset of {}.{}", stringify!($type), stringify!($field));)*
    }};
}

#[test]
#[cfg(target_pointer_width = "64")]
fn structs_lie_in_memory_as_in_c() {
    layout!(ol_error, 520, 4, { status 0 code 4 operation 8 description 72 });
    layout!(ol_tensor, 144, 8, { data 0 dtype 8 rank 12 shape 16 strides 80 });
    layout!(ol_value, 8, 4, { node 0 graph 4 });
    layout!(ol_builder, 32, 8, { build 0 user 8 n_inputs 16 n_outputs 20 name 24 });
    layout!(ol_allocator, 24, 8, { allocate 0 free 8 user 16 });
    layout!(ol_cpu_options, 48, 8, { level 0 n_threads 4 parallel_for 8 parallel_user 16 allocator 24 });
    layout!(ol_cuda_options, 24, 8, { allocator 0 });
    layout!(ol_cuda_facts, 120, 8, { name 0 capability 96 n_multiprocessors 100 n_bytes 104 driver_version 112 });
    layout!(ol_cache_entry, 64, 8, { file 0 kernel 8 architecture 16 library_version 24 compiler 32 n_bytes 40 last_used 48 is_sound 56 });
}

#[test]
fn the_library_answers() {
    let version = unsafe { std::ffi::CStr::from_ptr(ol_version()) }.to_str().unwrap();
    assert!(version.starts_with(&format!("{OL_VERSION_MAJOR}.{OL_VERSION_MINOR}.")), "{version}");
    assert_eq!(unsafe { ol_dtype_size(OL_BFLOAT16) }, 2);
}

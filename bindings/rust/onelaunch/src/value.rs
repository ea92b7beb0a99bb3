//! Values of a trace, and a method for every primitive.

use crate::dtype::{DType, Element};
use crate::graph::Brand;
use crate::sys;
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::c_void;

/// A value of a graph under construction: an input, a constant, or what a primitive gave. A small handle that is copied freely.
///
/// Operators and methods add primitives to the graph. The other operand may be a scalar, which is a constant of the dtype of its
/// Rust type: `x * 0.5_f32`, `x.maximum(0.0_f32)`, `1.0_f32 - x`; [`Value::constant`] makes one of this value's own dtype. Operands are
/// brought to their common dtype first ([`DType::promote`]); primitives for floats bring integers and bool to float32. Every result
/// is the exact one rounded once.
///
/// Division on integers gives float32, and `%` is [`Value::remainder`], which has Python's sign, not Rust's.
///
/// # Traces do not mix
///
/// The lifetime `'g` marks the trace. A value cannot leave its builder:
///
/// ```compile_fail,E0521
/// # use onelaunch::*;
/// # fn main() -> Result<()> {
/// let mut kept = None;
/// Device::cpu()?.compile("leak", [DType::Float32], |_, [x]| {
///     kept = Some(x);
///     [x]
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// nor be used in another one:
///
/// ```compile_fail,E0521
/// # use onelaunch::*;
/// # fn main() -> Result<()> {
/// let cpu = Device::cpu()?;
/// cpu.compile("outer", [DType::Float32], |_, [x]| {
///     cpu.compile("inner", [DType::Float32], |_, [y]| [x + y]).unwrap();
///     [x]
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// nor go to another thread:
///
/// ```compile_fail,E0277
/// # use onelaunch::*;
/// # fn main() -> Result<()> {
/// Device::cpu()?.compile("thread", [DType::Float32], |_, [x]| {
///     std::thread::scope(|scope| scope.spawn(move || x.exp()).join().unwrap());
///     [x]
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// Two values are not compared: that would be a primitive, [`Value::equal`].
///
/// ```compile_fail,E0369
/// # use onelaunch::*;
/// # fn compare<'g>(x: Value<'g>, y: Value<'g>) -> bool {
/// x == y
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Value<'g> {
    graph: *mut sys::ol_graph,
    raw: sys::ol_value,
    brand: Brand<'g>,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({}, {})", self.raw.node, self.dtype())
    }
}

/// What a primitive takes beside a value: a value of the same graph, or a scalar.
pub trait Operand<'g>: sealed::Sealed {
    /// The operand as a value of the graph that `beside` is of.
    #[doc(hidden)]
    fn value(self, beside: Value<'g>) -> Value<'g>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Value<'_> {}
    impl<T: crate::Element> Sealed for T {}
}

impl<'g> Operand<'g> for Value<'g> {
    fn value(self, _: Value<'g>) -> Value<'g> {
        self
    }
}

impl<'g, T: Element> Operand<'g> for T {
    fn value(self, beside: Value<'g>) -> Value<'g> {
        beside.scalar(self)
    }
}

macro_rules! methods {
    ($(#[doc = $doc:literal] $name:ident($self:ident $(, $operand:ident)*) $(as $method:ident)? = $function:ident;)*) => {
        impl<'g> Value<'g> { $(
            methods! { @one $doc $self ($($operand),*) ($($method)? $name) $function }
        )* }

        /// The methods by their primitives' names.
        #[cfg(test)]
        const METHODS: &[(&str, Method)] = &[$(
            (stringify!($name), methods! { @call ($self $(, $operand)*) ($($method)? $name) }),
        )*];
    };
    (@one $doc:literal $self:ident ($($operand:ident),*) ($method:ident $($rest:ident)?) $function:ident) => {
        #[doc = $doc]
        #[allow(clippy::should_implement_trait)]
        pub fn $method($self, $($operand: impl Operand<'g>),*) -> Value<'g> {
            $(let $operand = $operand.value($self).raw;)*
            // SAFETY: the graph lives while its builder runs, and a Value is there no longer.
            $self.with(unsafe { sys::$function($self.graph, $self.raw, $($operand),*) })
        }
    };
    (@call ($self:ident) ($method:ident $($rest:ident)?)) => { |[x, _, _]| x.$method() };
    (@call ($self:ident, $y:ident) ($method:ident $($rest:ident)?)) => { |[x, y, _]| x.$method(y) };
    (@call ($self:ident, $y:ident, $z:ident) ($method:ident $($rest:ident)?)) => { |[x, y, z]| x.$method(y, z) };
}

methods! {
    #[doc = "The absolute value."] abs(self) = ol_abs;
    #[doc = "`-x`."] negative(self) = ol_negative;
    #[doc = "-1, 0 or 1; keeps the zero's sign, and NaN."] sign(self) = ol_sign;
    #[doc = "`x x`."] square(self) = ol_square;
    #[doc = "The largest integer that is not above."] floor(self) = ol_floor;
    #[doc = "The smallest integer that is not below."] ceil(self) = ol_ceil;
    #[doc = "The nearest integer, half to even."] round(self) = ol_round;
    #[doc = "The square root."] sqrt(self) = ol_sqrt;
    #[doc = "`1 / sqrt(x)`, rounded once."] rsqrt(self) = ol_rsqrt;
    #[doc = "`1 / x`."] reciprocal(self) = ol_reciprocal;
    #[doc = "The exponential."] exp(self) = ol_exp;
    #[doc = "`exp(x) - 1`, rounded once."] expm1(self) = ol_expm1;
    #[doc = "The natural logarithm."] log(self) = ol_log;
    #[doc = "`log(1 + x)`, rounded once."] log1p(self) = ol_log1p;
    #[doc = "2 to the power of `x`."] exp2(self) = ol_exp2;
    #[doc = "The logarithm to base 2."] log2(self) = ol_log2;
    #[doc = "The logarithm to base 10."] log10(self) = ol_log10;
    #[doc = "`1 / (1 + exp(-x))`, rounded once."] sigmoid(self) = ol_sigmoid;
    #[doc = "`log(1 + exp(x))`, rounded once."] softplus(self) = ol_softplus;
    #[doc = "`x sigmoid(x)`, rounded once."] silu(self) = ol_silu;
    #[doc = "The sine, in radians."] sin(self) = ol_sin;
    #[doc = "The cosine, in radians."] cos(self) = ol_cos;
    #[doc = "The tangent, in radians."] tan(self) = ol_tan;
    #[doc = "The arc sine."] arcsin(self) = ol_arcsin;
    #[doc = "The arc cosine."] arccos(self) = ol_arccos;
    #[doc = "The arc tangent."] arctan(self) = ol_arctan;
    #[doc = "The hyperbolic sine."] sinh(self) = ol_sinh;
    #[doc = "The hyperbolic cosine."] cosh(self) = ol_cosh;
    #[doc = "The hyperbolic tangent."] tanh(self) = ol_tanh;
    #[doc = "The inverse of `sinh`."] arcsinh(self) = ol_arcsinh;
    #[doc = "The inverse of `cosh`."] arccosh(self) = ol_arccosh;
    #[doc = "The inverse of `tanh`."] arctanh(self) = ol_arctanh;
    #[doc = "The error function."] erf(self) = ol_erf;
    #[doc = "The inverse of `erf`."] erfinv(self) = ol_erfinv;
    #[doc = "Not, of a bool; others are brought to bool."] logical_not(self) = ol_logical_not;
    #[doc = "Whether it is NaN, as a bool."] isnan(self) = ol_isnan;
    #[doc = "Whether it is infinite, as a bool."] isinf(self) = ol_isinf;
    #[doc = "Whether it is neither infinite nor NaN, as a bool."] isfinite(self) = ol_isfinite;
    #[doc = "All bits inverted (`!x`), of integers and bool."] bitwise_invert(self) = ol_bitwise_invert;
    #[doc = "`x + y`."] add(self, y) = ol_add;
    #[doc = "`x - y`."] subtract(self, y) = ol_subtract;
    #[doc = "`x * y`."] multiply(self, y) = ol_multiply;
    #[doc = "`x / y`; integers are divided as float32."] divide(self, y) = ol_divide;
    #[doc = "The quotient rounded down, as Python's `//`; an integer by zero gives 0."] floor_divide(self, y) = ol_floor_divide;
    #[doc = "The remainder with the divisor's sign, as Python's `%`; an integer by zero gives 0."] remainder(self, y) = ol_remainder;
    #[doc = "The larger; NaN if either is."] maximum(self, y) = ol_maximum;
    #[doc = "The smaller; NaN if either is."] minimum(self, y) = ol_minimum;
    #[doc = "`log(exp(x) + exp(y))`."] logaddexp(self, y) = ol_logaddexp;
    #[doc = "`x` to the power of `y`."] power(self, y) = ol_power;
    #[doc = "The angle of the point (y, x), of which this value is the first."] arctan2(self, x) = ol_arctan2;
    #[doc = "`sqrt(x x + y y)`, rounded once."] hypot(self, y) = ol_hypot;
    #[doc = "`x == y`, as a bool."] equal(self, y) = ol_equal;
    #[doc = "`x != y`, as a bool; NaN is unequal to all."] not_equal(self, y) = ol_not_equal;
    #[doc = "`x < y`, as a bool."] less(self, y) = ol_less;
    #[doc = "`x <= y`, as a bool."] less_equal(self, y) = ol_less_equal;
    #[doc = "`x > y`, as a bool."] greater(self, y) = ol_greater;
    #[doc = "`x >= y`, as a bool."] greater_equal(self, y) = ol_greater_equal;
    #[doc = "And, of bools; others are brought to bool."] logical_and(self, y) = ol_logical_and;
    #[doc = "Or, of bools; others are brought to bool."] logical_or(self, y) = ol_logical_or;
    #[doc = "And of the bits, of integers and bool."] bitwise_and(self, y) = ol_bitwise_and;
    #[doc = "Or of the bits, of integers and bool."] bitwise_or(self, y) = ol_bitwise_or;
    #[doc = "Exclusive or of the bits, of integers and bool."] bitwise_xor(self, y) = ol_bitwise_xor;
    #[doc = "The bits moved up, of integers; by the width or more gives 0."] left_shift(self, y) = ol_left_shift;
    #[doc = "The bits moved down, of integers; by the width or more gives 0, or the sign fill."] right_shift(self, y) = ol_right_shift;
    #[doc = "Where this value, brought to bool, is true: `x`, else `y`. The primitive `where`."] where(self, x, y) as select = ol_where;
    #[doc = "`minimum(maximum(x, low), high)`."] clip(self, low, high) = ol_clip;
    #[doc = "`x * y + z`, rounded once."] fma(self, y, z) = ol_fma;
}

impl<'g> Value<'g> {
    pub(crate) fn new(graph: *mut sys::ol_graph, raw: sys::ol_value) -> Value<'g> {
        Value { graph, raw, brand: PhantomData }
    }

    fn with(self, raw: sys::ol_value) -> Value<'g> {
        Value { raw, ..self }
    }

    pub(crate) fn raw(self) -> sys::ol_value {
        self.raw
    }

    pub(crate) fn scalar<T: Element>(self, scalar: T) -> Value<'g> {
        // SAFETY: as in the methods; the scalar's bytes are read.
        self.with(unsafe { sys::ol_constant_bits(self.graph, T::DTYPE.to_raw(), &scalar as *const T as *const c_void) })
    }

    /// Its dtype; float32 where something failed before.
    pub fn dtype(self) -> DType {
        // SAFETY: as in the methods.
        DType::given(unsafe { sys::ol_value_dtype(self.graph, self.raw) })
    }

    /// A constant of this value's dtype: `x + x.constant(1.0)` is an addition in the dtype of `x`, whatever that is.
    pub fn constant(self, value: f64) -> Value<'g> {
        // SAFETY: as in the methods.
        self.with(unsafe { sys::ol_constant(self.graph, self.dtype().to_raw(), value) })
    }

    /// Converted to another dtype by one rounding; the same dtype gives a copy. Float to integer truncates and saturates, NaN gives 0;
    /// anything to bool is `x != 0`.
    pub fn astype(self, dtype: DType) -> Value<'g> {
        // SAFETY: as in the methods.
        self.with(unsafe { sys::ol_astype(self.graph, self.raw, dtype.to_raw()) })
    }

    /// Repeated over the common shape of this value and `like`.
    pub fn broadcast_like(self, like: Value<'g>) -> Value<'g> {
        // SAFETY: as in the methods.
        self.with(unsafe { sys::ol_broadcast_like(self.graph, self.raw, like.raw) })
    }

    /// Repeated to exactly this shape, which is checked at replay. A shape that no tensor can have fails the compilation.
    pub fn broadcast_to(self, shape: impl AsRef<[usize]>) -> Value<'g> {
        let shape = shape.as_ref();
        // One of 64 bits is negative here, and so fails; the library then names its axis.
        let mut dims = [0; crate::MAX_RANK];
        for (dim, &extent) in dims.iter_mut().zip(shape) {
            *dim = extent as i64;
        }
        let rank = i32::try_from(shape.len()).unwrap_or(i32::MAX);
        // SAFETY: as in the methods; the library looks at the dims only where the rank is at most OL_MAX_RANK.
        self.with(unsafe { sys::ol_broadcast_to(self.graph, self.raw, rank, dims.as_ptr()) })
    }
}

#[cfg(test)]
type Method = for<'g> fn([Value<'g>; 3]) -> Value<'g>;

/// Every primitive of the library has its method, and that method is its.
#[cfg(test)]
mod tests {
    use super::{Method, METHODS};
    use crate::{DType, Device, Primitive, TextKind};

    #[test]
    fn every_primitive_has_a_method() {
        let cpu = Device::cpu().unwrap();
        let primitives: Vec<&str> = Primitive::all().map(Primitive::name).collect();
        assert!(primitives.len() >= 67);
        for name in &primitives {
            assert_eq!(METHODS.iter().filter(|(method, _)| method == name).count(), 1, "methods for {name}");
        }
        assert_eq!(METHODS.len(), primitives.len());
        for &(name, method) in METHODS {
            let primitive = Primitive::find(name).unwrap();
            let dtype = if primitive.result(DType::Float32).is_some() { DType::Float32 } else { DType::Int32 };
            let by_method = graph(&cpu, dtype, method);
            let by_number = cpu.compile("one", [dtype; 3], |g, inputs| [g.apply(primitive, &inputs[..primitive.arity()])]).unwrap();
            assert_eq!(by_method, by_number.text(TextKind::Graph), "{name}");
            assert!(by_method.contains(name), "{name} in {by_method}");
        }
    }

    fn graph(cpu: &Device, dtype: DType, method: Method) -> String {
        cpu.compile("one", [dtype; 3], |_, inputs| [method(inputs)]).unwrap().text(TextKind::Graph)
    }
}

//! The activations of gated-delta layers (Qwen3-Next, Qwen3.5, Kimi Linear, OLMo hybrids; Yang et al., "Gated Delta Networks", 2024,
//! with Mamba2's parametrisation of the decay), with their tensors by name.

use crate::composite::Composite;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::platform::{Cpu, Platform};
use crate::stream::Stream;
use crate::sys;
use crate::view::{View, ViewMut};
use std::slice;

/// A composite that the library has: its type, the dtypes and views of its inputs by name, and how it is run.
macro_rules! activation {
    (
        $(#[$doc:meta])* $activation:ident = $compile:ident;
        $(#[$dtypes_doc:meta])* dtypes $dtypes:ident;
        $(#[$inputs_doc:meta])* inputs $inputs:ident { $($(#[$field_doc:meta])* $field:ident),* $(,)? };
        outputs $outputs:ident, $as_mut_slice:path
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $activation<P: Platform = Cpu> {
            composite: Composite<P>,
        }

        $(#[$dtypes_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $dtypes {
            $($(#[$field_doc])* pub $field: DType,)*
        }

        impl $dtypes {
            /// The same dtype for all of them.
            pub fn all(dtype: DType) -> $dtypes {
                $dtypes { $($field: dtype),* }
            }
        }

        $(#[$inputs_doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub struct $inputs<'a, P: Platform = Cpu> {
            $($(#[$field_doc])* pub $field: View<'a, P>,)*
        }

        impl<'a, P: Platform> $inputs<'a, P> {
            fn as_slice(&self) -> &[View<'a, P>] {
                // SAFETY: so many fields of one type, one after the other, without anything between them.
                unsafe { slice::from_raw_parts(self as *const Self as *const View<'a, P>, [$(stringify!($field)),*].len()) }
            }
        }

        impl<P: Platform> $activation<P> {
            /// Compiles them for inputs of these dtypes. [`Status::DType`](crate::Status::DType) where one is no float.
            pub fn compile(device: &Device<P>, dtypes: $dtypes) -> Result<Self> {
                // SAFETY: a device, and places for the composite and the error.
                let composite = device.compile_raw(|composite, error| unsafe {
                    sys::$compile(device.as_raw(), $(dtypes.$field.to_raw(),)* composite, error)
                })?;
                Ok($activation { composite })
            }

            /// Runs them: see [`Composite::replay`].
            #[inline]
            pub fn replay(&self, inputs: &$inputs<'_, P>, outputs: &mut $outputs<'_, P>) -> Result<()> {
                self.composite.replay(inputs.as_slice(), $as_mut_slice(outputs))
            }

            /// Runs them in a stream: see [`Composite::replay_on`].
            #[inline]
            pub fn replay_on(&self, stream: &Stream<P>, inputs: &$inputs<'_, P>, outputs: &mut $outputs<'_, P>) -> Result<()> {
                self.composite.replay_on(stream, inputs.as_slice(), $as_mut_slice(outputs))
            }

            /// The composed path: see [`Composite::replay_composed`].
            pub fn replay_composed(&self, inputs: &$inputs<'_, P>, outputs: &mut $outputs<'_, P>) -> Result<()> {
                self.composite.replay_composed(inputs.as_slice(), $as_mut_slice(outputs))
            }
        }

        /// Its name, texts, dtypes, output shapes.
        impl<P: Platform> AsRef<Composite<P>> for $activation<P> {
            fn as_ref(&self) -> &Composite<P> {
                &self.composite
            }
        }
    };
}

activation! {
    /// The rate activations of a gated-delta layer as one launch, each step rounded to its own dtype:
    ///
    /// ```text
    /// update rates   beta  = sigmoid(b)                                            dtype of b
    /// decay factors  decay = exp(-(exp(float32(A_log)) * softplus(a + dt_bias)))   float32
    /// ```
    ///
    /// `a + dt_bias` and its softplus are of the dtype that both promote to.
    ///
    /// ```
    /// use onelaunch::{Device, DType, Bf16, GatedDeltaRates, RatesDTypes, RatesInputs, RatesOutputs, View, ViewMut};
    ///
    /// # fn main() -> onelaunch::Result<()> {
    /// const HEADS: usize = 32;
    /// let cpu = Device::cpu()?;
    /// let rates = GatedDeltaRates::compile(&cpu, RatesDTypes { decay_rate_logarithm: DType::Float32, ..RatesDTypes::all(DType::BFloat16) })?;
    ///
    /// let (b, a) = ([Bf16::ONE; HEADS], [Bf16::ZERO; HEADS]);
    /// let (a_log, dt_bias) = ([0.5_f32; HEADS], [Bf16::from_f32(-4.0); HEADS]);
    /// let (mut beta, mut decay) = ([Bf16::ZERO; HEADS], [0.0_f32; HEADS]);
    /// rates.replay(
    ///     &RatesInputs {
    ///         update_logits: View::new(&b, [1, HEADS])?,
    ///         decay_interval_inputs: View::new(&a, [1, HEADS])?,
    ///         decay_rate_logarithm: View::new(&a_log, [HEADS])?,
    ///         decay_interval_bias: View::new(&dt_bias, [HEADS])?,
    ///     },
    ///     &mut RatesOutputs { update_rates: ViewMut::new(&mut beta, [1, HEADS])?, decay_factors: ViewMut::new(&mut decay, [1, HEADS])? },
    /// )?;
    /// assert_eq!(beta[0].to_f32(), 0.73046875);
    /// assert_eq!(cpu.launches(), 1);
    /// # Ok(())
    /// # }
    /// ```
    GatedDeltaRates = ol_gated_delta_rates_compile;

    /// The dtypes of the inputs of [`GatedDeltaRates`]; any floats.
    dtypes RatesDTypes;

    /// The inputs of [`GatedDeltaRates`]: `b` and `a` of `[tokens, heads]`, `A_log` and `dt_bias` of `[heads]`, or whatever broadcasts so.
    /// Per channel (Kimi): `a` of `[tokens, heads, channels]`, `A_log` of `[heads, 1]`, `dt_bias` of `[heads, channels]`.
    inputs RatesInputs {
        /// `b`.
        update_logits,
        /// `a`.
        decay_interval_inputs,
        /// `A_log`.
        decay_rate_logarithm,
        /// `dt_bias`.
        decay_interval_bias,
    };

    outputs RatesOutputs, RatesOutputs::as_mut_slice
}

/// The outputs of [`GatedDeltaRates`].
#[derive(Debug)]
#[repr(C)]
pub struct RatesOutputs<'a, P: Platform = Cpu> {
    /// `beta`, of the dtype and shape of `b`.
    pub update_rates: ViewMut<'a, P>,
    /// `decay`, float32, of the shape that its inputs broadcast to.
    pub decay_factors: ViewMut<'a, P>,
}

impl<'a, P: Platform> RatesOutputs<'a, P> {
    fn as_mut_slice(&mut self) -> &mut [ViewMut<'a, P>] {
        // SAFETY: two fields of one type, one after the other, without anything between them.
        unsafe { slice::from_raw_parts_mut(self as *mut Self as *mut ViewMut<'a, P>, 2) }
    }
}

activation! {
    /// The decay factors alone; the bits of those of [`GatedDeltaRates`].
    GatedDeltaDecay = ol_gated_delta_decay_compile;

    /// The dtypes of the inputs of [`GatedDeltaDecay`]; any floats.
    dtypes DecayDTypes;

    /// The inputs of [`GatedDeltaDecay`]; as those of [`GatedDeltaRates`].
    inputs DecayInputs {
        /// `a`.
        decay_interval_inputs,
        /// `A_log`.
        decay_rate_logarithm,
        /// `dt_bias`.
        decay_interval_bias,
    };

    outputs ViewMut, slice::from_mut
}

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
#[derive(Debug)]
pub struct GatedDeltaRates<P: Platform = Cpu> {
    composite: Composite<P>,
}

/// The dtypes of the inputs of [`GatedDeltaRates`]; any floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RatesDTypes {
    /// `b`.
    pub update_logits: DType,
    /// `a`.
    pub decay_interval_inputs: DType,
    /// `A_log`.
    pub decay_rate_logarithm: DType,
    /// `dt_bias`.
    pub decay_interval_bias: DType,
}

impl RatesDTypes {
    /// The same dtype for all of them.
    pub fn all(dtype: DType) -> RatesDTypes {
        RatesDTypes { update_logits: dtype, decay_interval_inputs: dtype, decay_rate_logarithm: dtype, decay_interval_bias: dtype }
    }
}

/// The inputs of [`GatedDeltaRates`]: `b` and `a` of `[tokens, heads]`, `A_log` and `dt_bias` of `[heads]`, or whatever broadcasts so. Per
/// channel (Kimi): `a` of `[tokens, heads, channels]`, `A_log` of `[heads, 1]`, `dt_bias` of `[heads, channels]`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RatesInputs<'a, P: Platform = Cpu> {
    /// `b`.
    pub update_logits: View<'a, P>,
    /// `a`.
    pub decay_interval_inputs: View<'a, P>,
    /// `A_log`.
    pub decay_rate_logarithm: View<'a, P>,
    /// `dt_bias`.
    pub decay_interval_bias: View<'a, P>,
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

impl<'a, P: Platform> RatesInputs<'a, P> {
    fn as_slice(&self) -> &[View<'a, P>] {
        // SAFETY: four fields of one type, one after the other, without anything between them.
        unsafe { slice::from_raw_parts(self as *const Self as *const View<'a, P>, 4) }
    }
}

impl<'a, P: Platform> RatesOutputs<'a, P> {
    fn as_mut_slice(&mut self) -> &mut [ViewMut<'a, P>] {
        // SAFETY: two fields of one type, one after the other, without anything between them.
        unsafe { slice::from_raw_parts_mut(self as *mut Self as *mut ViewMut<'a, P>, 2) }
    }
}

impl<P: Platform> GatedDeltaRates<P> {
    /// Compiles them for inputs of these dtypes. [`Status::DType`](crate::Status::DType) where one is no float.
    pub fn compile(device: &Device<P>, dtypes: RatesDTypes) -> Result<Self> {
        let d = dtypes;
        // SAFETY: a device, and places for the composite and the error.
        let composite = device.compile_raw(|composite, error| unsafe {
            sys::ol_gated_delta_rates_compile(
                device.as_raw(),
                d.update_logits.to_raw(),
                d.decay_interval_inputs.to_raw(),
                d.decay_rate_logarithm.to_raw(),
                d.decay_interval_bias.to_raw(),
                composite,
                error,
            )
        })?;
        Ok(GatedDeltaRates { composite })
    }

    /// Runs them: see [`Composite::replay`].
    #[inline]
    pub fn replay(&self, inputs: &RatesInputs<'_, P>, outputs: &mut RatesOutputs<'_, P>) -> Result<()> {
        self.composite.replay(inputs.as_slice(), outputs.as_mut_slice())
    }

    /// Runs them in a stream: see [`Composite::replay_on`].
    #[inline]
    pub fn replay_on(&self, stream: &Stream<P>, inputs: &RatesInputs<'_, P>, outputs: &mut RatesOutputs<'_, P>) -> Result<()> {
        self.composite.replay_on(stream, inputs.as_slice(), outputs.as_mut_slice())
    }

    /// The composed path: see [`Composite::replay_composed`].
    pub fn replay_composed(&self, inputs: &RatesInputs<'_, P>, outputs: &mut RatesOutputs<'_, P>) -> Result<()> {
        self.composite.replay_composed(inputs.as_slice(), outputs.as_mut_slice())
    }
}

/// Its name, texts, dtypes, output shapes.
impl<P: Platform> AsRef<Composite<P>> for GatedDeltaRates<P> {
    fn as_ref(&self) -> &Composite<P> {
        &self.composite
    }
}

/// The decay factors alone; the bits of those of [`GatedDeltaRates`].
#[derive(Debug)]
pub struct GatedDeltaDecay<P: Platform = Cpu> {
    composite: Composite<P>,
}

/// The dtypes of the inputs of [`GatedDeltaDecay`]; any floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DecayDTypes {
    /// `a`.
    pub decay_interval_inputs: DType,
    /// `A_log`.
    pub decay_rate_logarithm: DType,
    /// `dt_bias`.
    pub decay_interval_bias: DType,
}

impl DecayDTypes {
    /// The same dtype for all of them.
    pub fn all(dtype: DType) -> DecayDTypes {
        DecayDTypes { decay_interval_inputs: dtype, decay_rate_logarithm: dtype, decay_interval_bias: dtype }
    }
}

/// The inputs of [`GatedDeltaDecay`]; as those of [`GatedDeltaRates`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DecayInputs<'a, P: Platform = Cpu> {
    /// `a`.
    pub decay_interval_inputs: View<'a, P>,
    /// `A_log`.
    pub decay_rate_logarithm: View<'a, P>,
    /// `dt_bias`.
    pub decay_interval_bias: View<'a, P>,
}

impl<'a, P: Platform> DecayInputs<'a, P> {
    fn as_slice(&self) -> &[View<'a, P>] {
        // SAFETY: three fields of one type, one after the other, without anything between them.
        unsafe { slice::from_raw_parts(self as *const Self as *const View<'a, P>, 3) }
    }
}

impl<P: Platform> GatedDeltaDecay<P> {
    /// Compiles them for inputs of these dtypes. [`Status::DType`](crate::Status::DType) where one is no float.
    pub fn compile(device: &Device<P>, dtypes: DecayDTypes) -> Result<Self> {
        let d = dtypes;
        // SAFETY: a device, and places for the composite and the error.
        let composite = device.compile_raw(|composite, error| unsafe {
            sys::ol_gated_delta_decay_compile(
                device.as_raw(),
                d.decay_interval_inputs.to_raw(),
                d.decay_rate_logarithm.to_raw(),
                d.decay_interval_bias.to_raw(),
                composite,
                error,
            )
        })?;
        Ok(GatedDeltaDecay { composite })
    }

    /// Runs them into `decay_factors`: see [`Composite::replay`].
    #[inline]
    pub fn replay(&self, inputs: &DecayInputs<'_, P>, decay_factors: &mut ViewMut<'_, P>) -> Result<()> {
        self.composite.replay(inputs.as_slice(), slice::from_mut(decay_factors))
    }

    /// Runs them in a stream: see [`Composite::replay_on`].
    #[inline]
    pub fn replay_on(&self, stream: &Stream<P>, inputs: &DecayInputs<'_, P>, decay_factors: &mut ViewMut<'_, P>) -> Result<()> {
        self.composite.replay_on(stream, inputs.as_slice(), slice::from_mut(decay_factors))
    }

    /// The composed path: see [`Composite::replay_composed`].
    pub fn replay_composed(&self, inputs: &DecayInputs<'_, P>, decay_factors: &mut ViewMut<'_, P>) -> Result<()> {
        self.composite.replay_composed(inputs.as_slice(), slice::from_mut(decay_factors))
    }
}

/// Its name, texts, dtypes, output shapes.
impl<P: Platform> AsRef<Composite<P>> for GatedDeltaDecay<P> {
    fn as_ref(&self) -> &Composite<P> {
        &self.composite
    }
}

//! The gated-delta rates on an NVIDIA GPU, as a decode loop has them: memory of the device, a stream, one kernel a token. An engine
//! that has these already makes its views with `View::from_raw`.

use onelaunch::{Buffer, Cuda, DType, Device, GatedDeltaRates, RatesDTypes, RatesInputs, RatesOutputs};

const HEADS: usize = 32;

fn main() -> onelaunch::Result<()> {
    let gpu = match Device::cuda(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("no GPU to run this on: {}", error.description());
            std::process::exit(77);
        }
    };
    let stream = gpu.stream()?;
    let rates = GatedDeltaRates::compile(&gpu, RatesDTypes::all(DType::Float32))?;
    let upload = |elements: Vec<f32>| Buffer::from_slice(&gpu, &elements);
    let (b, a) = (upload(vec![-1.0; HEADS])?, upload(vec![0.0; HEADS])?);
    let (a_log, dt_bias) = (upload((0..HEADS).map(|h| 0.1 * h as f32).collect())?, upload(vec![-4.0; HEADS])?);
    let (mut beta, mut decay) = (Buffer::<f32, Cuda>::new(&gpu, HEADS)?, Buffer::<f32, Cuda>::new(&gpu, HEADS)?);

    let inputs = RatesInputs {
        update_logits: b.view([1, HEADS])?,
        decay_interval_inputs: a.view([1, HEADS])?,
        decay_rate_logarithm: a_log.view([HEADS])?,
        decay_interval_bias: dt_bias.view([HEADS])?,
    };
    for _token in 0..3 {
        // Enqueues; waits for nothing and allocates nothing.
        let mut outputs = RatesOutputs { update_rates: beta.view_mut([1, HEADS])?, decay_factors: decay.view_mut([1, HEADS])? };
        rates.replay_on(&stream, &inputs, &mut outputs)?;
    }
    let (beta, decay) = (beta.to_vec(&stream)?, decay.to_vec(&stream)?);
    println!("{}: beta {}, decay {}, {} launches", gpu.name(), beta[0], decay[HEADS - 1], gpu.launches());
    Ok(())
}

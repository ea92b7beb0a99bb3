//! The twenty lines of the project's README, in Rust: a graph described by a closure, two outputs, one launch.

use onelaunch::{DType, Device, View, ViewMut};

fn main() -> onelaunch::Result<()> {
    let (b, a, a_log, dt_bias) = ([-1.0_f32, 0.0, 1.0, 2.0, 3.0, 4.0], [0.0_f32; 6], [0.0_f32, 1.0, 2.0], [-4.0_f32, -3.0, -2.0]);
    let (mut beta, mut decay) = ([0.0_f32; 6], [0.0_f32; 6]);
    let (rows, heads) = ([2, 3], [3]);

    let cpu = Device::cpu()?;
    let rates = cpu.compile("rates", [DType::Float32; 4], |_, [b, a, a_log, dt_bias]| {
        let interval = (a + dt_bias).softplus();
        let rate = a_log.astype(DType::Float32).exp();
        [b.sigmoid(), (-(rate * interval)).exp()] // update rates, decay factors
    })?;
    rates.replay(
        &[View::new(&b, rows)?, View::new(&a, rows)?, View::new(&a_log, heads)?, View::new(&dt_bias, heads)?],
        &mut [ViewMut::new(&mut beta, rows)?, ViewMut::new(&mut decay, rows)?],
    )?;
    println!("beta {}, decay {}, {} launch", beta[0], decay[5], cpu.launches());
    Ok(())
}

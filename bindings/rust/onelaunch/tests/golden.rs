//! Every row of tests/golden/rates.tsv, by `GatedDeltaRates`, the decay alone, and a builder; by both paths.
//!
//! A row: the dtypes of b, a, A_log and dt_bias, their bits in hexadecimal, then dtype and bits of beta and of decay.

use onelaunch::{
    Bf16, Composite, DType, DecayDTypes, DecayInputs, Device, Element, GatedDeltaDecay, GatedDeltaRates, RatesDTypes, RatesInputs,
    RatesOutputs, View, ViewMut, F16,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Elements of one of the float types.
enum Column {
    F16(Vec<F16>),
    Bf16(Vec<Bf16>),
    F32(Vec<f32>),
}

impl Column {
    fn new(dtype: DType) -> Column {
        match dtype {
            DType::Float16 => Column::F16(Vec::new()),
            DType::BFloat16 => Column::Bf16(Vec::new()),
            DType::Float32 => Column::F32(Vec::new()),
            _ => panic!("{dtype} in the golden rates"),
        }
    }

    fn push(&mut self, bits: &str) {
        let bits = u32::from_str_radix(bits, 16).unwrap();
        match self {
            Column::F16(v) => v.push(F16::from_bits(bits as u16)),
            Column::Bf16(v) => v.push(Bf16::from_bits(bits as u16)),
            Column::F32(v) => v.push(f32::from_bits(bits)),
        }
    }

    fn bits(&self) -> Vec<u32> {
        match self {
            Column::F16(v) => v.iter().map(|x| u32::from(x.to_bits())).collect(),
            Column::Bf16(v) => v.iter().map(|x| u32::from(x.to_bits())).collect(),
            Column::F32(v) => v.iter().map(|x| x.to_bits()).collect(),
        }
    }

    fn view(&self) -> View<'_> {
        match self {
            Column::F16(v) => v[..].into(),
            Column::Bf16(v) => v[..].into(),
            Column::F32(v) => v[..].into(),
        }
    }

    /// As many elements, none of them right.
    fn blank(&self) -> Column {
        fn filled<T: Element>(v: &[T], with: T) -> Vec<T> {
            vec![with; v.len()]
        }
        match self {
            Column::F16(v) => Column::F16(filled(v, F16::from_bits(0x7DEA))),
            Column::Bf16(v) => Column::Bf16(filled(v, Bf16::from_bits(0x7FDE))),
            Column::F32(v) => Column::F32(filled(v, f32::from_bits(0x7FDE_ADBE))),
        }
    }

    fn view_mut(&mut self) -> ViewMut<'_> {
        match self {
            Column::F16(v) => (&mut v[..]).into(),
            Column::Bf16(v) => (&mut v[..]).into(),
            Column::F32(v) => (&mut v[..]).into(),
        }
    }
}

#[test]
fn golden_rates() {
    let folder = std::env::var_os("ONELAUNCH_GOLDEN")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden")), PathBuf::from);
    let text = std::fs::read_to_string(folder.join("rates.tsv")).unwrap();
    // The rows of the same dtypes are one replay.
    let mut groups: BTreeMap<Vec<DType>, Vec<Column>> = BTreeMap::new();
    let mut n_rows = 0;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.len(), 12, "{line}");
        let names = [words[0], words[1], words[2], words[3], words[8], words[10]];
        let bits = [words[4], words[5], words[6], words[7], words[9], words[11]];
        let dtypes: Vec<DType> = names.iter().map(|name| name.parse().unwrap()).collect();
        let columns = groups.entry(dtypes.clone()).or_insert_with(|| dtypes.iter().map(|&dtype| Column::new(dtype)).collect());
        columns.iter_mut().zip(bits).for_each(|(column, bits)| column.push(bits));
        n_rows += 1;
    }
    assert!(n_rows > 10_000 && groups.len() > 1, "{n_rows} rows of {} kinds", groups.len());

    let cpu = Device::cpu().unwrap();
    for (dtypes, columns) in &groups {
        let [b, a, a_log, dt_bias, beta, decay] = <&[Column; 6]>::try_from(&columns[..]).unwrap();
        let (kinds, decay_kinds) = (
            RatesDTypes {
                update_logits: dtypes[0],
                decay_interval_inputs: dtypes[1],
                decay_rate_logarithm: dtypes[2],
                decay_interval_bias: dtypes[3],
            },
            DecayDTypes { decay_interval_inputs: dtypes[1], decay_rate_logarithm: dtypes[2], decay_interval_bias: dtypes[3] },
        );
        let inputs = RatesInputs {
            update_logits: b.view(),
            decay_interval_inputs: a.view(),
            decay_rate_logarithm: a_log.view(),
            decay_interval_bias: dt_bias.view(),
        };
        let rates = GatedDeltaRates::compile(&cpu, kinds).unwrap();
        for composed in [false, true] {
            let (mut got_beta, mut got_decay) = (beta.blank(), decay.blank());
            let mut outputs = RatesOutputs { update_rates: got_beta.view_mut(), decay_factors: got_decay.view_mut() };
            let before = cpu.launches();
            if composed { rates.replay_composed(&inputs, &mut outputs) } else { rates.replay(&inputs, &mut outputs) }.unwrap();
            let expected = if composed { rates.as_ref().composed_launches() } else { 1 };
            assert!(cpu.launches() - before == expected as u64 && (expected > 4 || !composed));
            assert!(got_beta.bits() == beta.bits() && got_decay.bits() == decay.bits(), "rates of {dtypes:?}, composed: {composed}");
        }

        let alone = GatedDeltaDecay::compile(&cpu, decay_kinds).unwrap();
        let inputs =
            DecayInputs { decay_interval_inputs: a.view(), decay_rate_logarithm: a_log.view(), decay_interval_bias: dt_bias.view() };
        let (mut once, mut composed) = (decay.blank(), decay.blank());
        let before = cpu.launches();
        alone.replay(&inputs, &mut once.view_mut()).unwrap();
        alone.replay_composed(&inputs, &mut composed.view_mut()).unwrap();
        assert_eq!(cpu.launches() - before, 1 + alone.as_ref().composed_launches() as u64);
        assert!(once.bits() == decay.bits() && composed.bits() == decay.bits(), "decay of {dtypes:?}");

        let built: Composite = cpu
            .compile("rates", [dtypes[0], dtypes[1], dtypes[2], dtypes[3]], |_, [b, a, a_log, dt_bias]| {
                let x = a + dt_bias;
                [b.sigmoid(), (-(a_log.astype(DType::Float32).exp() * x.logaddexp(x.constant(0.0)))).exp()]
            })
            .unwrap();
        let (mut got_beta, mut got_decay) = (beta.blank(), decay.blank());
        built.replay(&[b.view(), a.view(), a_log.view(), dt_bias.view()], &mut [got_beta.view_mut(), got_decay.view_mut()]).unwrap();
        assert!(got_beta.bits() == beta.bits() && got_decay.bits() == decay.bits(), "own rates of {dtypes:?}");
    }
}

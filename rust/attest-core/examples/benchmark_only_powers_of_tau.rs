//! BENCHMARK ONLY: writes a powers-of-tau file whose secrets are in this source.
//!
//! snarkjs needs such a file to make keys of the rival's circuit. The secrets of this file are public,
//! so keys made from it allow any proof to be forged. The file holds only what `snarkjs groth16 setup`
//! reads for a circuit of exactly the given power of two; other levels are zero.
//!
//! `benchmark_only_powers_of_tau POWER FILE`

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use ark_bn254::{Fq, Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::scalar_mul::ScalarMul;
use ark_ec::{AffineRepr, PrimeGroup};
use ark_ff::{BigInteger, Field, PrimeField};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};

/// Known to everybody: this is what makes the file worthless for anything but measuring.
const KNOWN: [u64; 3] = [0x7a75, 0xa1fa, 0xbe7a];
const BOTH: usize = 2 * 32;

type Out = BufWriter<File>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, power, path] = arguments.as_slice() else {
        return Err("say the power of two and the file".into());
    };
    let power: u32 = power.parse()?;
    if !(1..28).contains(&power) {
        return Err("the power is 1 to 27".into());
    }
    let mut out = BufWriter::new(File::create(path)?);
    write(&mut out, power)?;
    out.flush()?;
    eprintln!("{path}: BENCHMARK ONLY, its secrets are public; prove nothing with it");
    Ok(())
}

fn write(out: &mut Out, power: u32) -> Result<(), Box<dyn Error>> {
    let [tau, alpha, beta] = KNOWN.map(|known| Fr::from(known).pow([5]));
    let size = 1 << power;
    let basis = lagrange(size, tau)?;
    let finer = lagrange(2 * size, tau)?;
    let scaled = |by: Fr| -> Vec<Fr> { basis.iter().map(|each| by * each).collect() };

    out.write_all(b"ptau")?;
    out.write_all(&1_u32.to_le_bytes())?; // version
    out.write_all(&9_u32.to_le_bytes())?; // sections
    section(out, 1, 44)?;
    out.write_all(&32_u32.to_le_bytes())?;
    out.write_all(&Fq::MODULUS.to_bytes_le())?;
    out.write_all(&power.to_le_bytes())?;
    out.write_all(&power.to_le_bytes())?; // of the ceremony that there was not
    section(out, 2, (2 * size - 1) * BOTH)?;
    let powers = std::iter::successors(Some(Fr::ONE), |power| Some(*power * tau));
    put_first(out, &firsts(&powers.take(2 * size - 1).collect::<Vec<_>>()))?;
    for (number, secret) in [(4, alpha), (5, beta)] {
        section(out, number, BOTH)?;
        put_first(out, &firsts(&[secret]))?;
    }
    section(out, 6, 2 * BOTH)?;
    put_second(out, &seconds(&[beta]))?;
    section(out, 12, (4 * size - 1) * BOTH)?;
    skip(out, (size - 1) * BOTH)?;
    put_first(out, &firsts(&basis))?;
    put_first(out, &firsts(&finer))?;
    section(out, 13, (2 * size - 1) * 2 * BOTH)?;
    skip(out, (size - 1) * 2 * BOTH)?;
    put_second(out, &seconds(&basis))?;
    for (number, secret) in [(14, alpha), (15, beta)] {
        section(out, number, (2 * size - 1) * BOTH)?;
        skip(out, (size - 1) * BOTH)?;
        put_first(out, &firsts(&scaled(secret)))?;
    }
    Ok(())
}

/// The values at tau of the polynomials that are one at one root of unity and zero at the others.
fn lagrange(size: usize, tau: Fr) -> Result<Vec<Fr>, Box<dyn Error>> {
    let domain = Radix2EvaluationDomain::<Fr>::new(size).ok_or("the field has no such domain")?;
    Ok(domain.evaluate_all_lagrange_coefficients(tau))
}

fn firsts(scalars: &[Fr]) -> Vec<G1Affine> {
    G1Projective::generator().batch_mul(scalars)
}

fn seconds(scalars: &[Fr]) -> Vec<G2Affine> {
    G2Projective::generator().batch_mul(scalars)
}

fn section(out: &mut Out, number: u32, bytes: usize) -> std::io::Result<()> {
    out.write_all(&number.to_le_bytes())?;
    out.write_all(&(bytes as u64).to_le_bytes())
}

/// Leave zeros: levels of smaller circuits, which are not asked for.
fn skip(out: &mut Out, bytes: usize) -> std::io::Result<()> {
    out.seek(SeekFrom::Current(
        i64::try_from(bytes).expect("far below the largest offset"),
    ))?;
    Ok(())
}

fn put_first(out: &mut Out, points: &[G1Affine]) -> std::io::Result<()> {
    for point in points {
        let (x, y) = point.xy().expect("no power of tau is zero");
        put(out, &[x, y])?;
    }
    Ok(())
}

fn put_second(out: &mut Out, points: &[G2Affine]) -> std::io::Result<()> {
    for point in points {
        let (x, y) = point.xy().expect("no power of tau is zero");
        put(out, &[x.c0, x.c1, y.c0, y.c1])?;
    }
    Ok(())
}

/// Coordinates in Montgomery's form, little-endian, as snarkjs keeps them.
fn put(out: &mut Out, coordinates: &[Fq]) -> std::io::Result<()> {
    for coordinate in coordinates {
        out.write_all(&coordinate.0.to_bytes_le())?;
    }
    Ok(())
}

//! Points of BN254 as bytes: big-endian coordinates of thirty-two bytes, with one encoding only.

use ark_bn254::{Fq, Fq2, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use ark_ff::{BigInt, BigInteger, PrimeField};

use super::Malformed;
use super::public::limbs;

/// Bytes of a coordinate.
const COORDINATE: usize = 32;

/// Bytes from which points are read.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// A point of the first group.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not the canonical encoding of a point of the curve.
    pub fn first(&mut self) -> Result<G1Affine, Malformed> {
        let [x, y] = [self.coordinate()?, self.coordinate()?];
        let point = G1Affine::new_unchecked(x, y);
        demand(!point.is_zero(), "a point is at infinity")?; // arkworks spells it (0, 0)
        demand(point.is_on_curve(), "a point is not on the curve")?;
        let inside = point.is_in_correct_subgroup_assuming_on_curve();
        demand(inside, "a point is not in the group")?;
        Ok(point)
    }

    /// A point of the second group.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not the canonical encoding of a point of the subgroup.
    pub fn second(&mut self) -> Result<G2Affine, Malformed> {
        let mut pair = || Ok(Fq2::new(self.coordinate()?, self.coordinate()?));
        let point = G2Affine::new_unchecked(pair()?, pair()?);
        demand(!point.is_zero(), "a point is at infinity")?;
        demand(point.is_on_curve(), "a point is not on the twisted curve")?;
        let inside = point.is_in_correct_subgroup_assuming_on_curve();
        demand(inside, "a point is not in the subgroup")?;
        Ok(point)
    }

    fn coordinate(&mut self) -> Result<Fq, Malformed> {
        let (taken, rest) = self
            .0
            .split_first_chunk::<COORDINATE>()
            .ok_or_else(|| Malformed("bytes are missing".into()))?;
        self.0 = rest;
        Fq::from_bigint(BigInt(limbs(taken)))
            .ok_or_else(|| Malformed("a coordinate is not canonical".into()))
    }
}

fn demand(held: bool, why: &str) -> Result<(), Malformed> {
    if held {
        Ok(())
    } else {
        Err(Malformed(why.into()))
    }
}

/// Write a point of the first group, which must not be at infinity.
pub fn put_first(out: &mut Vec<u8>, point: &G1Affine) {
    let (x, y) = point
        .xy()
        .expect("no point of a key or proof is at infinity");
    put(out, &[x, y]);
}

/// Write a point of the second group, which must not be at infinity.
pub fn put_second(out: &mut Vec<u8>, point: &G2Affine) {
    let (x, y) = point
        .xy()
        .expect("no point of a key or proof is at infinity");
    put(out, &[x.c0, x.c1, y.c0, y.c1]);
}

fn put(out: &mut Vec<u8>, coordinates: &[Fq]) {
    for coordinate in coordinates {
        out.extend(coordinate.into_bigint().to_bytes_be());
    }
}

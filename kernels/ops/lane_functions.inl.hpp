// Lane-wise functions.

/// e^x for every lane, within 2 units in the last place; clamped to [-87, 88] so that the result is a normal number.
inline f32x16 exponential(f32x16 x) {
  x = min(broadcast(88.0F), max(broadcast(-87.0F), x));  // NaN is the second operand and stays
  const f32x16 magic = broadcast(12582912.0F);           // 1.5 * 2^23: adding it rounds to an integer
  const f32x16 t = fma(x, broadcast(1.44269504F), magic);
  const f32x16 n = sub(t, magic);
  // ln 2 in two parts; n times the first is exact.
  const f32x16 r = fma(n, broadcast(2.12194440e-4F), fma(n, broadcast(-0.693359375F), x));
  f32x16 p = broadcast(1.0F / 5040);  // the Taylor series: |r| <= 0.347 leaves 5e-9
  p = fma(p, r, broadcast(1.0F / 720));
  p = fma(p, r, broadcast(1.0F / 120));
  p = fma(p, r, broadcast(1.0F / 24));
  p = fma(p, r, broadcast(1.0F / 6));
  p = fma(p, r, broadcast(0.5F));
  p = fma(p, r, broadcast(1.0F));
  p = fma(p, r, broadcast(1.0F));
  return scale_exponent(p, t);
}

/// tanh of every lane, with a relative error within 4e-7: Lambert's continued fraction up to its 13th link, as a
/// quotient of polynomials whose terms all have one sign. tanh is 1 from 9 on. NaN stays.
inline f32x16 hyperbolic_tangent(f32x16 x) {
  x = min(broadcast(9.0F), max(broadcast(-9.0F), x));
  const f32x16 z = mul(x, x);
  f32x16 p = broadcast(1.0F / 7905853580625.0F);
  p = fma(p, z, broadcast(1.0F / 1930611375));
  p = fma(p, z, broadcast(2.0F / 6194475));
  p = fma(p, z, broadcast(4.0F / 60375));
  p = fma(p, z, broadcast(3.0F / 575));
  p = fma(p, z, broadcast(11.0F / 75));
  p = fma(p, z, broadcast(1.0F));
  f32x16 q = broadcast(1.0F / 86877511875.0F);
  q = fma(q, z, broadcast(8.0F / 526530375));
  q = fma(q, z, broadcast(2.0F / 382375));
  q = fma(q, z, broadcast(8.0F / 12075));
  q = fma(q, z, broadcast(11.0F / 345));
  q = fma(q, z, broadcast(12.0F / 25));
  q = fma(q, z, broadcast(1.0F));
  return div(mul(x, p), q);
}

/// Computes cap * tanh(x * factor). With factor = scale / cap, these are scaled and capped scores.
inline void cap_all(float* x, std::size_t n, float factor, float cap) {
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    const f32x16 t = hyperbolic_tangent(mul(load_some(x + i, lanes), broadcast(factor)));
    store_some(x + i, mul(t, broadcast(cap)), lanes);
  });
}

/// Half floats reach 65504. An infinity in the cache would give NaN in rows that weigh it with zero. NaN stays.
inline f32x16 within_f16(f32x16 a) { return min(broadcast(65504.0F), max(broadcast(-65504.0F), a)); }

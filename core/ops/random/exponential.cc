// Exponential numbers and draws from categories; declared in random.h.

#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace {

/// Numbers -log(1 - u) / lambd for uniform u in [0, 1), never 0: a u of 0 counts as half the
/// distance to the next one.
Tensor exponential_numbers(IntList sizes, DType dtype, Device device, double lambd,
                           Generator* generator) {
  LS_CHECK(is_floating(dtype), DTypeError,
           "[exponential] expected a floating dtype, got {}. Cast it with to(dtype).",
           to_string(dtype));
  LS_CHECK(lambd > 0, Error, "[exponential] lambd must be positive, got {}.", lambd);
  // f16 and bf16 have too few distinct numbers near 1.
  const bool wide = dtype == DType::kF64;
  const Tensor u = rand(sizes, {wide ? DType::kF64 : DType::kF32, device}, generator);
  const double least = wide ? 0x1p-54 : 0x1p-25;
  const Tensor numbers = clamp(neg(log(1 - u)), Scalar(least), std::nullopt);
  return (numbers / Scalar(lambd)).to(dtype);
}

Tensor exponential_like(const Tensor& self, double lambd, Generator* generator) {
  return exponential_numbers(self.sizes(), self.dtype(), self.device(), lambd, generator);
}

/// Checks the values of weights, where they can be read: on meta there are none, and under vmap
/// each sample has its own.
void check_weights(const Tensor& weights) {
  const bool readable = weights.device() != kMeta && !weights.key_set().has(Key::kVmap);
  if (!readable || weights.numel() == 0) return;
  const double least = min(weights).item<double>(), most = max(weights).item<double>();
  LS_CHECK(least >= 0 && std::isfinite(most), Error,
           "[multinomial] weights must be finite and not negative, got numbers from {} to {}.",
           least, most);
  const double least_sum = min(sum(weights, {-1})).item<double>();
  LS_CHECK(least_sum > 0, Error,
           "[multinomial] each row needs a weight that is not 0, got a sum of {}.", least_sum);
}

Tensor multinomial_body(const Tensor& self, int64_t num_samples, bool replacement,
                        Generator* generator) {
  LS_CHECK(is_floating(self.dtype()), DTypeError,
           "[multinomial] expected weights of a floating dtype, got {}. Cast them with to(dtype).",
           to_string(self));
  LS_CHECK((self.dim() == 1 || self.dim() == 2) && self.size(-1) > 0, ShapeError,
           "[multinomial] expected weights [categories] or [rows, categories], got shape {}.",
           self.shape());
  LS_CHECK(num_samples > 0 && (replacement || num_samples <= self.size(-1)), Error,
           "[multinomial] expected a number of samples from 1 to the {} categories (or more with "
           "replacement), got {}.",
           self.size(-1), num_samples);
  const Tensor weights = self.detach().to(DType::kF64);
  check_weights(weights);
  const Device device = weights.device();
  if (!replacement || num_samples == 1) {
    // The largest weights[i] / q[i] is at i with probability weights[i] / sum(weights), and the
    // next ones are draws from what is left (Efraimidis & Spirakis 2006).
    const Tensor keys =
        weights / exponential_numbers(weights.sizes(), DType::kF64, device, 1, generator);
    return std::get<1>(topk(keys, num_samples, -1));
  }
  // The last sum divided by itself is 1, above every u, so an empty category is never found.
  const Tensor sums = cumsum(weights, -1);
  const Tensor bounds = sums / sums.slice(-1, -1);
  Dims sizes = to_dims(weights.sizes());
  sizes[sizes.size() - 1] = num_samples;
  return searchsorted(bounds, rand(sizes, {DType::kF64, device}, generator), false, true);
}

}  // namespace

LS_OP(exponential, Tensor(const Tensor&, double, Generator*),
      "exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor")
    .doc("A tensor like self of exponential numbers of rate lambd.")
    .composite([](const Tensor& self, double lambd, Generator* generator) {
      return exponential_like(self, lambd, generator);
    });

LS_OP(exponential_in_place, const Tensor&(const Tensor&, double, Generator*),
      "exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)")
    .doc("Fills self with exponential numbers of rate lambd.")
    .composite([](const Tensor& self, double lambd, Generator* generator) -> const Tensor& {
      return copy_(self, exponential_like(self, lambd, generator));
    });
const Tensor& exponential_(const Tensor& self, double lambd, Generator* generator) {
  return op_exponential_in_place(self, lambd, generator);
}

LS_OP(exponential_out, const Tensor&(const Tensor&, double, Generator*, const Tensor&),
      "exponential.out(Tensor self, float lambd=1., *, Generator? generator=None, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("exponential, written into out.")
    .composite([](const Tensor& self, double lambd, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, op_exponential(self, lambd, generator));
    });

LS_OP(multinomial, Tensor(const Tensor&, int64_t, bool, Generator*),
      "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
      "generator=None) -> Tensor")
    .doc("Categories drawn from each row of weights.")
    .composite(multinomial_body);
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement,
                   Generator* generator) {
  return op_multinomial(self, num_samples, replacement, generator);
}

LS_OP(multinomial_out, const Tensor&(const Tensor&, int64_t, bool, Generator*, const Tensor&),
      "multinomial.out(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
      "generator=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("multinomial, written into out.")
    .composite([](const Tensor& self, int64_t num_samples, bool replacement, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_indices_out("multinomial", out,
                               op_multinomial(self, num_samples, replacement, generator));
    });

}  // namespace lockstep

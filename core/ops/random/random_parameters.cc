// Random numbers with distribution parameters given per element by tensors.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace {

using LayoutOption = std::optional<Layout>;
using Flag = std::optional<bool>;

/// Bools that are true with probability p, which broadcasts to `sizes`.
Tensor drawn(const Tensor& p, IntList sizes, Generator* generator) {
  LS_CHECK(is_floating(p.dtype()), DTypeError,
           "[bernoulli] expected probabilities of a floating dtype, got {}. Cast them with "
           "to(dtype).",
           to_string(p));
  // On meta elements have no values to check.
  if (p.numel() > 0 && p.device() != kMeta) {
    const double least = min(p).item<double>();
    const double most = max(p).item<double>();
    LS_CHECK(least >= 0 && most <= 1, Error,
             "[bernoulli] expected probabilities in [0, 1], got numbers from {} to {}.", least,
             most);
  }
  // f16 and bf16 have too few distinct random numbers to compare with.
  const DType dtype = p.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  return lt(rand(sizes, {dtype, p.device()}, generator), p.detach().to(dtype));
}

void check_deviations(const Tensor& std) {
  const bool known = std.numel() == 0 || std.device() == kMeta || min(std).item<double>() >= 0;
  LS_CHECK(known, Error, "[normal] std must not be negative in any element.");
}

/// Normal numbers with `options` in the shape that mean and std broadcast to. Neither argument gets
/// a gradient.
Tensor normal_around(const Tensor& mean, const Tensor& std, const TensorOptions& options,
                     Generator* generator) {
  check_deviations(std);
  const Dims sizes = broadcast("normal", mean.sizes(), std.sizes());
  const Tensor numbers = randn(sizes, options, generator);
  return (numbers * std.detach() + mean.detach()).to(numbers.dtype());
}

/// A 0-d tensor with the dtype and device of `like`.
Tensor beside(const Tensor& like, double number) { return full({}, number, like.options()); }

}  // namespace

LS_OP(bernoulli_self, Tensor(const Tensor&, Generator*),
      "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
    .doc("1 with the probability given by each element of self, else 0.")
    .composite([](const Tensor& self, Generator* generator) {
      return drawn(self, self.sizes(), generator).to(self.dtype());
    });
LS_OP(bernoulli_self_out, const Tensor&(const Tensor&, Generator*, const Tensor&),
      "bernoulli.out(Tensor self, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("bernoulli, written into out.")
    .composite([](const Tensor& self, Generator* generator, const Tensor& out) -> const Tensor& {
      return clone_out(out, drawn(self, self.sizes(), generator).to(out.dtype()));
    });

LS_OP(bernoulli_tensor, Tensor(const Tensor&, const Tensor&, Generator*),
      "bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor")
    .doc("A tensor like self, each element 1 with the probability in p, else 0.")
    .composite([](const Tensor& self, const Tensor& p, Generator* generator) {
      return copy(self.detach(), drawn(p, self.sizes(), generator));
    });
LS_OP(bernoulli_tensor_, const Tensor&(const Tensor&, const Tensor&, Generator*),
      "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)")
    .doc("Fills self with 1 with the probability in p, else 0.")
    .composite([](const Tensor& self, const Tensor& p, Generator* generator) -> const Tensor& {
      return copy_(self, drawn(p, self.sizes(), generator));
    });
LS_OP(bernoulli_tensor_out, const Tensor&(const Tensor&, const Tensor&, Generator*, const Tensor&),
      "bernoulli.Tensor_out(Tensor self, Tensor p, *, Generator? generator=None, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("bernoulli.Tensor, written into out.")
    .composite([](const Tensor& self, const Tensor& p, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, drawn(p, self.sizes(), generator).to(out.dtype()));
    });

LS_OP(bernoulli_float_, const Tensor&(const Tensor&, double, Generator*),
      "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)")
    .doc("Fills self with 1 with probability p, else 0.")
    .composite([](const Tensor& self, double p, Generator* generator) -> const Tensor& {
      return bernoulli_(self, p, generator);
    });
LS_OP(bernoulli_float_out, const Tensor&(const Tensor&, double, Generator*, const Tensor&),
      "bernoulli.float_out(Tensor self, float p=0.5, *, Generator? generator=None, Tensor(a!) out) "
      "-> Tensor(a!)")
    .doc("bernoulli.p, written into out.")
    .composite([](const Tensor& self, double p, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, bernoulli(self, p, generator));
    });

LS_OP(normal_tensor_float, Tensor(const Tensor&, double, Generator*),
      "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor")
    .doc("Normal numbers with the means given by mean.")
    .composite([](const Tensor& mean, double std, Generator* generator) {
      return normal_around(mean, beside(mean, std), mean.options(), generator);
    });
LS_OP(normal_tensor_float_out, const Tensor&(const Tensor&, double, Generator*, const Tensor&),
      "normal.Tensor_float_out(Tensor mean, float std=1., *, Generator? generator=None, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("normal.Tensor_float, written into out.")
    .composite([](const Tensor& mean, double std, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, normal_around(mean, beside(mean, std), out.options(), generator));
    });

LS_OP(normal_float_tensor, Tensor(double, const Tensor&, Generator*),
      "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor")
    .doc("Normal numbers with the standard deviations given by std.")
    .composite([](double mean, const Tensor& std, Generator* generator) {
      return normal_around(beside(std, mean), std, std.options(), generator);
    });
LS_OP(normal_float_tensor_out, const Tensor&(double, const Tensor&, Generator*, const Tensor&),
      "normal.float_Tensor_out(float mean, Tensor std, *, Generator? generator=None, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("normal.float_Tensor, written into out.")
    .composite([](double mean, const Tensor& std, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, normal_around(beside(std, mean), std, out.options(), generator));
    });

LS_OP(normal_tensors, Tensor(const Tensor&, const Tensor&, Generator*),
      "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor")
    .doc("Normal numbers with mean and standard deviation given per element.")
    .composite([](const Tensor& mean, const Tensor& std, Generator* generator) {
      return normal_around(mean, std, mean.options(), generator);
    });
LS_OP(normal_tensors_out, const Tensor&(const Tensor&, const Tensor&, Generator*, const Tensor&),
      "normal.Tensor_Tensor_out(Tensor mean, Tensor std, *, Generator? generator=None, Tensor(a!) "
      "out) -> Tensor(a!)")
    .doc("normal.Tensor_Tensor, written into out.")
    .composite([](const Tensor& mean, const Tensor& std, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, normal_around(mean, std, out.options(), generator));
    });

LS_OP(normal_numbers,
      Tensor(double, double, IntList, Generator*, std::optional<DType>, LayoutOption,
             std::optional<Device>, Flag),
      "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, "
      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
      "Tensor")
    .doc("Normal numbers with one mean and standard deviation.")
    .composite([](double mean, double std, IntList size, Generator* generator,
                  std::optional<DType> dtype, LayoutOption, std::optional<Device> device, Flag) {
      TensorOptions options;
      options.dtype = dtype;
      options.device = device;
      return Tensor(normal_(empty(size, options), mean, std, generator));
    });
LS_OP(normal_numbers_out, const Tensor&(double, double, IntList, Generator*, const Tensor&),
      "normal.float_float_out(float mean, float std, SymInt[] size, *, Generator? generator=None, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("normal.float_float, written into out.")
    .composite([](double mean, double std, IntList size, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, normal_(empty(size, out.options()), mean, std, generator));
    });

}  // namespace lockstep

// Random tensors of given sizes, or with the shape of another tensor.

#include <limits>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/options_of.h"
#include "core/ops/random/random.h"
#include "core/ops/random/random_rules.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace rules {
namespace {

Outputs random_from(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator*) {
  LS_CHECK(!to || from < *to, Error, "[random_] expected from < to, got {} and {}.", from, *to);
  const int64_t last = to ? *to - 1 : std::numeric_limits<int64_t>::max();
  const auto [least, most] = integer_range(self.dtype());
  LS_CHECK(from >= least && (last <= most || !to), DTypeError,
           "[random_] {} holds integers from {} to {} only, got from {} and to {}.",
           to_string(self.dtype()), least, most, from, last);
  return like_self(self);
}

}  // namespace
}  // namespace rules

namespace {

using DTypeOption = std::optional<DType>;
using LayoutOption = std::optional<Layout>;
using DeviceOption = std::optional<Device>;
using Flag = std::optional<bool>;
using Format = std::optional<MemoryFormat>;

Tensor integers_below(int64_t low, int64_t high, IntList size, Generator* generator,
                      DTypeOption dtype, DeviceOption device) {
  LS_CHECK(low < high, Error, "[randint] expected low < high, got {} and {}.", low, high);
  return random_(empty(size, options_of(dtype.value_or(DType::kI64), device)), low, high,
                 generator);
}

int64_t bound_of(const Tensor& high) {
  LS_CHECK(high.dim() == 0, ShapeError,
           "[randint_like] high must be one number: expected a 0-d tensor, got shape {}.",
           high.shape());
  const Scalar bound = high.item_scalar();
  check_holds("randint_like", "bound", DType::kI64, bound);
  return bound.to_int();
}

/// Fills `like` with integers in [0, high).
Tensor drawn(const Tensor& like, const Tensor& high, Generator* generator = nullptr) {
  return Tensor(random_(like, 0, bound_of(high), generator));
}

}  // namespace

LS_OP(random_from, Tensor(const Tensor&, int64_t, std::optional<int64_t>, Generator*),
      "random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor")
    .doc("A tensor like self of integers uniform in [from, to); without `to`, up to 2^63 - 1.")
    .structured(rules::random_from)
    .in_place()
    .out("from_out")
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] { return zeros_like(grad); });
    });
const Tensor& random_(const Tensor& self, int64_t from, std::optional<int64_t> to,
                      Generator* generator) {
  return op_random_from.in_place(self, from, to, generator);
}

LS_OP(random_to, Tensor(const Tensor&, int64_t, Generator*),
      "random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor")
    .doc("A tensor like self of integers uniform in [0, to).")
    .composite([](const Tensor& self, int64_t to, Generator* generator) {
      return op_random_from(self, 0, to, generator);
    });
LS_OP(random_to_, const Tensor&(const Tensor&, int64_t, Generator*),
      "random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)")
    .doc("Fills self with integers uniform in [0, to).")
    .composite([](const Tensor& self, int64_t to, Generator* generator) -> const Tensor& {
      return random_(self, 0, to, generator);
    });
LS_OP(random_to_out, const Tensor&(const Tensor&, int64_t, Generator*, const Tensor&),
      "random.to_out(Tensor self, int to, *, Generator? generator=None, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("random.to, written into out.")
    .composite([](const Tensor& self, int64_t to, Generator* generator,
                  const Tensor& out) -> const Tensor& {
      return op_random_from.out(self, 0, to, generator, out);
    });

LS_OP(random_all, Tensor(const Tensor&, Generator*),
      "random(Tensor self, *, Generator? generator=None) -> Tensor")
    .doc(
        "A tensor like self of integers uniform from 0 to the largest that its dtype holds "
        "exactly.")
    .composite([](const Tensor& self, Generator* generator) {
      return op_random_from(self, 0, rules::end_of_exact_integers(self.dtype()), generator);
    });
LS_OP(random_all_, const Tensor&(const Tensor&, Generator*),
      "random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)")
    .doc("Fills self with integers uniform from 0 to the largest that its dtype holds exactly.")
    .composite([](const Tensor& self, Generator* generator) -> const Tensor& {
      return random_(self, 0, rules::end_of_exact_integers(self.dtype()), generator);
    });
LS_OP(random_all_out, const Tensor&(const Tensor&, Generator*, const Tensor&),
      "random.out(Tensor self, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("random, written into out.")
    .composite([](const Tensor& self, Generator* generator, const Tensor& out) -> const Tensor& {
      return op_random_from.out(self, 0, rules::end_of_exact_integers(self.dtype()), generator,
                                out);
    });

LS_OP(rand_default, Tensor(IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None) -> Tensor")
    .doc("Numbers uniform in [0, 1).")
    .composite([](IntList size, DTypeOption dtype, LayoutOption, DeviceOption device, Flag) {
      return rand(size, options_of(dtype, device));
    });

LS_OP(rand_like, Tensor(const Tensor&, DTypeOption, LayoutOption, DeviceOption, Flag, Format),
      "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .doc("Numbers uniform in [0, 1), in self's shape.")
    .tag("nondeterministic_seeded")
    .composite([](const Tensor& self, DTypeOption dtype, LayoutOption, DeviceOption device, Flag,
                  Format) {
      const Tensor result = empty_like(self, options_of(dtype, device));
      return Tensor(uniform_(result));
    });

LS_OP(rand_like_generator,
      Tensor(const Tensor&, Generator*, DTypeOption, LayoutOption, DeviceOption, Flag, Format),
      "rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
      "memory_format=None) -> Tensor")
    .doc("Numbers uniform in [0, 1), in self's shape.")
    .composite([](const Tensor& self, Generator* generator, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag, Format) {
      const Tensor result = empty_like(self, options_of(dtype, device));
      return Tensor(uniform_(result, 0, 1, generator));
    });

LS_OP(randn_default, Tensor(IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None) -> Tensor")
    .doc("Normal numbers of mean 0 and variance 1.")
    .composite([](IntList size, DTypeOption dtype, LayoutOption, DeviceOption device, Flag) {
      return randn(size, options_of(dtype, device));
    });

LS_OP(randn_like, Tensor(const Tensor&, DTypeOption, LayoutOption, DeviceOption, Flag, Format),
      "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .doc("Normal numbers of mean 0 and variance 1, in self's shape.")
    .tag("nondeterministic_seeded")
    .composite([](const Tensor& self, DTypeOption dtype, LayoutOption, DeviceOption device, Flag,
                  Format) {
      const Tensor result = empty_like(self, options_of(dtype, device));
      return Tensor(normal_(result));
    });

LS_OP(randn_like_generator,
      Tensor(const Tensor&, Generator*, DTypeOption, LayoutOption, DeviceOption, Flag, Format),
      "randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
      "memory_format=None) -> Tensor")
    .doc("Normal numbers of mean 0 and variance 1, in self's shape.")
    .composite([](const Tensor& self, Generator* generator, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag, Format) {
      const Tensor result = empty_like(self, options_of(dtype, device));
      return Tensor(normal_(result, 0, 1, generator));
    });

LS_OP(randperm_default, Tensor(int64_t, DTypeOption, LayoutOption, DeviceOption, Flag),
      "randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
      "bool? pin_memory=None) -> Tensor")
    .doc("The numbers 0 .. n-1 in random order.")
    .composite([](int64_t n, DTypeOption dtype, LayoutOption, DeviceOption device, Flag) {
      return randperm(n, options_of(dtype, device));
    });

LS_OP(randint, Tensor(int64_t, IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Integers uniform in [0, high).")
    .composite([](int64_t high, IntList size, DTypeOption dtype, LayoutOption, DeviceOption device,
                  Flag) { return integers_below(0, high, size, nullptr, dtype, device); });

LS_OP(randint_low, Tensor(int64_t, int64_t, IntList, DTypeOption, LayoutOption, DeviceOption, Flag),
      "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, "
      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("Integers uniform in [low, high).")
    .composite([](int64_t low, int64_t high, IntList size, DTypeOption dtype, LayoutOption,
                  DeviceOption device,
                  Flag) { return integers_below(low, high, size, nullptr, dtype, device); });

LS_OP(randint_generator,
      Tensor(int64_t, IntList, Generator*, DTypeOption, LayoutOption, DeviceOption, Flag),
      "randint.generator(SymInt high, SymInt[] size, *, Generator? generator, "
      "ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None) -> Tensor")
    .doc("Integers uniform in [0, high).")
    .composite([](int64_t high, IntList size, Generator* generator, DTypeOption dtype, LayoutOption,
                  DeviceOption device,
                  Flag) { return integers_below(0, high, size, generator, dtype, device); });

LS_OP(randint_low_generator,
      Tensor(int64_t, int64_t, IntList, Generator*, DTypeOption, LayoutOption, DeviceOption, Flag),
      "randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? "
      "generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
      "bool? pin_memory=None) -> Tensor")
    .doc("Integers uniform in [low, high).")
    .composite([](int64_t low, int64_t high, IntList size, Generator* generator, DTypeOption dtype,
                  LayoutOption, DeviceOption device,
                  Flag) { return integers_below(low, high, size, generator, dtype, device); });

Tensor randint(int64_t low, int64_t high, IntList sizes, TensorOptions options,
               Generator* generator) {
  return op_randint_low_generator(low, high, sizes, generator, options.dtype, std::nullopt,
                                  options.device, std::nullopt);
}

LS_OP(randint_like,
      Tensor(const Tensor&, int64_t, DTypeOption, LayoutOption, DeviceOption, Flag, Format),
      "randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
      "memory_format=None) -> Tensor")
    .doc("Integers uniform in [0, high), in self's shape and dtype.")
    .tag("nondeterministic_seeded")
    .composite([](const Tensor& self, int64_t high, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag, Format) {
      const Tensor result = empty_like(self, options_of(dtype, device));
      return Tensor(random_(result, 0, high));
    });

LS_OP(randint_like_low,
      Tensor(const Tensor&, int64_t, int64_t, DTypeOption, LayoutOption, DeviceOption, Flag,
             Format),
      "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? "
      "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
      "MemoryFormat? memory_format=None) -> Tensor")
    .doc("Integers uniform in [low, high), in self's shape and dtype.")
    .tag("nondeterministic_seeded")
    .composite([](const Tensor& self, int64_t low, int64_t high, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag, Format) {
      const Tensor result = empty_like(self, options_of(dtype, device));
      return Tensor(random_(result, low, high));
    });

LS_OP(randint_like_generator,
      Tensor(const Tensor&, int64_t, Generator*, DTypeOption, LayoutOption, DeviceOption, Flag,
             Format),
      "randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? "
      "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
      "MemoryFormat? memory_format=None) -> Tensor")
    .doc("Integers uniform in [0, high), in self's shape and dtype.")
    .composite([](const Tensor& self, int64_t high, Generator* generator, DTypeOption dtype,
                  LayoutOption, DeviceOption device, Flag, Format) {
      const Tensor result = empty_like(self, options_of(dtype, device));
      return Tensor(random_(result, 0, high, generator));
    });

LS_OP(randint_like_low_generator,
      Tensor(const Tensor&, int64_t, int64_t, Generator*, DTypeOption, LayoutOption, DeviceOption,
             Flag, Format),
      "randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? "
      "generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor")
    .doc("Integers uniform in [low, high), in self's shape and dtype.")
    .composite([](const Tensor& self, int64_t low, int64_t high, Generator* generator,
                  DTypeOption dtype, LayoutOption, DeviceOption device, Flag, Format) {
      const Tensor result = empty_like(self, options_of(dtype, device));
      return Tensor(random_(result, low, high, generator));
    });

LS_OP(randint_like_tensor,
      Tensor(const Tensor&, const Tensor&, DTypeOption, LayoutOption, DeviceOption, Flag, Format),
      "randint_like.Tensor(Tensor self, Tensor high, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
      "memory_format=None) -> Tensor")
    .doc("Integers uniform in [0, high), in self's shape and dtype. high is 0-d.")
    .tag("nondeterministic_seeded")
    .composite([](const Tensor& self, const Tensor& high, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag,
                  Format) { return drawn(empty_like(self, options_of(dtype, device)), high); });

LS_OP(randint_like_tensor_generator,
      Tensor(const Tensor&, const Tensor&, Generator*, DTypeOption, LayoutOption, DeviceOption,
             Flag, Format),
      "randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, "
      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
      "MemoryFormat? memory_format=None) -> Tensor")
    .doc("Integers uniform in [0, high), in self's shape and dtype. high is 0-d.")
    .composite([](const Tensor& self, const Tensor& high, Generator* generator, DTypeOption dtype,
                  LayoutOption, DeviceOption device, Flag, Format) {
      return drawn(empty_like(self, options_of(dtype, device)), high, generator);
    });

LS_OP(randint_like_tensor_out, const Tensor&(const Tensor&, const Tensor&, Format, const Tensor&),
      "randint_like.Tensor_out(Tensor self, Tensor high, *, MemoryFormat? memory_format=None, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [0, high), in self's shape, written into out.")
    .composite([](const Tensor& self, const Tensor& high, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, drawn(empty(self.sizes(), out.options()), high));
    });

LS_OP(randint_like_tensor_generator_out,
      const Tensor&(const Tensor&, const Tensor&, Generator*, Format, const Tensor&),
      "randint_like.Tensor_generator_out(Tensor self, Tensor high, *, Generator? generator, "
      "MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [0, high), in self's shape, written into out.")
    .composite([](const Tensor& self, const Tensor& high, Generator* generator, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, drawn(empty(self.sizes(), out.options()), high, generator));
    });

}  // namespace lockstep

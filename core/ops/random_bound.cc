// randint_like whose bound is a tensor.

#include "core/check.h"
#include "core/library.h"
#include "core/ops/copy.h"
#include "core/ops/factory.h"
#include "core/ops/random.h"

namespace lockstep {

namespace {

using DTypeOption = std::optional<DType>;
using LayoutOption = std::optional<Layout>;
using DeviceOption = std::optional<Device>;
using Flag = std::optional<bool>;
using Format = std::optional<MemoryFormat>;

int64_t bound_of(const Tensor& high) {
  LS_CHECK(high.dim() == 0, ShapeError,
           "[randint_like] high must be one number: expected a 0-d tensor, got shape {}.",
           high.shape());
  return high.item_scalar().to_int();
}

/// `like` filled with integers in [0, high).
Tensor drawn(const Tensor& like, const Tensor& high, Generator* generator = nullptr) {
  return Tensor(random_(like, 0, bound_of(high), generator));
}

Tensor empty_of(const Tensor& self, DTypeOption dtype, DeviceOption device) {
  TensorOptions options;
  options.dtype = dtype;
  options.device = device;
  return empty_like(self, options);
}

Tensor empty_for(const Tensor& out, const Tensor& self) {
  return empty(self.sizes(), out.options());
}

}  // namespace

LS_OP(randint_like_tensor,
      Tensor(const Tensor&, const Tensor&, DTypeOption, LayoutOption, DeviceOption, Flag, Format),
      "randint_like.Tensor(Tensor self, Tensor high, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
      "memory_format=None) -> Tensor")
    .doc("Integers uniform in [0, high), in self's shape and dtype. high is 0-d.")
    .tag("nondeterministic_seeded")
    .composite([](const Tensor& self, const Tensor& high, DTypeOption dtype, LayoutOption,
                  DeviceOption device, Flag,
                  Format) { return drawn(empty_of(self, dtype, device), high); });

LS_OP(randint_like_tensor_generator,
      Tensor(const Tensor&, const Tensor&, Generator*, DTypeOption, LayoutOption, DeviceOption,
             Flag, Format),
      "randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, "
      "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
      "MemoryFormat? memory_format=None) -> Tensor")
    .doc("Integers uniform in [0, high), in self's shape and dtype. high is 0-d.")
    .composite([](const Tensor& self, const Tensor& high, Generator* generator, DTypeOption dtype,
                  LayoutOption, DeviceOption device, Flag,
                  Format) { return drawn(empty_of(self, dtype, device), high, generator); });

LS_OP(randint_like_tensor_out, const Tensor&(const Tensor&, const Tensor&, Format, const Tensor&),
      "randint_like.Tensor_out(Tensor self, Tensor high, *, MemoryFormat? memory_format=None, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [0, high), in self's shape, written into out.")
    .composite([](const Tensor& self, const Tensor& high, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, drawn(empty_for(out, self), high));
    });

LS_OP(randint_like_tensor_generator_out,
      const Tensor&(const Tensor&, const Tensor&, Generator*, Format, const Tensor&),
      "randint_like.Tensor_generator_out(Tensor self, Tensor high, *, Generator? generator, "
      "MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")
    .doc("Integers uniform in [0, high), in self's shape, written into out.")
    .composite([](const Tensor& self, const Tensor& high, Generator* generator, Format,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, drawn(empty_for(out, self), high, generator));
    });

}  // namespace lockstep

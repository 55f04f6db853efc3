// Evenly spaced numbers and identity matrices.

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_formula.h"
#include "core/ops/view/view.h"
#include "core/tensor/number_range.h"

namespace lockstep {

namespace {

using DTypeOption = std::optional<DType>;
using LayoutOption = std::optional<Layout>;
using DeviceOption = std::optional<Device>;
using Flag = std::optional<bool>;

/// Evenly spaced numbers in float64 for a result of `dtype`. Steps are counted from the nearer end
/// so that both ends are exact; for integers both ends are truncated.
Tensor spaced(std::string_view op, const Scalar& start, const Scalar& end, int64_t steps,
              DType dtype, DeviceOption device) {
  LS_CHECK(steps >= 0, ShapeError, "[{}] steps must not be negative, got {}.", op, steps);
  LS_CHECK(dtype != DType::kBool, DTypeError, "[{}] expected a numeric dtype, got bool.", op);
  check_holds(op, "start", dtype, start);
  check_holds(op, "end", dtype, end);
  const bool whole = !is_floating(dtype);
  const double first = whole ? static_cast<double>(start.to_int()) : start.to_double();
  const double last = whole ? static_cast<double>(end.to_int()) : end.to_double();
  LS_CHECK(
      !whole || (first < 0x1p63 && last < 0x1p63), DTypeError,
      "[{}] start and end are rounded to float64, in which {} to {} are beyond int64. Use smaller "
      "numbers.",
      op, to_string(start), to_string(end));
  TensorOptions options;
  options.dtype = DType::kF64;
  options.device = device;
  if (steps == 1) return full({1}, first, options);
  const double step = (last - first) / static_cast<double>(steps - 1);
  const Tensor place = arange(Scalar(steps), options);
  const Tensor forth = place * step + first;
  const Tensor back = (place - static_cast<double>(steps - 1)) * step + last;
  return where(lt(place, steps / 2), forth, back);
}
Tensor linear(const Scalar& start, const Scalar& end, int64_t steps, DType dtype,
              DeviceOption device) {
  return spaced("linspace", start, end, steps, dtype, device).to(dtype);
}
Tensor logarithmic(const Scalar& start, const Scalar& end, int64_t steps, double base, DType dtype,
                   DeviceOption device) {
  const Tensor exponents = spaced("logspace", start, end, steps, dtype, device);
  // As in ATen, the exponent of a single number is not truncated for integers.
  if (steps == 1) return pow(base, full_like(exponents, start.to_double())).to(dtype);
  return pow(base, exponents).to(dtype);
}

Tensor identity(int64_t rows, int64_t columns, DTypeOption dtype, DeviceOption device) {
  LS_CHECK(rows >= 0 && columns >= 0, ShapeError,
           "[eye] sizes must not be negative, got {} and {}.", rows, columns);
  TensorOptions options;
  options.dtype = DType::kI64;
  options.device = device;
  return eq(arange(Scalar(rows), options).unsqueeze(-1), arange(Scalar(columns), options))
      .to(dtype.value_or(DType::kF32));
}

}  // namespace

LS_OP(linspace, Tensor(Scalar, Scalar, int64_t, DTypeOption, LayoutOption, DeviceOption, Flag),
      "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("steps evenly spaced numbers from start to end, both included.")
    .composite([](Scalar start, Scalar end, int64_t steps, DTypeOption dtype, LayoutOption,
                  DeviceOption device,
                  Flag) { return linear(start, end, steps, dtype.value_or(DType::kF32), device); });
LS_OP(linspace_out, const Tensor&(Scalar, Scalar, int64_t, const Tensor&),
      "linspace.out(Scalar start, Scalar end, int steps, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("linspace, written into out.")
    .composite([](Scalar start, Scalar end, int64_t steps, const Tensor& out) -> const Tensor& {
      return clone_out(out, linear(start, end, steps, out.dtype(), out.device()));
    });

LS_OP(logspace,
      Tensor(Scalar, Scalar, int64_t, double, DTypeOption, LayoutOption, DeviceOption, Flag),
      "logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, "
      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .doc("base to the powers of steps evenly spaced numbers from start to end, both included.")
    .composite([](Scalar start, Scalar end, int64_t steps, double base, DTypeOption dtype,
                  LayoutOption, DeviceOption device, Flag) {
      return logarithmic(start, end, steps, base, dtype.value_or(DType::kF32), device);
    });
LS_OP(logspace_out, const Tensor&(Scalar, Scalar, int64_t, double, const Tensor&),
      "logspace.out(Scalar start, Scalar end, int steps, float base=10., *, Tensor(a!) out) -> "
      "Tensor(a!)")
    .doc("logspace, written into out.")
    .composite([](Scalar start, Scalar end, int64_t steps, double base,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, logarithmic(start, end, steps, base, out.dtype(), out.device()));
    });

LS_OP(eye, Tensor(int64_t, DTypeOption, LayoutOption, DeviceOption, Flag),
      "eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None) -> Tensor")
    .doc("The identity matrix.")
    .composite([](int64_t n, DTypeOption dtype, LayoutOption, DeviceOption device, Flag) {
      return identity(n, n, dtype, device);
    });
LS_OP(eye_rectangle, Tensor(int64_t, int64_t, DTypeOption, LayoutOption, DeviceOption, Flag),
      "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None) -> Tensor")
    .doc("A matrix [n, m] with ones on the diagonal.")
    .composite([](int64_t n, int64_t m, DTypeOption dtype, LayoutOption, DeviceOption device,
                  Flag) { return identity(n, m, dtype, device); });
LS_OP(eye_out, const Tensor&(int64_t, const Tensor&),
      "eye.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("eye, written into out.")
    .composite([](int64_t n, const Tensor& out) -> const Tensor& {
      return clone_out(out, identity(n, n, out.dtype(), out.device()));
    });
LS_OP(eye_rectangle_out, const Tensor&(int64_t, int64_t, const Tensor&),
      "eye.m_out(SymInt n, SymInt m, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("eye.m, written into out.")
    .composite([](int64_t n, int64_t m, const Tensor& out) -> const Tensor& {
      return clone_out(out, identity(n, m, out.dtype(), out.device()));
    });

}  // namespace lockstep

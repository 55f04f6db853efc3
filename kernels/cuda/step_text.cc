#include "kernels/cuda/step_text.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/common/lanes.h"
#include "kernels/cuda/loop_params.h"

namespace lockstep::cuda {

namespace {

std::string_view lane_type(ComputeLane lane) {
  constexpr std::string_view kTypes[] = {"float", "double", "int64_t", "uint8_t"};
  return kTypes[static_cast<int>(lane)];
}

}  // namespace

std::string_view stored_type(DType dtype) {
  constexpr std::string_view kTypes[kDTypeCount] = {
      "uint8_t", "uint8_t", "int8_t",         "int16_t",
      "int32_t", "int64_t", "lockstep::Half", "lockstep::BFloat16",
      "float",   "double"};
  return kTypes[static_cast<int>(dtype)];
}

size_t StepText::add_constant(size_t bytes) {
  return std::exchange(constant_, constant_ + in_words(bytes));
}

std::string StepText::add(size_t step, const KeptLoop& loop, std::span<const int32_t> operands,
                          int32_t result) {
  std::string value;
  if (loop.kernel == nullptr) {
    const DType from = loop.operands[0].dtype;
    value = fmt::format("e{}", operands[0]);
    if (from != loop.dtype) {
      value = fmt::format("convert<{}>({})", lane_type(natural_lane(from)), value);
    }
  } else {
    value = call(step, loop, operands);
  }
  const std::string stored = loop.dtype == DType::kBool
                                 ? "as_truth"
                                 : fmt::format("as_stored<{}>", stored_type(loop.dtype));
  return fmt::format("const auto e{} = {}({});\n", result, stored, value);
}

/// The functor of a step, called with its operands.
std::string StepText::call(size_t step, const KeptLoop& loop, std::span<const int32_t> operands) {
  const std::string_view functor = loop.kernel->functor;
  if (loop.functor_bytes == 0) {
    before_ += fmt::format("  const {} f{};\n", functor, step);
  } else {
    before_ += fmt::format("  const auto f{} = constant_at<{}>(p.constants + {});\n", step, functor,
                           add_constant(loop.functor_bytes));
  }
  const auto& lanes = loop.kernel->lanes;
  std::string value = fmt::format("static_cast<{}>(apply(f{}", lane_type(lanes[0]), step);
  size_t next = 0;
  for (size_t i = 0; i < loop.count; ++i) {
    const std::string_view lane = lane_type(lanes[i + 1]);
    if (!loop.operands[i].is_number) {
      value += fmt::format(", convert<{}>(e{})", lane, operands[next++]);
      continue;
    }
    before_ +=
        fmt::format("  const auto n{0}_{1} = convert<{2}>(constant_at<{3}>(p.constants + {4}));\n",
                    step, i, lane, stored_type(loop.operands[i].dtype), add_constant(8));
    value += fmt::format(", n{}_{}", step, i);
  }
  return value + "))";
}

}  // namespace lockstep::cuda

#include "kernels/cpu/loop_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/kept_loop.h"
#include "kernels/cpu/kernel_prelude.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

namespace {

using Place = LoopProgram::Place;

const KeptLoop& loop_of(const LoopProgram::Step& step) {
  return static_cast<const KeptLoop&>(*step.loop);
}

/// The type of a stored element.
std::string_view stored_type(DType dtype) {
  constexpr std::string_view kTypes[kDTypeCount] = {"Truth",   "uint8_t", "int8_t",   "int16_t",
                                                    "int32_t", "int64_t", "HalfWord", "BFloat16",
                                                    "float",   "double"};
  return kTypes[static_cast<int>(dtype)];
}
/// What is stored of an element that is a class: GCC vectorises no loop that copies whole objects.
std::string_view member(DType dtype) {
  if (dtype == DType::kBF16) return ".bits";
  return dtype == DType::kBool ? ".byte" : "";
}
/// The type in which a lane's elements are computed: loops on bf16 convert each to f32.
std::string_view lane_type(ComputeLane lane) {
  constexpr std::string_view kTypes[] = {"float", "double", "int64_t", "uint8_t", "float"};
  return kTypes[static_cast<int>(lane)];
}

/// Writes the text. Names: `a3` is the array of slot 3, `e3` its element, `f2` the functor of step
/// 2, and `n2_1` its operand 1 where that is a number of the call.
class SourceText {
 public:
  explicit SourceText(const LoopProgram& program) : program_(program) {
    for (size_t i = 0; i < program.slots.size(); ++i) add_slot(i, program.slots[i]);
    for (size_t i = 0; i < program.steps.size(); ++i) add_step(i, program.steps[i]);
  }

  std::string text() const {
    return fmt::format(R"({}
namespace lockstep::cpu {{
namespace {{
template <bool kExact>
int compute(int64_t count, void* const* at, const StepConstants* constants) {{
  int rare = 0;
{}#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {{
{}{}{}  }}
  return rare;
}}
}}  // namespace
}}  // namespace lockstep::cpu

extern "C" [[gnu::visibility("default")]] void lockstep_loop_kernel(int64_t count, void* const* at, const void* constants) {{
  using namespace lockstep::cpu;
  const auto* const steps = static_cast<const StepConstants*>(constants);
  if (compute<false>(count, at, steps) != 0) compute<true>(count, at, steps);
}}
)",
                       kernel_prelude(), before_, loads_, steps_, stores_);
  }

 private:
  void add_slot(size_t at, const LoopProgram::Slot& slot) {
    const std::string_view type = stored_type(slot.dtype);
    const bool is_one_element = slot.place == Place::kColumn && has_long_rows(slot);
    const Place place = is_one_element ? Place::kNumber : slot.drawn ? Place::kArray : slot.place;
    switch (place) {
      case Place::kNumber:
        before_ +=
            fmt::format("  const auto e{0} = *static_cast<const {1}*>(at[{0}]);\n", at, type);
        break;
      case Place::kArray:
      case Place::kRow:
      case Place::kColumn:
      case Place::kRows:  // they lie one behind the other in a block
      case Place::kGathered:
        before_ +=
            fmt::format("  const auto* const a{0} = static_cast<const {1}*>(at[{0}]);\n", at, type);
        loads_ += fmt::format("    const auto e{0} = a{0}[i];\n", at);
        break;
      case Place::kResult:
        before_ += fmt::format("  auto* const a{0} = static_cast<{1}*>(at[{0}]);\n", at, type);
        stores_ += fmt::format("    a{0}[i]{1} = e{0}{1};\n", at, member(slot.dtype));
        break;
      case Place::kScratch:
      case Place::kRowNumbers:
        break;
    }
  }

  void add_step(size_t at, const LoopProgram::Step& step) {
    const KeptLoop& loop = loop_of(step);
    const std::string_view type =
        stored_type(program_.slots[static_cast<size_t>(step.result)].dtype);
    std::string value;
    if (loop.loop != nullptr) {
      before_ +=
          fmt::format("  const auto f{0} = constants[{0}].get<{1}>();\n", at, loop.functor_name);
      value = fmt::format("applied<kExact, {}>(f{}, rare", lane_type(loop.lane), at);
      size_t next = 0;
      for (size_t i = 0; i < loop.count; ++i) value += ", " + operand(at, i, next);
      value += ")";
    } else if (loop.store == nullptr && loop.operands[0].load == nullptr) {
      value = fmt::format("e{}", step.operands[0]);
    } else {
      size_t next = 0;
      value = operand(at, 0, next);
    }
    steps_ += fmt::format("    const auto e{} = as_stored<{}>({});\n", step.result, type, value);
  }

  /// Operand `number` of a step in its lane; `next` counts those that are slots.
  std::string operand(size_t at, size_t number, size_t& next) {
    const LoopProgram::Step& step = program_.steps[at];
    const KeptLoop::Operand& operand = loop_of(step).operands[number];
    const std::string_view lane = lane_type(operand.lane);
    if (!operand.is_number) return fmt::format("in_lane<{}>(e{})", lane, step.operands[next++]);
    before_ +=
        fmt::format("  const auto n{0}_{1} = in_lane<{2}>(constants[{0}].number<{3}>({1}));\n", at,
                    number, lane, stored_type(operand.dtype));
    return fmt::format("n{}_{}", at, number);
  }

  const LoopProgram& program_;
  std::string before_, loads_, steps_, stores_;
};

/// How kernels of this build are compiled (CMakeLists.txt), for this processor's vectors.
std::vector<std::string> flags() {
  std::vector<std::string> flags = {"-O3",
                                    "-w",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fno-thread-jumps"};
#if LS_HAVE_WIDE_VECTORS
  flags.push_back("-march=x86-64-v3");
  if (has_wide_vectors()) {
    for (const char* const more :
         {"-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512"}) {
      flags.emplace_back(more);
    }
  }
#endif
  return flags;
}

}  // namespace

LoopSource loop_source(const LoopProgram& program) {
  const auto is_half = [](const LoopProgram::Slot& slot) { return slot.dtype == DType::kF16; };
  const auto is_known = [](const LoopProgram::Step& step) {
    return loop_of(step).loop == nullptr || !loop_of(step).functor_name.empty();
  };
  if (std::ranges::any_of(program.slots, is_half) ||
      !std::ranges::all_of(program.steps, is_known)) {
    return {};
  }
  return {SourceText(program).text(), flags()};
}

}  // namespace lockstep::cpu

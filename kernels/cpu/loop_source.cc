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

/// Elements of f32 in a vector of this processor.
int vector_length() {
#if LS_HAVE_WIDE_VECTORS
  if (has_wide_vectors()) return 16;
#endif
  return 8;
}

/// Whether a kernel computes several vectors at once. Each step of a long chain waits for the one
/// before, and the processor does not look far enough ahead to begin the next vector meanwhile:
/// 20 steps take a fifth less time with four vectors. Heavy functors need the registers.
bool is_interleaved(const LoopProgram& program) {
  constexpr size_t kLongChain = 8;
  const auto is_f32 = [](const LoopProgram::Slot& slot) { return slot.dtype == DType::kF32; };
  const auto is_light = [](const LoopProgram::Step& step) {
    return loop_of(step).lane == ComputeLane::kF32 && !loop_of(step).heavy;
  };
  return program.steps.size() >= kLongChain && std::ranges::all_of(program.slots, is_f32) &&
         std::ranges::all_of(program.steps, is_light);
}

/// Writes the text. Names: `a3` is the array of slot 3, `e3` its element, `e3_1` that of the second
/// of several vectors, `f2` the functor of step 2, and `n2_1` its operand 1 where that is a number
/// of the call.
class SourceText {
 public:
  explicit SourceText(const LoopProgram& program) : program_(program) {
    for (const LoopProgram::Slot& slot : program.slots) numbers_.push_back(is_number(slot));
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
  int64_t begin = 0;
{}{}#pragma GCC ivdep
  for (int64_t i = begin; i < count; ++i) {{
{}  }}
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
                       kernel_prelude(), before_, interleaved(), body(1));
  }

 private:
  static bool is_number(const LoopProgram::Slot& slot) {
    const bool is_one_element = slot.place == Place::kColumn && has_long_rows(slot);
    return slot.place == Place::kNumber || is_one_element;
  }

  /// The loop over as many elements as several vectors have, of which each is one run of the inner
  /// loop; or nothing.
  std::string interleaved() const {
    if (!is_interleaved(program_)) return "";
    constexpr int kVectors = 4;
    const int length = vector_length();
    return fmt::format(R"(  for (; begin + {0} <= count; begin += {0}) {{
#pragma GCC ivdep
    for (int64_t i = begin; i < begin + {1}; ++i) {{
{2}    }}
  }}
)",
                       kVectors * length, length, body(kVectors, length));
  }

  /// The lines for elements i, i + distance and so on, each line for all of them before the next.
  std::string body(int elements, int distance = 0) const {
    std::string text;
    for (const std::vector<std::string>* const lines : {&loads_, &steps_, &stores_}) {
      for (const std::string& line : *lines) {
        for (int k = 0; k < elements; ++k) {
          text += line_of(line, elements == 1 ? "" : fmt::format("_{}", k),
                          k == 0 ? "" : fmt::format(" + {}", k * distance));
        }
      }
    }
    return text;
  }
  /// The line with the mark of its names, for `@`, and the distance of its element, for `#`.
  static std::string line_of(std::string_view line, std::string_view mark,
                             std::string_view distance) {
    std::string text;
    for (const char c : line) {
      if (c == '@') {
        text += mark;
      } else if (c == '#') {
        text += distance;
      } else {
        text += c;
      }
    }
    return text;
  }

  /// The element of a slot: `@` is for lines of several elements.
  std::string element(int32_t slot) const {
    return fmt::format("e{}{}", slot, numbers_[static_cast<size_t>(slot)] ? "" : "@");
  }

  void add_slot(size_t at, const LoopProgram::Slot& slot) {
    const std::string_view type = stored_type(slot.dtype);
    const Place place = is_number(slot) ? Place::kNumber : slot.drawn ? Place::kArray : slot.place;
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
        loads_.push_back(fmt::format("    const auto e{0}@ = a{0}[i#];\n", at));
        break;
      case Place::kResult:
        before_ += fmt::format("  auto* const a{0} = static_cast<{1}*>(at[{0}]);\n", at, type);
        stores_.push_back(fmt::format("    a{0}[i#]{1} = e{0}@{1};\n", at, member(slot.dtype)));
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
      value = element(step.operands[0]);
    } else {
      size_t next = 0;
      value = operand(at, 0, next);
    }
    steps_.push_back(
        fmt::format("    const auto {} = as_stored<{}>({});\n", element(step.result), type, value));
  }

  /// Operand `number` of a step in its lane; `next` counts those that are slots.
  std::string operand(size_t at, size_t number, size_t& next) {
    const LoopProgram::Step& step = program_.steps[at];
    const KeptLoop::Operand& operand = loop_of(step).operands[number];
    const std::string_view lane = lane_type(operand.lane);
    if (!operand.is_number) {
      return fmt::format("in_lane<{}>({})", lane, element(step.operands[next++]));
    }
    before_ +=
        fmt::format("  const auto n{0}_{1} = in_lane<{2}>(constants[{0}].number<{3}>({1}));\n", at,
                    number, lane, stored_type(operand.dtype));
    return fmt::format("n{}_{}", at, number);
  }

  const LoopProgram& program_;
  std::vector<bool> numbers_;  ///< slots that have one element for all
  std::string before_;
  std::vector<std::string> loads_, steps_, stores_;
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

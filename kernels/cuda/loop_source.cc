#include "kernels/cuda/loop_source.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/cuda/device_facts.h"
#include "core/cuda/launch.h"
#include "core/cuda/nvrtc.h"
#include "core/device/kernel_scope.h"
#include "kernels/common/lanes.h"
#include "kernels/cuda/device_std.h"
#include "kernels/cuda/kernel_header.h"
#include "kernels/cuda/kernel_prelude.h"
#include "kernels/cuda/loop_params.h"

namespace lockstep::cuda {

namespace {

using Place = LoopProgram::Place;

/// The type of a stored element.
std::string_view stored_type(DType dtype) {
  constexpr std::string_view kTypes[kDTypeCount] = {
      "uint8_t", "uint8_t", "int8_t",         "int16_t",
      "int32_t", "int64_t", "lockstep::Half", "lockstep::BFloat16",
      "float",   "double"};
  return kTypes[static_cast<int>(dtype)];
}
std::string_view lane_type(ComputeLane lane) {
  constexpr std::string_view kTypes[] = {"float", "double", "int64_t", "uint8_t"};
  return kTypes[static_cast<int>(lane)];
}

/// Writes the text. Names: `a3` are the elements of slot 3 that a thread works on, `e3` one of
/// them, `r3` its place in rows, `s3` how far these are apart, `i3` the numbers of gathered rows,
/// `d3` how truths are drawn, `f2` the functor of step 2, and `n2_1` its operand 1 where that is a
/// number of the call.
class LoopText {
 public:
  explicit LoopText(const LoopProgram& program) : program_(program), shape_(program) {
    for (size_t i = 0; i < program.slots.size(); ++i) add_slot(i, program.slots[i]);
    for (size_t i = 0; i < program.steps.size(); ++i) add_step(i, program.steps[i]);
  }

  std::string text() const {
    return fmt::format(R"({}
namespace lockstep::cuda {{
namespace {{
struct LoopParams {{
  uint32_t count;
  uint32_t packed;
  char* at[{}];
{}{}}};
static_assert(sizeof(LoopParams) == {});
}}  // namespace
}}  // namespace lockstep::cuda

LS_CUDA_KERNEL(lockstep_loop_kernel, ::lockstep::cuda::LoopParams, 256) {{
  using namespace lockstep::cuda;
{}  for (int64_t first = first_of_thread(); first < p.count; first += to_next_of_thread()) {{
{}#pragma unroll
    for (int k = 0; k < kLoopPack; ++k) {{
{}{}{}    }}
{}  }}
}}
)",
                       kernel_prelude(), shape_.addresses,
                       member("Divider periods", shape_.periods),
                       member("alignas(8) unsigned char constants", shape_.constants),
                       shape_.bytes(), before_, reads_, elements_, steps_, moves_, writes_);
  }

 private:
  static std::string member(std::string_view declaration, size_t count) {
    return count == 0 ? std::string() : fmt::format("  {}[{}];\n", declaration, count);
  }

  void add_slot(size_t at, const LoopProgram::Slot& slot) {
    const std::string_view type = stored_type(slot.dtype);
    const size_t address = address_;
    address_ += has_memory(slot) ? 1 : 0;
    if (has_period(slot)) {
      reads_ += fmt::format("    RowPlace r{}(p.periods[{}], first);\n", at, period_);
      moves_ += fmt::format("      r{}.next(p.periods[{}]);\n", at, period_++);
    }
    if (slot.drawn) return add_drawn(at, slot, address);
    switch (slot.place) {
      case Place::kRowNumbers:
        before_ += fmt::format("  const auto i{} = constant_at<IndexList>(p.constants + {});\n", at,
                               constant_);
        constant_ += constant_bytes(slot);
        break;
      case Place::kRows:
        before_ += fmt::format("  const auto s{} = constant_at<int64_t>(p.constants + {});\n", at,
                               constant_);
        constant_ += constant_bytes(slot);
        elements_ += fmt::format(
            "      const auto e{0} = first + k < p.count ? reinterpret_cast<const {1}*>(p.at[{2}])"
            "[r{0}.row * s{0} + r{0}.column] : {1}{{}};\n",
            at, type, address);
        break;
      case Place::kGathered:
        elements_ += fmt::format(
            "      const auto e{0} = gathered(reinterpret_cast<const {1}*>(p.at[{2}]), i{3}, r{0}, "
            "p.periods[{4}], first + k < p.count);\n",
            at, type, address, slot.rows, period_ - 1);
        break;
      case Place::kNumber:
        before_ += fmt::format("  const auto e{} = *reinterpret_cast<const {}*>(p.at[{}]);\n", at,
                               type, address);
        break;
      case Place::kArray:
        reads_ += fmt::format(
            "    const auto a{} = load_pack<{}>(p.at[{}], first, p.count, p.packed != 0);\n", at,
            type, address);
        elements_ += fmt::format("      const auto e{0} = a{0}.at[k];\n", at);
        break;
      case Place::kRow:
        elements_ += fmt::format(
            "      const auto e{0} = reinterpret_cast<const {1}*>(p.at[{2}])[r{0}.column];\n", at,
            type, address);
        break;
      case Place::kColumn:  // behind the last element there is no other row
        elements_ += fmt::format(
            "      const auto e{0} = reinterpret_cast<const {1}*>(p.at[{2}])[first + k < p.count ? "
            "r{0}.row : 0];\n",
            at, type, address);
        break;
      case Place::kResult:
        add_result(at, type, address);
        break;
      default:
        break;
    }
  }

  /// Truths: a thread's elements are those of one group of random words.
  void add_drawn(size_t at, const LoopProgram::Slot& slot, size_t address) {
    before_ += fmt::format(
        "  const auto d{0} = constant_at<RandomTruths>(p.constants + {1});\n"
        "  const RandomWords w{0} = words_of(d{0}.words);\n",
        at, constant_);
    constant_ += constant_bytes(slot);
    reads_ += fmt::format("    const RandomGroup g{0}(w{0}, first / kLoopPack);\n", at);
    elements_ += fmt::format("      const uint8_t e{0} = d{0}.kept(g{0}.word[k]);\n", at);
    if (slot.place == Place::kResult) add_result(at, "uint8_t", address);
  }

  void add_result(size_t at, std::string_view type, size_t address) {
    reads_ += fmt::format("    Pack<{}, kLoopPack> a{};\n", type, at);
    moves_ += fmt::format("      a{0}.at[k] = e{0};\n", at);
    writes_ +=
        fmt::format("    store_pack(p.at[{}], first, p.count, p.packed != 0, a{});\n", address, at);
  }

  void add_step(size_t at, const LoopProgram::Step& step) {
    const KeptLoop& loop = loop_of(step);
    std::string value;
    if (loop.kernel == nullptr) {
      const DType from = loop.operands[0].dtype;
      value = fmt::format("e{}", step.operands[0]);
      if (from != loop.dtype) {
        value = fmt::format("convert<{}>({})", lane_type(natural_lane(from)), value);
      }
    } else {
      value = call(at, step, loop);
    }
    const std::string stored = loop.dtype == DType::kBool
                                   ? "as_truth"
                                   : fmt::format("as_stored<{}>", stored_type(loop.dtype));
    steps_ += fmt::format("      const auto e{} = {}({});\n", step.result, stored, value);
  }

  /// The functor of a step, called with its operands.
  std::string call(size_t at, const LoopProgram::Step& step, const KeptLoop& loop) {
    const std::string_view functor = loop.kernel->functor;
    if (loop.functor_bytes == 0) {
      before_ += fmt::format("  const {} f{};\n", functor, at);
    } else {
      before_ += fmt::format("  const auto f{} = constant_at<{}>(p.constants + {});\n", at, functor,
                             constant_);
      constant_ += in_words(loop.functor_bytes);
    }
    const auto& lanes = loop.kernel->lanes;
    std::string value = fmt::format("static_cast<{}>(apply(f{}", lane_type(lanes[0]), at);
    size_t next = 0;
    for (size_t i = 0; i < loop.count; ++i) {
      const std::string_view lane = lane_type(lanes[i + 1]);
      if (!loop.operands[i].is_number) {
        value += fmt::format(", convert<{}>(e{})", lane, step.operands[next++]);
        continue;
      }
      before_ += fmt::format(
          "  const auto n{0}_{1} = convert<{2}>(constant_at<{3}>(p.constants + {4}));\n", at, i,
          lane, stored_type(loop.operands[i].dtype), constant_);
      constant_ += 8;
      value += fmt::format(", n{}_{}", at, i);
    }
    return value + "))";
  }

  const LoopProgram& program_;
  LoopParamsShape shape_;
  size_t address_ = 0, period_ = 0, constant_ = 0;
  std::string before_, reads_, elements_, steps_, moves_, writes_;
};

std::string nvrtc_version() {
  const LoadedNvrtc& library = nvrtc().loaded();
  if (!library.reason.empty()) throw DeviceError("[compile] " + library.reason + ".");
  return fmt::format("NVRTC {} ({})", version_text(library.version), library.file);
}

/// As nvcc compiles the operators' kernels (cmake/Cuda.cmake), so that bits are the same.
std::vector<std::string> nvrtc_flags() {
  const DeviceFacts facts = device_facts(kernel_stream().device.index);
  return {"-std=c++20", "--fmad=false", "--device-as-default-execution-space", "--device-int128",
          fmt::format("--gpu-architecture=sm_{}{}", facts.major, facts.minor)};
}

std::vector<std::byte> compile_with_nvrtc(const LoopSource& source) {
  std::vector<NamedHeader> headers = {{"core/cuda/kernel.cuh", std::string(kernel_header())}};
  for (const char* const name :
       {"array", "atomic", "bit", "cmath", "concepts", "cstddef", "cstdint", "cstring", "limits",
        "optional", "string", "string_view", "type_traits"}) {
    headers.push_back({name, std::string(device_std())});
  }
  return compile_cuda(source.text, source.flags, headers);
}

void release_module(LoopKernel kernel) noexcept { unload(std::span(&kernel, 1)); }

}  // namespace

LoopSource loop_source(const LoopProgram& program) {
  const LoopParamsShape shape(program);
  if (shape.bytes() > LoopParamsShape::kMost || shape.addresses == 0) return {};
  return {LoopText(program).text(), nvrtc_flags()};
}

const LoopCompiler& loop_compiler() {
  static constexpr LoopCompiler kCompiler = {.flags = &nvrtc_flags,
                                             .version = &nvrtc_version,
                                             .compile = &compile_with_nvrtc,
                                             .release = &release_module};
  return kCompiler;
}

}  // namespace lockstep::cuda

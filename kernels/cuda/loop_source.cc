#include "kernels/cuda/loop_source.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/cuda/device_facts.h"
#include "core/cuda/launch.h"
#include "core/cuda/nvrtc.h"
#include "core/device/kernel_scope.h"
#include "kernels/cuda/device_std.h"
#include "kernels/cuda/kernel_header.h"
#include "kernels/cuda/kernel_prelude.h"
#include "kernels/cuda/loop_params.h"
#include "kernels/cuda/step_text.h"

namespace lockstep::cuda {

namespace {

using Place = LoopProgram::Place;

/// Writes the text. Names besides those of StepText: `a3` are the elements of slot 3 that a thread
/// works on, `r3` the place of one in rows, `s3` how far these are apart, `i3` the numbers of
/// gathered rows, and `d3` how truths are drawn.
class LoopText {
 public:
  explicit LoopText(const LoopProgram& program) : shape_(program) {
    for (size_t i = 0; i < program.slots.size(); ++i) add_slot(i, program.slots[i]);
    StepText steps(constant_);
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const LoopProgram::Step& step = program.steps[i];
      steps_ += "      " + steps.add(i, loop_of(step), step.operands, step.result);
    }
    before_ += steps.before();
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
       {"algorithm", "array", "atomic", "bit", "cmath", "concepts", "cstddef", "cstdint", "cstring",
        "limits", "optional", "string", "string_view", "type_traits"}) {
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

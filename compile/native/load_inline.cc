#include "compile/native/load_inline.h"

#include <fmt/format.h>

#include <iterator>

#include "compile/native/native_build.h"
#include "compile/native/plugin_prelude.h"
#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/device/device_runtime.h"
#include "core/device/kernel_scope.h"
#include "core/dispatch/element_loop.h"

namespace lockstep {

namespace {

/// A header that the text may include by its usual name, although it is there already.
constexpr std::string_view kHeader = "#include \"core/plugin/plugin_wrapper.h\"";

/// The text with that line emptied, so that numbers of lines stay.
std::string without_header(std::string text) {
  const size_t at = text.find(kHeader);
  return at == std::string::npos ? text : text.erase(at, kHeader.size());
}

/// The definition of `kImage`; empty without kernels.
std::string image_of(const InlineSource& source) {
  if (source.cuda.empty()) return {};
  constexpr Device kDevice{DeviceType::kCUDA, 0};
  (void)require_runtime(kDevice);
  const LoopCompiler* const compiler = loop_backend(DeviceType::kCUDA)->compiler;
  const KernelScope on_device(kDevice);
  const compiler::NativeFile file = compiler::build_native(
      {.text = fmt::format("#line 1 \"{}.cu\"\n{}", source.name, source.cuda),
       .flags = compiler->flags(),
       .what = "kernels of plug-in " + source.name,
       .compiler = compiler});
  std::string image = "alignas(16) static const unsigned char kImage[] = {";
  for (const char byte : read_whole_file(file.path())) {
    fmt::format_to(std::back_inserter(image), "{},", static_cast<unsigned char>(byte));
  }
  return image + "};\n";
}

}  // namespace

Plugin load_inline(const InlineSource& source) {
  LS_CHECK(source.name.find_first_of("\"\\\n") == std::string::npos, Error,
           "[load_inline] the name {} holds a quote, a backslash or a new line. Choose another.",
           source.name);
  const compiler::NativeFile file = compiler::build_native(
      {.text = fmt::format("{}\n{}#line 1 \"{}\"\n{}", compiler::plugin_prelude(), image_of(source),
                           source.name, without_header(source.text)),
       .flags = source.flags,
       .what = "plug-in " + source.name});
  return load_library(file.path().string());
}

}  // namespace lockstep

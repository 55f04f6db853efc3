#include "compile/native/load_inline.h"

#include "compile/native/native_build.h"
#include "compile/native/plugin_prelude.h"
#include "core/base/check.h"

namespace lockstep {

namespace {

/// A header that the text may include by its usual name, although it is there already.
constexpr std::string_view kHeader = "#include \"core/plugin/plugin_wrapper.h\"";

/// The text with that line emptied, so that numbers of lines stay.
std::string without_header(std::string text) {
  const size_t at = text.find(kHeader);
  return at == std::string::npos ? text : text.erase(at, kHeader.size());
}

}  // namespace

Plugin load_inline(const InlineSource& source) {
  LS_CHECK(source.name.find_first_of("\"\\\n") == std::string::npos, Error,
           "[load_inline] the name {} holds a quote, a backslash or a new line. Choose another.",
           source.name);
  const compiler::NativeFile file = compiler::build_native(
      {.text = fmt::format("{}\n#line 1 \"{}\"\n{}", compiler::plugin_prelude(), source.name,
                           without_header(source.text)),
       .flags = source.flags,
       .what = "plug-in " + source.name});
  return load_library(file.path().string());
}

}  // namespace lockstep

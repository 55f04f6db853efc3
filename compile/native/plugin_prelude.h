#pragma once

#include <string_view>

namespace lockstep::compiler {

/// core/plugin/plugin_wrapper.h with the headers of ours that it includes written out
/// (cmake/Preludes.cmake): what texts of plug-ins begin with.
std::string_view plugin_prelude();

}  // namespace lockstep::compiler

#pragma once

#include <string_view>

/// What pages are made of besides text: our style and program, and the plotting library dygraphs,
/// embedded when Lockstep is built (cmake/Page.cmake).
namespace lockstep::train::page_assets {

std::string_view style();
std::string_view program();

// Of dygraphs, as its Debian package has them. All are empty in a build without it.
std::string_view plot_program();
std::string_view plot_style();
std::string_view plot_license();

}  // namespace lockstep::train::page_assets

#pragma once

#include <array>

namespace lockstep::train {

/// Curve colours of Okabe and Ito 2008, distinguishable with any kind of colour vision, on light
/// and on dark paper (so grey stands for their black).
inline constexpr std::array<const char*, 7> kSvgColours = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a8a8a"};

/// The style of paper, text and axes in every chart; dark where the viewer prefers dark.
inline constexpr const char* kSvgStyle =
    ".paper{fill:#fff}.ink{fill:#222}"
    "text{font:12px system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif;"
    "fill:#444;font-variant-numeric:tabular-nums}"
    ".label{font-size:13px;fill:#222}"
    ".grid{stroke:#e4e4e4;stroke-width:1}"
    ".axis{stroke:#888;stroke-width:1}"
    "@media(prefers-color-scheme:dark){.paper{fill:#16181c}.ink{fill:#eee}text{fill:#bbb}"
    ".label{fill:#eee}.grid{stroke:#33363c}.axis{stroke:#888}}";

}  // namespace lockstep::train

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::train {

/// The text in Unicode's normal form C, in which an accent is part of the letter it stands on where
/// there is such a letter (utf8proc). Nothing if it is in that form already. What is not UTF-8
/// stays as it is.
std::optional<std::string> composed(std::string_view text);

}  // namespace lockstep::train
